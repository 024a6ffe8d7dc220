// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_HOSTKERNELABI_H
#define MGPU_KERNELS_ABI_HOSTKERNELABI_H

// The binary interface between a host kernel (a shared object made by
// kernels/host) and the host device that calls it. Plain C; change `version`
// with it.

#include "kernels/abi/KernelImage.h"

#include <cstdint>

namespace mgpu::kernels {

/// How an object cuts a launch: the source's block, and the threads of the
/// source that one block of the object covers. An object exports one as
/// hostKernelShapeName; one that does not covers the source's blocks.
struct HostKernelShape {
  uint32_t block[3];
  uint32_t covered[3];
};

/// The object's blocks along one axis for `count` blocks of the source.
inline uint64_t blocksAlong(const HostKernelShape &shape, unsigned axis,
                            uint32_t count) {
  return blocksAlong(count, shape.block[axis], shape.covered[axis]);
}

/// All in blocks of the source but firstBlock and lastBlock: the grid, as the
/// kernel sees it; the part of it that the launch runs, `count` blocks from
/// `first` on; and of that part the object's own blocks that this call runs:
/// linear numbers (x fastest) firstBlock <= b < lastBlock in the grid of
/// blocksAlong(shape, axis, count[axis]), whose first begins where the part
/// does. An object of version 1 reads no further than lastBlock.
struct HostLaunch {
  uint32_t grid[3];
  uint32_t reserved;
  uint64_t firstBlock, lastBlock;
  uint32_t first[3], count[3];
};

/// `arguments[i]` is the address of memref i's first byte, or a scalar's bits
/// in the low bytes.
using HostKernelEntry = void (*)(const uint64_t *arguments,
                                 const HostLaunch *launch);

/// A kernel that stops by itself executes these bytes, an instruction that no
/// processor has (ud1), with the address of a sentence in rdi: what is wrong,
/// ended by 0, to follow the kernel's name.
inline constexpr unsigned char hostKernelStop[] = {0x67, 0x0f, 0xb9, 0x40,
                                                   0x4d};

inline constexpr const char *hostKernelEntryName = "mgt_host_kernel_v2";
/// Knows no part but the whole grid; bundles may have such objects.
inline constexpr const char *hostKernelEntryNameV1 = "mgt_host_kernel_v1";
inline constexpr const char *hostKernelShapeName = "mgt_host_kernel_shape_v1";
/// An object that exports this has blocks that may wait for each other: each
/// call is of one, and all are made at the same time.
inline constexpr const char *hostKernelAwaitsName = "mgt_host_kernel_awaits_v1";

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_HOSTKERNELABI_H
