// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_MLIRCOMPILER_H
#define MGPU_PIPELINE_COMPILER_MLIRCOMPILER_H

#include "pipeline/program/Compiler.h"

#include "mlir/IR/DialectRegistry.h"

namespace mgpu::pipeline {

/// The compiler half. Objects for the host are kept between runs
/// (kernels/compile/KernelCache.h); calls may run at the same time.
class MlirCompiler final : public Compiler {
public:
  Result<LoadedProgram>
  importProgram(const ImportOptions &options,
                std::vector<Message> *messages) const override;
  Result<std::string> decode(std::span<const std::byte> bytecode,
                             const std::string &name) const override;
  Result<std::vector<Object>>
  compileKernels(const planner::Dag &dag,
                 const std::string &cpu) const override;
  std::vector<Result<void>>
  verifyHostKernels(const planner::Dag &dag) const override;
  Result<std::vector<kernels::KernelSpace>>
  hostKernelSpaces(const planner::Dag &dag) const override;
  Result<Object> buildHostKernel(const planner::Dag &dag,
                                 planner::KernelId kernel,
                                 const kernels::KernelSpace &space,
                                 const kernels::KernelConfig &config,
                                 const std::string &cpu) const override;
  Result<Object> buildErrorKernel(const planner::Dag &dag,
                                  planner::KernelId kernel) const override;
  std::vector<Result<kernels::CudaText>>
  emitCudaKernels(const planner::Dag &dag, const Variants &variants,
                  device::BlobCache *cache) const override;
};
const Compiler &mlirCompiler();

/// The dialects that a program may be written in, and those it becomes.
mlir::DialectRegistry programDialects();

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_COMPILER_MLIRCOMPILER_H
