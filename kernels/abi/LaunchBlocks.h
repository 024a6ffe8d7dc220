// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_LAUNCHBLOCKS_H
#define MGPU_KERNELS_ABI_LAUNCHBLOCKS_H

// How many blocks a compiled kernel runs for a launch of the source's.

#include "support/Types.h"

namespace mgpu::kernels {

/// Along one axis: `count` blocks of the source have `source` threads each, and
/// one block of the compiled kernel covers `covers` of them.
constexpr uint64_t blocksAlong(uint64_t count, uint64_t source,
                               uint64_t covers) {
  return (count * source + covers - 1) / covers;
}

/// A dimension may exceed what CUDA takes in one launch.
struct LaunchBlocks {
  uint64_t x = 0, y = 0, z = 0;
};

/// The last cluster along each axis is made whole.
constexpr LaunchBlocks launchBlocks(Dim3 grid, Dim3 source, Dim3 covers,
                                    Dim3 cluster) {
  auto whole = [](uint64_t blocks, uint64_t each) {
    return (blocks + each - 1) / each * each;
  };
  return {whole(blocksAlong(grid.x, source.x, covers.x), cluster.x),
          whole(blocksAlong(grid.y, source.y, covers.y), cluster.y),
          whole(blocksAlong(grid.z, source.z, covers.z), cluster.z)};
}

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_LAUNCHBLOCKS_H
