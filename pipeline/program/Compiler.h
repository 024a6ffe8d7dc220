// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_COMPILER_H
#define MGPU_PIPELINE_PROGRAM_COMPILER_H

// The compiler half as the pipeline sees it. pipeline/compiler implements it
// over MLIR.

#include "device/api/BlobCache.h"
#include "kernels/compile/CudaText.h"
#include "kernels/space/KernelSpace.h"
#include "pipeline/program/LoadedProgram.h"

namespace mgpu::pipeline {

/// The base class is the compiler of a build without the compiler half: where
/// there is something to compile it fails with Unsupported, and a sentence that
/// says so.
class Compiler {
public:
  using Object = std::vector<std::byte>;
  virtual ~Compiler() = default;

  /// Reads an .mlir program: its arguments, DAG and notFused are set. Its
  /// diagnostics go to stderr as they are found, with their source lines, and
  /// into `messages` when it is not null.
  virtual Result<LoadedProgram>
  importProgram(const ImportOptions &options,
                std::vector<Message> *messages) const;

  /// The text of a program that is MLIR bytecode; `name` is what errors call
  /// it. The bytes need not be trusted: a process of its own reads them.
  virtual Result<std::string> decode(std::span<const std::byte> bytecode,
                                     const std::string &name) const;

  /// Every kernel for `cpu` ("native" or a level), compiled on all cores.
  virtual Result<std::vector<Object>>
  compileKernels(const planner::Dag &dag, const std::string &cpu) const;
  /// Says, by KernelId, whether the host target would refuse to compile a
  /// kernel, without compiling it.
  virtual std::vector<Result<void>>
  verifyHostKernels(const planner::Dag &dag) const;
  /// The variants of each kernel for the host target, by KernelId.
  virtual Result<std::vector<kernels::KernelSpace>>
  hostKernelSpaces(const planner::Dag &dag) const;
  /// One of them, for "native" or a CPU level. Thread-safe.
  virtual Result<Object> buildHostKernel(const planner::Dag &dag,
                                         planner::KernelId kernel,
                                         const kernels::KernelSpace &space,
                                         const kernels::KernelConfig &config,
                                         const std::string &cpu) const;
  /// Builds the kernel in f64, with the size of its errors
  /// (kernels/host/ErrorBounds.h).
  virtual Result<Object> buildErrorKernel(const planner::Dag &dag,
                                          planner::KernelId kernel) const;
  /// Every kernel as CUDA C++, in the order of the DAG, or an error that names
  /// the operation that cannot be emitted. `cache` keeps the texts, and may be
  /// null.
  virtual std::vector<Result<kernels::CudaText>>
  emitCudaKernels(const planner::Dag &dag, const Variants &variants,
                  device::BlobCache *cache) const;
};

// Kernels of a program that was built by calls, which are source or compiled
// already: C++ for the host by the system's compiler, CUDA C++ by NVRTC.

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

#endif // MGPU_PIPELINE_PROGRAM_COMPILER_H
