// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTKERNELABI_H
#define MGPU_DEVICE_HOST_HOSTKERNELABI_H

// The binary interface between a host kernel (a shared object made by
// kernels/emit) and the host device that calls it. Plain C; change `version`
// with it.

#include <cstdint>

namespace mgpu::device {

/// How an object cuts a launch: the source's block, and the threads of the
/// source that one block of the object covers. An object exports one as
/// hostKernelShapeName; one that does not covers the source's blocks.
struct HostKernelShape {
  uint32_t block[3];
  uint32_t covered[3];
};

/// The object's blocks along one axis of a launch of `grid` source blocks.
inline uint64_t blocksAlong(const HostKernelShape &shape, unsigned axis,
                            uint32_t grid) {
  uint64_t threads = uint64_t(grid) * shape.block[axis];
  return (threads + shape.covered[axis] - 1) / shape.covered[axis];
}

/// The grid of the launch, in blocks of the source, and the object's own
/// blocks this call runs: linear numbers (x fastest) firstBlock <= b <
/// lastBlock in the grid of blocksAlong().
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
inline constexpr const char *hostKernelShapeName = "mgt_host_kernel_shape_v1";

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTKERNELABI_H
