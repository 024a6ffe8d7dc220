// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_TILEWORK_H
#define MGPU_PLANNER_DAG_TILEWORK_H

// What a matrix product in tiles of shared memory asks of a GPU, and how many
// threads of a launch run at once, and so await memory, together.

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// C += A * B, or C = A * B, `batch` times.
struct ProductSizes {
  double m = 0, n = 0, k = 0, batch = 1;
  uint32_t factorBytes = 4, sumBytes = 4; ///< of an element
  bool overwrites = false;                ///< C is not read
  bool isTurned = false;                  ///< B is stored n x k
};

/// A block and its tile of C.
struct TileForm {
  enum class Kind : uint8_t {
    Threads, ///< each thread has tileX x tileY elements (kernels/cuda/Matmul.h)
    Mma,     ///< warps have mma.sync (kernels/cuda/TensorMatmul.h)
    Wgmma,   ///< warpgroups have wgmma (kernels/cuda/WgmmaMatmul.h)
  };
  Kind kind = Kind::Threads;
  uint32_t blockX = 16, blockY = 16; ///< threads of a block
  uint32_t rows = 64, columns = 64;  ///< of a tile
  uint32_t tileX = 4, tileY = 4;     ///< Threads
  uint32_t depth = 16, stages = 2;   ///< steps of k in a stage
  uint32_t warpsY = 1;               ///< Mma: rows of warps
  uint32_t tiles = 1;                ///< of a block, one after the other
  uint64_t sharedBytes = 0;          ///< of a block
};

/// How products of f32 and f64 are computed where nothing else is asked for.
TileForm tilesByDefault(const ProductSizes &sizes);

/// `sourceThreads` are those of the launch in the source.
LaunchWork workOfTiles(const ProductSizes &sizes, const TileForm &form,
                       double sourceThreads);

/// Threads that a large GPU holds of blocks of `threads`, each of which has so
/// many bytes in registers beside what any thread has, where a block has so
/// much shared memory.
double residentThreads(double threads, double registerBytes,
                       uint64_t sharedBytes = 0);

/// How much longer instructions take where a multiprocessor has fewer subgroups
/// than schedulers, in blocks of `threads`, of which `resident` run at once.
double idleSchedulers(double threads, double blocks, double resident);

/// LaunchWork::flightBytes, where `resident` threads run at once that await
/// `flightBytes` each.
uint32_t flightOfSource(int64_t flightBytes, double resident,
                        double sourceThreads);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_TILEWORK_H
