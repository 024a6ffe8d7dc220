// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_BULKCOPIES_H
#define MGPU_KERNELS_PTX_BULKCOPIES_H

// Copies in bulk, by the asynchronous proxy. One of a load is done when
// somebody asks whether its mbarrier's phase is over, one of a store when its
// thread waits for it; or as soon as they are asked for
// (LaunchOptions::isEarly; a seed draws for each).

#include "kernels/ptx/Decoder.h"
#include "kernels/ptx/Machine.h"

namespace mgpu::kernels::ptx {

/// cp.async.bulk and cp.reduce.async.bulk, whose modifiers up to there are
/// taken.
void decodeBulk(Decoder &d, bool isReduction);

/// A box of an array in global memory, and how it lies in shared memory.
struct Box {
  uint64_t map = 0; ///< the address of the tensor map
  uint32_t rank = 0;
  std::array<int32_t, 5> at{};
  Scalar type = Scalar::B8; ///< set by boxPieces()
};
/// The box as pieces at `tile`; false where a check failed.
bool boxPieces(Warp &warp, uint32_t lane, Box &box, uint32_t tile, Touch touch,
               std::vector<BulkCopy::Piece> &pieces);

/// Ends one of the loads that the mbarrier at an address waits for; false where
/// there is none.
bool finishLoad(Warp &warp, uint64_t barrier);
/// The asynchronous proxy sees the mbarriers that the warp has made or seen.
void publishBarriers(Warp &warp);
/// An error where a warp that has ended leaves copies behind.
void leaveCopies(Warp &warp);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_BULKCOPIES_H
