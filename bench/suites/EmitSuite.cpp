// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// From a DAG's kernels to cubins: `bench-emit [ARCH]`. 128 small kernels are
// emitted and compiled as `mgpu-tune kernels` does, then again with a cache
// that has them; and kernels of growing size are emitted. All figures are CPU
// time of this process, on all its threads together, each the least of several
// rounds.
#include "db/SqliteBlobCache.h"
#include "kernels/compile/CompileTexts.h"
#include "kernels/cuda/CudaEmitter.h"
#include "kernels/lower/KernelDialects.h"
#include "pipeline/compiler/MlirCompiler.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <unistd.h>

namespace {

using namespace mgpu;

constexpr int numKernels = 128, rounds = 3;

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

/// A program of them.
planner::Dag smallProgram() {
  planner::Dag dag;
  for (uint32_t k = 0; k < numKernels; ++k) {
    planner::KernelSpec spec;
    spec.name = "k" + std::to_string(k);
    spec.source = planner::MlirKernel{kernelText(int(k), 6)};
    spec.block = {256};
    dag.kernels.push_back(std::move(spec));
    planner::DagNode node;
    node.work = planner::KernelCall{planner::KernelId{k}, {16}, {}};
    dag.nodes.push_back(std::move(node));
  }
  return dag;
}

/// Emits all and compiles them where NVRTC is.
bool build(const planner::Dag &dag, const std::string &arch,
           device::BlobCache *cache) {
  auto texts = allOf(pipeline::mlirCompiler().emitCudaKernels(dag, {}, cache));
  auto programs = texts ? kernels::compileTexts(*texts, arch, cache, {})
                        : tl::unexpected(texts.error());
  auto compiled =
      programs ? allOf(std::move(*programs)) : tl::unexpected(programs.error());
  if (!compiled)
    std::fprintf(stderr, "%s\n", compiled.error().message.c_str());
  return compiled.has_value();
}

bool smallKernels(const std::string &arch) {
  planner::Dag dag = smallProgram();
  auto emitted = leastMs([&] {
    return allOf(pipeline::mlirCompiler().emitCudaKernels(dag, {}, nullptr))
        .has_value();
  });
  if (!emitted)
    return false;
  std::printf("emit %d small kernels      %8.2f ms\n", numKernels, *emitted);
  auto both = leastMs([&] { return build(dag, arch, nullptr); });
  if (!both)
    return true; // no NVRTC
  std::printf("emit and compile them      %8.2f ms (%s)\n", *both,
              arch.c_str());
  std::string path = std::filesystem::temp_directory_path() /
                     ("bench-emit-" + std::to_string(::getpid()) + ".db");
  {
    auto database = db::SqliteBlobCache::open(path);
    device::MemoryBlobCache memory;
    if (!database)
      return false;
    for (auto [name, cache] :
         {std::pair<const char *, device::BlobCache *>("memory", &memory),
          {"a database", database->get()}}) {
      if (!build(dag, arch, cache))
        return false;
      auto again = leastMs([&] { return build(dag, arch, cache); });
      std::printf("again, from %-10s     %8.2f ms, %.0f x faster\n", name,
                  *again, *both / *again);
    }
  }
  for (const char *suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(path + suffix);
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
  return smallKernels(arch) && growingKernels(context) ? 0 : 1;
}
