// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/MlirCompiler.h"

#include "kernels/compile/KernelCache.h"
#include "pipeline/compiler/KernelBuild.h"
#include "pipeline/compiler/ParsedKernel.h"
#include "support/Parallel.h"
#include "support/Progress.h"

namespace mgpu::pipeline {

using planner::Dag, planner::KernelId, kernels::KernelSpace;

/// `make(k)` of each kernel, on all cores.
template <typename T, typename Make>
static Result<std::vector<T>> eachKernel(const Dag &dag, Make make) {
  std::vector<Result<T>> results(dag.kernels.size());
  parallelFor(results.size(), 0, [&](size_t k) { results[k] = make(k); });
  return allOf(std::move(results));
}

/// Keeps what `make` compiles between runs, under `key`.
template <typename Make>
static Result<Compiler::Object> kept(const std::optional<std::string> &key,
                                     Make make) {
  device::BlobCache *cache = key ? kernels::userKernelCache() : nullptr;
  if (cache)
    if (auto known = cache->find(*key))
      return std::move(*known);
  Result<Compiler::Object> object = make();
  if (cache && object)
    cache->store(*key, *object);
  return object;
}

Result<std::vector<Compiler::Object>>
MlirCompiler::compileKernels(const Dag &dag, const std::string &cpu) const {
  Progress progress("compiling kernels for " + cpu, dag.kernels.size());
  return eachKernel<Object>(dag, [&](size_t k) {
    const planner::KernelSpec &kernel = dag.kernels[k];
    auto object = kept(kernels::hostKernelKey(kernel, cpu),
                       [&] { return kernels::compileHostKernel(kernel, cpu); });
    progress.step();
    return object;
  });
}

std::vector<Result<void>>
MlirCompiler::verifyHostKernels(const Dag &dag) const {
  std::vector<Result<void>> results(dag.kernels.size());
  // To make a context takes longer than many a kernel.
  const size_t threads = std::min<size_t>(
      results.size(), std::max(1u, std::thread::hardware_concurrency()));
  kernels::SoundForms sound;
  parallelFor(threads, threads, [&](size_t thread) {
    const auto context = kernels::kernelContext();
    for (size_t k = thread; k < results.size(); k += threads)
      results[k] = kernels::verifyHostKernel(dag.kernels[k], *context, sound);
  });
  return results;
}

Result<std::vector<KernelSpace>>
MlirCompiler::hostKernelSpaces(const Dag &dag) const {
  const std::vector<Dim3> grids = planner::largestGrids(dag);
  return eachKernel<KernelSpace>(dag, [&](size_t k) {
    return kernels::kernelSpaceOf(dag.kernels[k], grids[k],
                                  kernels::KernelTarget::Host);
  });
}

Result<Compiler::Object> MlirCompiler::buildHostKernel(
    const Dag &dag, KernelId kernel, const KernelSpace &space,
    const kernels::KernelConfig &config, const std::string &cpu) const {
  const planner::KernelSpec &spec = dag.kernels[kernel.value];
  return kept(
      kernels::hostKernelKey(spec, cpu, &config), [&]() -> Result<Object> {
        MGPU_TRY_ASSIGN(auto build,
                        kernels::buildHostKernel(spec, space, config, cpu));
        return std::move(build.object);
      });
}

Result<Compiler::Object> MlirCompiler::buildErrorKernel(const Dag &dag,
                                                        KernelId kernel) const {
  return kernels::buildErrorKernel(dag.kernels[kernel.value]);
}

const Compiler &mlirCompiler() {
  static const MlirCompiler compiler;
  return compiler;
}

} // namespace mgpu::pipeline
