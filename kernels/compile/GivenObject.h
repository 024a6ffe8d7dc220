// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_GIVENOBJECT_H
#define MGPU_KERNELS_COMPILE_GIVENOBJECT_H

// Kernels that the host target runs as they are given: those that a user wrote
// for GPUs alone, by their PTX (kernels/ptx), and registered functions.

#include "device/api/BlobCache.h"
#include "planner/dag/KernelSpec.h"

namespace mgpu::kernels {

/// Whether a kernel is one of those: it is given as PTX or as CUDA C++, and not
/// for the host, or it calls a registered function.
bool runsAsGiven(const planner::KernelSpec &kernel);

/// The object of such a kernel. A call and PTX need nothing; CUDA C++ needs
/// NVRTC, which compiles it for sm_80, or for sm_90 where it needs that, with
/// each tunable's value or its default. Errors: Absent without NVRTC, Invalid
/// with the compiler's first message, and as kernels/ptx refuses an
/// instruction.
Result<std::vector<std::byte>>
givenObject(const planner::KernelSpec &kernel,
            const std::vector<std::pair<std::string, uint32_t>> &macros,
            device::BlobCache *cache);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_GIVENOBJECT_H
