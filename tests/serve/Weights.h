// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_SERVE_WEIGHTS_H
#define MGPU_TESTS_SERVE_WEIGHTS_H

// A bundle with weights, for tests of how bundles are served.

#include "pipeline/c/mgt.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

inline void require(bool holds, const char *what, int line) {
  if (holds)
    return;
  std::fprintf(stderr, "line %d: %s; last error: %s\n", line, what,
               mgt_error());
  std::exit(1);
}
#define REQUIRE(condition) require(bool(condition), #condition, __LINE__)
#define OK(call) require((call) == MGT_OK, #call, __LINE__)
#define FAILS(call, status, words)                                             \
  (require((call) == (status), "another status of " #call, __LINE__),          \
   require(std::strstr(mgt_error(), words) != nullptr, words, __LINE__))

struct Close {
  void operator()(mgt_program *program) const { mgt_close(program); }
};
using Opened = std::unique_ptr<mgt_program, Close>;

/// Saves y[k] = x[k] * w[0] + sum of the n weights + `add`, on each of two
/// devices for half of the four k; w is resident. Where x[0] or x[2] is
/// negative it takes seconds.
inline void saveWeights(const std::string &path, int64_t n, float add,
                        const char *output = "y") {
  mgt::Builder builder("weights", 2);
  const auto x = builder.argument("x", {4}), y = builder.result(output, {4}),
             w = builder.argument("w", {n}, "f32", "resident");
  mgt_kernel_spec spec{};
  spec.entry = "apply";
  const std::string text =
      "void apply(mgpu_block, float *y, const float *w) {"
      " volatile float spin = 0; if (y[0] < 0)"
      " for (long k = 0; k < 1000000000; ++k) spin = spin + 1;"
      " float sum = 0; for (long k = 0; k < " +
      std::to_string(n) +
      "; ++k) sum += w[k];"
      " y[0] = y[0] * w[0] + sum + " +
      std::to_string(add) + "; y[1] = y[1] * w[0] + sum + " +
      std::to_string(add) + "; }";
  spec.host = text.c_str();
  const mgt_kernel apply = builder.kernel(spec);
  for (int32_t d : {0, 1}) {
    const auto half = builder.temporary(d ? "half1" : "half0", d, {2});
    const auto there = builder.temporary(d ? "w1" : "w0", d, {n});
    builder.copy(there, w);
    builder.copy(half, x.part({2 * d}, {2}));
    builder.launch(apply, d, {1, 1, 1}, {mgt::update(half), mgt::read(there)});
    builder.copy(y.part({2 * d}, {2}), half);
  }
  mgt_save_options save{};
  save.size = sizeof save;
  save.cpu = "x86-64-v2";
  OK(mgt_builder_save(builder.get(), path.c_str(), &save));
}

/// What the program makes of x = {1, 2, 3, 4}.
inline float expected(float x, float weight, int64_t n, float add) {
  return x * weight + weight * float(n) + add;
}

#endif // MGPU_TESTS_SERVE_WEIGHTS_H
