// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_COPYNEST_H
#define MGPU_DEVICE_API_COPYNEST_H

// Boxes as backends copy them: sliced, and two of them as one loop nest.

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace mgpu::device {

/// The part of `box` that is slice `index` of `count` equal ones in row-major
/// order, if it is itself a box.
Result<Box> sliceBox(const Box &box, uint32_t index, uint32_t count);

/// The box of equal elements in the fewest dimensions.
Box collapse(const Box &box);

/// A box of as many elements, without gaps, from byte 0 on.
Box packedBox(const Box &like);

/// Whether the byte ranges of two boxes at these bases share a byte.
bool overlaps(const std::byte *a, const Box &boxA, const std::byte *b,
              const Box &boxB);

/// Whether a copy from one box to the other makes sense: both well-formed,
/// equal count and width, and an address at both ends if there is any byte.
Result<void> checkCopy(const std::byte *destination, const Box &destinationBox,
                       const std::byte *source, const Box &sourceBox);

/// A copy as loops over rows: rowBytes at
/// destination + sum(i[k] * dims[k].destinationStride) from
/// source + sum(i[k] * dims[k].sourceStride), 0 <= i[k] < dims[k].size.
struct CopyNest {
  struct Dim {
    int64_t size, destinationStride, sourceStride; ///< strides in bytes
  };
  std::byte *destination = nullptr;
  const std::byte *source = nullptr;
  std::vector<Dim> dims; ///< outermost first
  int64_t rowBytes = 0;  ///< contiguous at both ends; 0 when empty
};

/// The elements in row-major order; the boxes passed checkCopy. Nothing where
/// their shapes have no common refinement: a packed box has one with any.
std::optional<CopyNest> makeNest(std::byte *destination,
                                 const Box &destinationBox,
                                 const std::byte *source, const Box &sourceBox);

// Box-to-box copies, compiled once and run at every replay.

/// Copies the elements of one box to another of equal count and width, in
/// row-major order. The result is as if all were read before any is written,
/// however the boxes overlap.
class StridedCopy {
public:
  static Result<StridedCopy> create(std::byte *destination,
                                    const Box &destinationBox,
                                    const std::byte *source,
                                    const Box &sourceBox);
  void run();

private:
  std::vector<std::byte> staging; ///< only when the boxes overlap
  CopyNest first, second;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_COPYNEST_H
