// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_SOURCECOMPILER_H
#define MGPU_PIPELINE_PROGRAM_SOURCECOMPILER_H

// Kernels of a program that was built by calls, which are source or compiled
// already: C++ for the host by the system's compiler, CUDA C++ by NVRTC.

#include "pipeline/program/Compiler.h"

namespace mgpu::pipeline {

/// Objects for the host are kept between runs (kernels/compile/KernelCache.h);
/// calls may run at the same time.
class SourceCompiler final : public Compiler {
public:
  /// Unsupported for a kernel that has no C++ for the host.
  Result<std::vector<Object>>
  compileKernels(const planner::Dag &dag,
                 const std::string &cpu) const override;
  /// The tunables of each.
  Result<std::vector<kernels::KernelSpace>>
  hostKernelSpaces(const planner::Dag &dag) const override;
  Result<Object> buildHostKernel(const planner::Dag &dag,
                                 planner::KernelId kernel,
                                 const kernels::KernelSpace &space,
                                 const kernels::KernelConfig &config,
                                 const std::string &cpu) const override;
  std::vector<Result<kernels::CudaText>>
  emitCudaKernels(const planner::Dag &dag, const Variants &variants,
                  device::BlobCache *cache) const override;
};
const Compiler &sourceCompiler();

/// A program of a planner::ProgramBuilder as the later steps take it.
LoadedProgram loadBuilt(const planner::Program &program,
                        const std::string &target);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_SOURCECOMPILER_H
