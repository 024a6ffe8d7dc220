// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_HOSTCOMPILER_H
#define MGPU_KERNELS_COMPILE_HOSTCOMPILER_H

// Kernels that a user wrote as C++ for the host, compiled by the system's
// compiler into objects of the host kernel ABI. The function computes one
// block:
//
//   void scale(mgpu_block block, float *y, float a, int64_t n) {
//     for (uint32_t t = 0; t < block.size.x; ++t) {
//       int64_t i = int64_t(block.index.x) * block.size.x + t;
//       if (i < n)
//         y[i] *= a;
//     }
//   }

#include "device/api/BlobCache.h"
#include "planner/dag/KernelSpec.h"

namespace mgpu::kernels {

/// Values of the kernel's tunables, which are macros.
using HostMacros = std::vector<std::pair<std::string, uint32_t>>;

/// The whole text that is compiled: the kernel's own between what it is given
/// and the entry of the ABI. A tunable that `macros` does not name has its
/// default.
std::string hostSourceText(const planner::KernelSpec &kernel,
                           const HostMacros &macros);

/// The kernel's CudaFile::host for a CPU level ("x86-64-v3"), with every
/// rounding kept (-ffp-contract=off). The compiler is CXX of the environment,
/// else c++, g++ or clang++; no shell is used. `cache` may be null. Errors:
/// Absent without a compiler, Invalid with the compiler's first complaint.
Result<std::vector<std::byte>>
compileHostSource(const planner::KernelSpec &kernel, const HostMacros &macros,
                  const std::string &cpu, device::BlobCache *cache);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_HOSTCOMPILER_H
