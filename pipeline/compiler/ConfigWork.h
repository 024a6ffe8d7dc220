// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_COMPILER_CONFIGWORK_H
#define MGPU_PIPELINE_COMPILER_CONFIGWORK_H

// What a launch asks of a GPU in a configuration of its kernel. No MLIR in this
// interface.

#include "kernels/compile/CudaText.h"
#include "planner/dag/Dag.h"

namespace mgpu::kernels {

/// One answer for each configuration of `text`'s space; none where a library
/// computes the product, or where the kernel was written by hand. Internal
/// where the source does not parse.
Result<std::vector<std::optional<planner::LaunchWork>>>
launchWorkOf(const planner::KernelSpec &spec, const planner::KernelCall &call,
             const CudaText &text, std::span<const KernelConfig> configs);

} // namespace mgpu::kernels

#endif // MGPU_PIPELINE_COMPILER_CONFIGWORK_H
