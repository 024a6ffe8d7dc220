// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_KERNELWORK_H
#define MGPU_PLANNER_DAG_KERNELWORK_H

#include "planner/dag/Dag.h"

namespace mgpu::planner {

/// The work that the launch of the facts asks of a GPU: instructions, lines of
/// memory and sectors, as the text of its kernel has them in one form. The
/// emitter may do better (a row in registers); it does not change which bytes a
/// block needs.
LaunchWork workOf(const KernelFacts &facts, const LaunchWidth &form);

// TileWork.cpp: matrix products in tiles of shared memory, and how many threads
// of a launch run at once, and so await memory, together.

/// A block and its tile of C.
struct TileForm {
  enum class Kind : uint8_t {
    Threads, ///< each thread has tileX x tileY elements
             ///< (kernels/cuda/Matmul.cpp)
    Mma,     ///< warps have mma.sync (kernels/cuda/TensorMatmul.cpp)
    Wgmma,   ///< warpgroups have wgmma (kernels/cuda/WgmmaMatmul.cpp)
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
TileForm tilesByDefault(const Product &sizes);

/// `sourceThreads` are those of the launch in the source.
LaunchWork workOfTiles(const Product &sizes, const TileForm &form,
                       double sourceThreads);

/// TileWork.cpp: softmax(score(Q K^T)) V, in f32 or, on tensor cores, in
/// narrow types (kernels/cuda/Attention.cpp, TensorAttention.cpp).
struct AttentionSizes {
  double batch = 1, queries = 1, keys = 1, head = 1, value = 1;
  uint32_t bytes = 4; ///< of an element
  bool onTensorCores = false;
  double flops() const { return 2 * batch * queries * keys * (head + value); }
  /// Queries of a warp where nothing else is asked for, and keys of a tile.
  double rowsOfWarp() const;
  double keysOfTile() const;
  /// Whether tensor cores take a head or a value of so many elements.
  static bool fitsTensorCores(int64_t size) {
    return size % 16 == 0 && size <= 128;
  }
};

/// `sourceThreads` are those of the launch in the source.
LaunchWork workOfAttention(const AttentionSizes &sizes, double sourceThreads);

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

#endif // MGPU_PLANNER_DAG_KERNELWORK_H
