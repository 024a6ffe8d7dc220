// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_BLOCKSHAPE_H
#define MGPU_PLANNER_IMPORT_BLOCKSHAPE_H

#include "planner/dag/TileWork.h"
#include "planner/import/LaunchWidth.h"

namespace mgpu::planner {

/// The blocks of a launch in a form: those of the source, several of them, or,
/// where the form says how many threads they have, others.
struct BlockShape {
  BlockShape(Dim3 grid, Dim3 block, const LaunchWidth &form);

  Dim3 threadsAlong; ///< of a block, of which `rows` lie beside each other
  uint32_t rows = 1;
  double blocks = 1;

  uint64_t threadsOfBlock() const { return threadsAlong.volume() * rows; }
  double threads() const { return blocks * double(threadsOfBlock()); }
  /// All blocks have so many, each time that all threads of the source come by.
  double warps() const { return warpsOfTurn; }
  /// Threads of the source that a block has along an axis, and the blocks of
  /// the source in which they are.
  int64_t coveredAlong(unsigned axis) const { return covered[axis]; }
  int64_t sourceBlocksAlong(unsigned axis) const { return sources[axis]; }
  /// Threads that run at once on a large GPU, each of which awaits so many
  /// bytes.
  double residents(int64_t flightBytes) const {
    return std::min(threads(), residentThreads(double(threadsOfBlock()),
                                               double(flightBytes)));
  }

private:
  std::array<int64_t, 3> covered{}, sources{};
  double warpsOfTurn = 1;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_BLOCKSHAPE_H
