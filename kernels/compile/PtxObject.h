// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_PTXOBJECT_H
#define MGPU_KERNELS_COMPILE_PTXOBJECT_H

// Kernels that a user wrote for GPUs alone, as the host target executes them:
// by their PTX (kernels/ptx).

#include "device/api/BlobCache.h"
#include "kernels/abi/CompiledKernel.h"
#include "planner/dag/KernelSpec.h"

#include <string_view>

namespace mgpu::kernels {

/// Whether the host target runs a kernel by its PTX: it is given as PTX or as
/// CUDA C++, and not for the host.
bool runsAsPtx(const planner::KernelSpec &kernel);

/// The object of such a kernel. PTX needs nothing; CUDA C++ needs NVRTC, which
/// compiles it for sm_80, or for sm_90 where it needs that, with each tunable's
/// value or its default. Errors: Absent without NVRTC, Invalid with the
/// compiler's first message, and as kernels/ptx refuses an instruction.
Result<std::vector<std::byte>>
ptxObject(const planner::KernelSpec &kernel,
          const std::vector<std::pair<std::string, uint32_t>> &macros,
          device::BlobCache *cache);

/// The entry functions named in a log made with `-Xptxas -v`, in its order.
/// The format is that of CUDA 12 and 13: "ptxas info    : Compiling entry
/// function 'k' for 'sm_90'", then the lines about it. Unknown lines are
/// skipped.
std::vector<EntryUsage> parsePtxasLog(std::string_view log);

/// Whether the compiler warned.
bool hasWarning(std::string_view log);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_PTXOBJECT_H
