// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/KernelWork.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

namespace {

constexpr double lanesOfWarp = 32, bytesOfLine = 128, bytesOfRegister = 4;

/// A warp and a tile of keys.
struct KeyTile {
  double instructions = 0; ///< of the warp
  double lines = 0;        ///< of shared memory
};

// Instructions of a lane for each of its scores: a guard, the scale, the
// largest, a power and its sum; and for each of its sums, which are corrected.
constexpr double ofScore = 14, ofSum = 2;

/// An mma multiplies 16 x 16 by 16 x 8; ldmatrix brings two of its factors by
/// four lines.
KeyTile tileOnTensorCores(const AttentionSizes &sizes, double keys) {
  const double products =
                   keys / 8 * sizes.head / 16 + sizes.value / 8 * keys / 16,
               loads = products / 2;
  return {products + loads + ofScore * 16 * keys / lanesOfWarp +
              ofSum * 16 * sizes.value / lanesOfWarp,
          4 * loads};
}

/// Lanes have a key, and then an element of a value, for each of `rows`
/// queries, whose elements and powers they share.
KeyTile tileByThreads(const AttentionSizes &sizes, double rows) {
  // Four steps are loaded at once: one access for a query, four lines of keys.
  const double columns = std::ceil(sizes.value / lanesOfWarp),
               steps = sizes.head + columns * lanesOfWarp;
  return {steps * (rows + (rows + 4) / 4) + ofScore * rows +
              ofSum * rows * columns,
          steps * (rows + 4) / 4};
}

} // namespace

double AttentionSizes::rowsOfWarp() const {
  // More queries share what a lane loads, and leave fewer registers.
  if (onTensorCores || (queries >= 64 && value <= 128))
    return 16;
  return queries > 4 ? 8 : 2;
}

double AttentionSizes::keysOfTile() const {
  return onTensorCores && head + value <= 128 ? 64 : 32;
}

LaunchWork workOfAttention(const AttentionSizes &sizes, double sourceThreads) {
  const bool isNarrow = sizes.onTensorCores;
  const double rows = sizes.rowsOfWarp(), keys = sizes.keysOfTile();
  const double warps = std::clamp(
      std::exp2(std::ceil(std::log2(sizes.queries / rows))), 1.0, 4.0);
  const KeyTile tile =
      isNarrow ? tileOnTensorCores(sizes, keys) : tileByThreads(sizes, rows);
  const double tiles = std::ceil(sizes.keys / keys),
               threads = lanesOfWarp * warps;
  const double ofTile = keys * (sizes.head + sizes.value), // elements
      ofCopy = isNarrow ? 5.0 / 8 : 7, // instructions for each
      ofQueries = isNarrow ? 0 : rows * warps * sizes.head; // each time again
  LaunchWork work;
  work.blocks = std::ceil(sizes.queries / (rows * warps)) * sizes.batch;
  work.instructions =
      work.blocks * tiles *
      (tile.instructions * threads + ofCopy * (ofTile + ofQueries));
  work.lines = work.blocks * tiles *
               (tile.lines * warps + ofTile * sizes.bytes / bytesOfLine);
  work.movedBytes =
      work.blocks * sizes.bytes *
      (tiles * ofTile + rows * warps * (sizes.head + sizes.value));
  const double flight = ofTile * sizes.bytes / threads,
               held = bytesOfRegister * rows *
                      (sizes.value + (isNarrow ? sizes.head / 2 + keys : 0)) /
                      lanesOfWarp;
  const double resident = std::min(
      work.blocks * threads,
      residentThreads(threads, held, uint64_t(2 * ofTile * sizes.bytes)));
  work.instructions *= idleSchedulers(threads, work.blocks, resident);
  work.flightBytes = flightOfSource(int64_t(flight), resident, sourceThreads);
  return work;
}

} // namespace mgpu::planner
