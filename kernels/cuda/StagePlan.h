// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_STAGEPLAN_H
#define MGPU_KERNELS_CUDA_STAGEPLAN_H

#include "kernels/lower/LaunchShape.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseMap.h"

#include <array>

namespace mgpu::kernels::cuda {

/// The tile that MGPU_STAGE=1 keeps in shared memory: the part that a block
/// reads of a buffer. The kernel must only read the buffer, and its threads
/// read there what their neighbours read too, or elements whose neighbours in
/// memory are those of neighbours along another axis than x. Along an axis of
/// the launch the part is as long as the block and `halo` more.
struct StageTile {
  mlir::BlockArgument buffer;
  std::array<bool, 3> along{}; ///< whether along x, y and z: x always
  /// Axes, first the one along which threads read neighbouring elements.
  std::array<size_t, 3> order{0, 1, 2};
  std::array<uint32_t, 3> halo{};
  /// Elements of the buffer from one thread to the next along x, y and z, of
  /// which the first of `order` has 1, and from its first element to the tile's
  /// first for the block at 0.
  std::array<int64_t, 3> stride{};
  int64_t first = 0;
  uint32_t elementBytes = 0;
  /// Threads along x read a column: rows of the tile are one element apart, so
  /// that they lie in different banks.
  bool isTransposed() const { return order[0] != 0; }
};

struct StagePlan {
  struct Load {
    size_t tile;
    std::array<int64_t, 3> at; ///< in it, from the thread's own place
  };
  std::vector<StageTile> tiles;
  llvm::DenseMap<mlir::Operation *, Load> loads;
  bool empty() const { return tiles.empty(); }
};

/// Empty for a kernel whose threads meet (`shape`), and where no two loads of a
/// buffer of static size read at positions that differ by a number and move
/// with the thread's index by one element along x, and none moves so along
/// another axis. Nor is a load staged before
/// which the same thread may have stored: two buffers may be one.
StagePlan stagePlanOf(mlir::func::FuncOp entry, const LaunchShape &shape,
                      Dim3 block, Dim3 maxGrid);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_STAGEPLAN_H
