// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_STRIDEDCOPY_H
#define MGPU_DEVICE_API_STRIDEDCOPY_H

// Box-to-box copies, compiled once and run at every replay.

#include "device/api/CopyNest.h"

namespace mgpu::device {

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

#endif // MGPU_DEVICE_API_STRIDEDCOPY_H
