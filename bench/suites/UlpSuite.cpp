// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of docs/numerics.md: errors of the host's functions, measured, and
// those of CUDA's, as published.
#include "bench/suites/FunctionError.h"
#include "kernels/lower/MathAccuracy.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

int main(int argc, char **argv) {
  CLI::App app("Measures the errors of the host's mathematical functions.",
               "bench-ulp");
  uint64_t samples = 4'000'000;
  app.add_option("--samples", samples, "Of each function and type")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  fmt::print("| function | host f32 | host f64 | CUDA f32 | CUDA f64 |\n"
             "|---|---|---|---|---|\n");
  bool within = true;
  for (const mgpu::kernels::FunctionUlps &each : mgpu::kernels::functionUlps) {
    mgpu::bench::FunctionError found[2];
    for (bool isF64 : {false, true}) {
      auto measured =
          mgpu::bench::measureFunction(each.operation, isF64, samples);
      if (!measured) {
        fmt::print(stderr, "bench-ulp: error: {}\n", measured.error().message);
        return int(measured.error().kind);
      }
      found[isF64] = *measured;
      const double most = isF64 ? each.hostF64 : each.hostF32;
      if (measured->ulps > most) {
        within = false;
        fmt::print(stderr,
                   "bench-ulp: {} of {}({:a}, {:a}) is off by {} units, not "
                   "{} as kernels/lower/MathAccuracy.h says\n",
                   isF64 ? "f64" : "f32", each.operation, measured->x,
                   measured->y, measured->ulps, most);
      }
    }
    fmt::print("| `{}` | {} | {} | {} | {} |\n", each.operation, found[0].ulps,
               found[1].ulps, each.cudaF32, each.cudaF64);
  }
  return within ? 0 : 1;
}
