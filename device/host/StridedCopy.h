// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_STRIDEDCOPY_H
#define MGPU_DEVICE_HOST_STRIDEDCOPY_H

// Box-to-box copies, compiled once and run at every replay.

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <vector>

namespace mgpu::device {

/// The part of `box` that is slice `index` of `count` equal ones in row-major
/// order, if it is itself a box.
Result<Box> sliceBox(const Box &box, uint32_t index, uint32_t count);

/// The same elements in the fewest dimensions.
Box collapse(const Box &box);

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
  struct Dim {
    int64_t size, destinationStride, sourceStride;
  };
  /// One pass without overlap.
  struct Pass {
    std::byte *destination = nullptr;
    const std::byte *source = nullptr;
    std::vector<Dim> dims; ///< outermost first
    int64_t rowBytes = 0;  ///< contiguous at both ends
    bool empty = false;
    void run() const;
  };

  static Pass makePass(std::byte *destination, const Box &destinationBox,
                       const std::byte *source, const Box &sourceBox);

  std::vector<std::byte> staging; ///< only when the boxes overlap
  Pass first, second;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_STRIDEDCOPY_H
