// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTKERNELABI_H
#define MGPU_DEVICE_HOST_HOSTKERNELABI_H

// The binary interface between a host kernel (a shared object made by
// kernels/emit) and the host device that calls it. Plain C; change `version`
// with it.

#include <cstdint>

namespace mgpu::device {

/// The logical grid of the launch, and the blocks this call runs:
/// linear block numbers (x fastest) firstBlock <= b < lastBlock.
struct HostLaunch {
  uint32_t grid[3];
  uint32_t reserved;
  uint64_t firstBlock, lastBlock;
};

/// `arguments[i]` is the address of memref i's first byte, or a scalar's bits
/// in the low bytes.
using HostKernelEntry = void (*)(const uint64_t *arguments,
                                 const HostLaunch *launch);

inline constexpr const char *hostKernelEntryName = "mgt_host_kernel_v1";

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTKERNELABI_H
