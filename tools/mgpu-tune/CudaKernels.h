// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_CUDAKERNELS_H
#define MGPU_TOOLS_MGPU_TUNE_CUDAKERNELS_H

// CUDA C++ of a program's kernels to cubins.

#include "kernels/compile/CompiledKernel.h"
#include "tools/mgpu-tune/Program.h"

#include <memory>

namespace mgpu::tune {

/// A kernel's program, which small kernels share, and its own figures.
struct CompiledText {
  std::shared_ptr<const kernels::CompiledKernel> program;
  const kernels::EntryUsage *usage; ///< in `program`
};

/// Each text, in their order; warnings go to stderr.
Result<std::vector<CompiledText>>
compileTexts(const std::vector<CudaText> &texts, const std::string &arch);

/// Every kernel of the DAG as Driver::loadKernel of the CUDA target takes it.
Result<std::vector<std::vector<std::byte>>>
compileCudaKernels(const planner::Dag &dag, const std::string &arch);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_CUDAKERNELS_H
