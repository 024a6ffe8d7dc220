// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// From a DAG's kernel to a cubin: `bench-emit [ARCH]`. 128 small kernels are
// emitted and compiled on one thread, in batches as `mgpu-tune kernels` does,
// then again from the cache; and kernels of growing size are emitted. All
// figures are CPU time of this process, each the least of several rounds.
#include "kernels/compile/Batch.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "kernels/emit/HostDialects.h"
#include "kernels/emit/cuda/CudaEmitter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>

namespace {

using namespace mgpu;

constexpr int numKernels = 128, batch = 32, rounds = 3;

double cpuMs() { return double(std::clock()) * 1000 / CLOCKS_PER_SEC; }

/// The least CPU time of `rounds` calls; nothing once one fails.
template <typename Work>
std::optional<double> leastMs(Work work) {
  double least = 1e300;
  for (int round = 0; round < rounds; ++round) {
    double start = cpuMs();
    if (!work())
      return std::nullopt;
    least = std::min(least, cpuMs() - start);
  }
  return least;
}

/// An elementwise kernel of `size` operations, unlike that of another seed.
std::string kernelText(int seed, int size) {
  std::string text =
      "func.func @entry(%x: memref<4096xf32>, %y: memref<4096xf32>) {\n"
      "%i = gpu.global_id x\n"
      "%v0 = memref.load %x[%i] : memref<4096xf32>\n"
      "%c = arith.constant " +
      std::to_string(seed) + ".5 : f32\n";
  for (int k = 0; k < size; ++k) {
    std::string before = "%v" + std::to_string(k);
    text += "%v" + std::to_string(k + 1) + " = arith." +
            (((seed >> (k % 7)) + k) % 2 ? "mulf " : "addf ") + before +
            ", %c : f32\n";
  }
  return text + "memref.store %v" + std::to_string(size) +
         ", %y[%i] : memref<4096xf32>\nreturn\n}\n";
}

Result<kernels::CudaKernel> emit(mlir::MLIRContext &context,
                                 const std::string &text, int number) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return fail(ErrorKind::Internal, "the kernel does not parse");
  return kernels::emitCudaKernel(
      *module, {"k" + std::to_string(number), "", {256}, {16}});
}

std::vector<kernels::CompileJob>
jobsOf(const std::vector<kernels::CudaKernel> &texts, const std::string &arch) {
  std::vector<kernels::CompileJob> jobs;
  for (size_t first = 0; first < texts.size(); first += batch) {
    std::vector<kernels::BatchItem> items;
    for (size_t k = first; k < std::min(first + batch, texts.size()); ++k)
      items.push_back({texts[k].source, texts[k].name, texts[k].name, {}});
    jobs.push_back({kernels::batchSource(items),
                    texts[first].name + ".cu",
                    {"--fmad=false"},
                    arch});
  }
  return jobs;
}

bool smallKernels(mlir::MLIRContext &context, const std::string &arch) {
  std::vector<std::string> sources;
  for (int k = 0; k < numKernels; ++k)
    sources.push_back(kernelText(k, 6));
  std::vector<kernels::CudaKernel> texts;
  auto emitted = leastMs([&] {
    texts.clear();
    for (int k = 0; k < numKernels; ++k) {
      auto kernel = emit(context, sources[k], k);
      if (!kernel)
        return false;
      texts.push_back(std::move(*kernel));
    }
    return true;
  });
  if (!emitted)
    return false;
  std::printf("emit %d small kernels      %8.2f ms\n", numKernels, *emitted);
  auto plain = kernels::NvrtcCompiler::open();
  if (!plain) {
    std::fprintf(stderr, "%s\n", plain.error().message.c_str());
    return true;
  }
  auto allOk = [](const auto &results) {
    return std::all_of(results.begin(), results.end(),
                       [](const auto &result) { return result.has_value(); });
  };
  kernels::CompileLimits oneThread;
  oneThread.threads = 1;
  std::vector<kernels::CompileJob> jobs = jobsOf(texts, arch);
  auto compiled =
      leastMs([&] { return allOk(plain->compileAll(jobs, oneThread)); });
  device::MemoryBlobCache memory;
  auto cached = kernels::NvrtcCompiler::open(&memory);
  if (!compiled || !cached || !allOk(cached->compileAll(jobs, oneThread)))
    return false;
  auto again = leastMs([&] {
    return allOk(cached->compileAll(jobsOf(texts, arch), oneThread));
  });
  std::printf("compile them, %d at a time  %8.2f ms (%s)\n", batch, *compiled,
              arch.c_str());
  std::printf("emit and compile           %8.2f ms\n", *emitted + *compiled);
  std::printf("compile from the cache     %8.2f ms, %.0f x faster\n", *again,
              *compiled / *again);
  std::printf("emit, and compile from it  %8.2f ms, %.1f x faster\n",
              *emitted + *again, (*emitted + *compiled) / (*emitted + *again));
  return true;
}

bool growingKernels(mlir::MLIRContext &context) {
  for (int size : {250, 1000, 4000, 16000}) {
    std::string source = kernelText(1, size);
    auto ms = leastMs([&] { return emit(context, source, 0).has_value(); });
    if (!ms)
      return false;
    std::printf("emit %5d operations      %8.2f ms, %.2f us each\n", size, *ms,
                *ms * 1000 / size);
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::string arch = argc > 1 ? argv[1] : "sm_90";
  // One for all kernels, as mgpu-tune has it: making one takes as long as
  // emitting six small kernels.
  mlir::DialectRegistry registry;
  kernels::registerHostEmitDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  return smallKernels(context, arch) && growingKernels(context) ? 0 : 1;
}
