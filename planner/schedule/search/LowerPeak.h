// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_LOWERPEAK_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_LOWERPEAK_H

#include "planner/schedule/exact/Budget.h"
#include "planner/schedule/problem/Problem.h"

namespace mgpu::planner::search {

/// A topological order that needs little memory when run one node at a time.
/// Two rules, both local: a node that makes no less than it reads (weights
/// gathered or converted, constants) waits until something that is not such a
/// node needs it; a ready node that frees more than it makes runs at once.
/// Otherwise in the order of the problem. Bytes of all devices count alike.
std::vector<uint32_t> lowMemoryOrder(const Problem &problem);

/// In longer sequences a move takes a millisecond or more.
inline constexpr uint32_t mostShortNodes = 200'000;

/// Changes a sequence, run one node at a time, until its peaks are within
/// `limits` (bytes by device, resident ones included). Near a peak, a node
/// whose output is not needed before it moves behind it, with what depends on
/// it; or a node that frees something live there moves before it, with all that
/// it needs. A move stays if what exceeds the limits, summed over the sequence,
/// does not grow. The limits are reached in steps that do not depend on them,
/// so a greater limit is met on the way to a lesser one. One seed, one sequence
/// of moves. False where moves no longer gain, or where the time of `budget` is
/// over and some thousand moves were made; `sequence` then is the lowest found.
bool lowerPeak(const Problem &problem, const std::vector<uint64_t> &limits,
               uint64_t seed, const exact::Budget &budget,
               std::vector<uint32_t> &sequence);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_LOWERPEAK_H
