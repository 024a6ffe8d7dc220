// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_ARENALAYOUT_H
#define MGPU_PLANNER_PLAN_ARENALAYOUT_H

// Where each device buffer lies. Two Temporary buffers may share bytes only
// when every use of one is before every use of the other by the plan's own
// stream order and waits, so no timing can make them collide. Resident buffers,
// and buffers touched while loading or fetching, outlive a replay and never
// share.

#include "planner/plan/Plan.h"

namespace mgpu::planner {

struct ArenaLayout {
  std::vector<Placement> placements;
  std::vector<uint64_t> arenaBytes; ///< per device
  /// Per device: the most bytes live at one step of the plan's order, plus the
  /// buffers that never share. No layout of this plan is smaller, as buffers
  /// live at the same step of one legal order can never share.
  std::vector<uint64_t> lowerBoundBytes;

  /// Arena over lower bound, the worst device; 1 when nothing is placed.
  double worstRatio() const;
};

/// Best fit in plan order: a buffer takes, at its first use, the smallest run
/// of bytes whose former owners are all done by then, else new bytes. Where
/// that is above the bound and above `enough` bytes, also by first fit with
/// brief buffers at the ends of runs; each device has the smaller arena. Needs
/// a plan whose streams and waits are in range. Time: O(uses * streams), and a
/// look at each free range per buffer; ranges that any later buffer may have
/// are joined.
ArenaLayout layoutArena(const Plan &plan, const Dag &dag, uint64_t enough = 0);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_ARENALAYOUT_H
