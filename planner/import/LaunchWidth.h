// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_LAUNCHWIDTH_H
#define MGPU_PLANNER_IMPORT_LAUNCHWIDTH_H

#include "planner/import/AffineForm.h"

namespace mgpu::planner {

/// Bytes that one instruction of a thread loads or stores at most.
inline constexpr int64_t widestAccess = 16;

/// How a GPU computes a launch: what changes none of its bits.
struct LaunchWidth {
  /// Threads of the source, neighbours along x, that one thread is.
  uint32_t vector = 1;
  /// Blocks of the source, neighbours along x, that lie beside each other in
  /// one block, a warp each.
  uint32_t rows = 1;
  /// Threads of a block along x of a kernel that may have any; 0: as in the
  /// source.
  uint32_t blockX = 0;
  /// Trips of loops whose loads are under way at once; 0: as the compiler
  /// likes.
  uint32_t unroll = 0;
  /// Blocks that must fit one multiprocessor, so that a thread has no more
  /// registers than it needs.
  uint32_t minBlocks = 1;
  // What only a configuration says.
  uint32_t blockY = 0, blockZ = 0; ///< as blockX
  /// Threads of the source along x that one thread is one after the other, or,
  /// where blocks are those of the source, blocks that one block is.
  uint32_t items = 1;
  bool isStaged = false; ///< what threads share, or read across, is copied to
                         ///< workgroup memory first
  auto operator<=>(const LaunchWidth &) const = default;
};

/// The widest form whose accesses are aligned, that leaves work for a large
/// GPU. It follows from the text of a kernel, so that the cost model and the
/// kernel's space name the same one.
LaunchWidth launchFormOf(mlir::Region &body, Dim3 grid, Dim3 block,
                         AffineEvaluator &affine);

/// Whether the value differs between threads that are neighbours along x.
bool variesAlongX(mlir::Value value);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_LAUNCHWIDTH_H
