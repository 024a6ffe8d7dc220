// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_BARRIERS_H
#define MGPU_KERNELS_PTX_BARRIERS_H

#include "kernels/ptx/Machine.h"

namespace mgpu::kernels::ptx {

/// Barriers that waited for all threads no longer wait for those of a warp that
/// has ended.
void leaveBarriers(Warp &warp);

/// The parts of an mbarrier in shared memory, as its 64 bits are read here: PTX
/// leaves them open (section 9.7.13.15.1).
struct MbarrierWord {
  uint32_t expected, pending; ///< arrivals: of a phase, still to come
  int32_t bytes;              ///< of copies, still to come
  bool phase;
  static MbarrierWord of(uint64_t word);
  /// The next phase where nothing is left to come of this one.
  MbarrierWord settled(Machine &machine) const;
  uint64_t bits() const;
};
/// An mbarrier counts fewer bytes of copies, up and down (ISA 9.0, section
/// 9.7.13.15.1).
inline constexpr int64_t mostTransactions = 1 << 20;

/// Counts arrivals and bytes at a shared address, and begins the next phase
/// where none is left to come. `isDrop`: later phases expect so many less.
/// False where a check failed.
bool arrive(Warp &warp, uint32_t lane, uint64_t address, int64_t arrivals,
            int64_t bytes, uint64_t *before = nullptr, bool isDrop = false);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_BARRIERS_H
