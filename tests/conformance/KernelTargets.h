// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_CONFORMANCE_KERNELTARGETS_H
#define MGPU_TESTS_CONFORMANCE_KERNELTARGETS_H

// The kernels of a program one after the other, on the host target and as CUDA
// C++ run on the processor.

#include "tests/conformance/KernelMemory.h"

#include "kernels/space/KernelConfig.h"

namespace mgpu::conformance {

/// What the first call of each kernel, in their order, leaves in `initial`'s
/// buffers on the host target. Expects the same bits of each kernel's text for
/// GPUs in its default configuration, and in those of `more` that it has, which
/// planner::parseKernelConfig reads.
Memory runOnEachTarget(const planner::Dag &dag, const Memory &initial,
                       const std::vector<std::string> &more);

} // namespace mgpu::conformance

#endif // MGPU_TESTS_CONFORMANCE_KERNELTARGETS_H
