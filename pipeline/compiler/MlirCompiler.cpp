// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/MlirCompiler.h"

#include "pipeline/compiler/CudaTexts.h"
#include "pipeline/compiler/ImportProgram.h"
#include "pipeline/compiler/KernelBuild.h"
#include "support/Parallel.h"

namespace mgpu::pipeline {

namespace {

using planner::Dag, planner::KernelId, planner::KernelSpace;

/// `make(k)` of each kernel, on all cores.
template <typename T, typename Make>
Result<std::vector<T>> eachKernel(const Dag &dag, Make make) {
  std::vector<Result<T>> results(dag.kernels.size());
  parallelFor(results.size(), 0, [&](size_t k) { results[k] = make(k); });
  return allOf(std::move(results));
}

class MlirCompiler final : public Compiler {
public:
  Result<LoadedProgram>
  importProgram(const ImportOptions &options,
                std::vector<Message> *messages) const override {
    return pipeline::importProgram(options, messages);
  }
  Result<std::vector<Object>>
  compileKernels(const Dag &dag, const std::string &cpu) const override {
    return eachKernel<Object>(dag, [&](size_t k) {
      return kernels::compileHostKernel(dag.kernels[k], cpu);
    });
  }
  Result<std::vector<KernelSpace>>
  hostKernelSpaces(const Dag &dag) const override {
    const std::vector<Dim3> grids = planner::largestGrids(dag);
    return eachKernel<KernelSpace>(dag, [&](size_t k) {
      return kernels::kernelSpaceOf(dag.kernels[k], grids[k],
                                    planner::KernelTarget::Host);
    });
  }
  Result<Object> buildHostKernel(const Dag &dag, KernelId kernel,
                                 const KernelSpace &space,
                                 const planner::KernelConfig &config,
                                 const std::string &cpu) const override {
    MGPU_TRY_ASSIGN(auto build,
                    kernels::buildHostKernel(dag.kernels[kernel.value], space,
                                             config, cpu));
    return std::move(build.object);
  }
  Result<Object> buildErrorKernel(const Dag &dag,
                                  KernelId kernel) const override {
    return kernels::buildErrorKernel(dag.kernels[kernel.value]);
  }
  std::vector<Result<kernels::CudaText>>
  emitCudaKernels(const Dag &dag, const std::string &tensorCores,
                  device::BlobCache *cache) const override {
    return pipeline::emitCudaKernels(dag, tensorCores, cache);
  }
};

} // namespace

const Compiler &mlirCompiler() {
  static const MlirCompiler compiler;
  return compiler;
}

} // namespace mgpu::pipeline
