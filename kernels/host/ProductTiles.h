// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_PRODUCTTILES_H
#define MGPU_KERNELS_HOST_PRODUCTTILES_H

// The sizes by which a matrix product is cut on the host (PackedProduct.h).

#include <cstdint>

namespace mgpu::kernels::host {

/// A product's result is cut across, along its vectors, and down. Sizes are in
/// elements.
struct ProductTiles {
  /// Vectors lie along C's columns, or along its rows where this is set.
  bool isTurned = false;
  /// The sums that registers hold: `rows` down, `vectors` of `lanes` across.
  int64_t rows = 1, vectors = 1, lanes = 1;
  int64_t depth = 1; ///< steps of k that panels have
  int64_t block = 1; ///< packed down at a time; a multiple of `rows`
  /// A block of the object computes so much; multiples of a register tile's.
  int64_t down = 1, across = 1;

  int64_t width() const { return vectors * lanes; }
  /// Elements of the sums that wait in memory for the next steps of k.
  int64_t waiting(int64_t k) const {
    return k > depth ? down * across : rows * width();
  }
};

/// The tiles of m x k by k x n on a processor with vectors of `vectorBits`
/// whose sums have `bytes`. The register tile is the one with the fewest
/// cycles over all of C, its edges filled up; panels and waiting sums take
/// less than 1600 KiB.
ProductTiles tilesOf(int64_t m, int64_t n, int64_t k, unsigned vectorBits,
                     unsigned bytes);

} // namespace mgpu::kernels::host

#endif // MGPU_KERNELS_HOST_PRODUCTTILES_H
