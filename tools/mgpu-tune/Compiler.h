// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_COMPILER_H
#define MGPU_TOOLS_MGPU_TUNE_COMPILER_H

// What of mgpu-tune needs the compiler half. Compiler.cpp has it;
// NoCompiler.cpp stands in for it in a runtime-only build and says so.

#include "tools/mgpu-tune/Program.h"

namespace mgpu::tune {

/// As loadProgram() says.
Result<Program> importProgram(const Options &options, bool racesAreErrors,
                              std::vector<Message> *messages, bool kernelTexts);

/// Compiles every kernel for `cpu`, "native" or a level, on all cores.
Result<std::vector<std::vector<std::byte>>>
compileKernels(const planner::Dag &dag, const std::string &cpu);

/// Every kernel of the DAG, in its order, or an error that names the operation
/// that cannot be emitted. The candidates of matrix products of f16 and bf16
/// that `tensorCores` names (Options) take the place of what is used by
/// default. Texts are kept in `cache`, which may be null.
std::vector<Result<kernels::CudaText>>
emitCudaKernels(const planner::Dag &dag, const std::string &tensorCores,
                device::BlobCache *cache);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_COMPILER_H
