// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/ProductTiles.h"

#include <algorithm>

namespace mgpu::kernels::host {

static int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// The least multiple of `unit` that cuts `size` into as few pieces as `most`
/// does.
static int64_t evenly(int64_t size, int64_t most, int64_t unit) {
  return ceilDiv(ceilDiv(size, ceilDiv(size, most)), unit) * unit;
}

ProductTiles tilesOf(int64_t m, int64_t n, int64_t k, unsigned vectorBits,
                     unsigned bytes) {
  const int64_t registers = vectorBits == 512 ? 32 : 16;
  ProductTiles best, tried;
  tried.lanes = vectorBits / (8 * bytes);
  double least = 0;
  for (const bool isTurned : {false, true})
    for (int64_t vectors = 1; vectors <= 4; ++vectors)
      for (int64_t rows = 1; rows * vectors + vectors + 1 <= registers;
           ++rows) {
        tried.isTurned = isTurned;
        tried.vectors = vectors;
        tried.rows = rows;
        // Half cycles of a step of k: two operations start in a cycle, as do
        // two loads, and eight are under way at once.
        const int64_t sums = rows * vectors, loads = rows + vectors;
        const double step = double(std::max({sums, loads, int64_t(8)})) +
                            0.1 * double(loads) + (rows % 4 != 0 ? 0.4 : 0);
        const double cycles = step * double(ceilDiv(isTurned ? n : m, rows)) *
                              double(ceilDiv(isTurned ? m : n, tried.width()));
        if (least == 0 || cycles < least) {
          least = cycles;
          best = tried;
        }
      }
  // Threads may have stacks of 2 MiB. A panel of 512 steps of f32 by 384 is
  // 768 KiB, as are 256 steps of f64; C's block takes half of that.
  const int64_t down = best.isTurned ? n : m, across = best.isTurned ? m : n;
  best.depth = evenly(k, 2048 / bytes, 1);
  best.across = evenly(across, 320, best.width());
  best.down = evenly(down, 1000 / bytes, best.rows);
  best.block = std::min(best.down, 168 / best.rows * best.rows);
  return best;
}

} // namespace mgpu::kernels::host
