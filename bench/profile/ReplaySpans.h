// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_PROFILE_REPLAYSPANS_H
#define MGPU_BENCH_PROFILE_REPLAYSPANS_H

// What the spans of nodes in timed replays say.

#include "capture/replay/Replayer.h"
#include "device/api/Rendezvous.h"
#include "planner/dag/Dag.h"

#include <span>
#include <vector>

namespace mgpu::bench {

/// Replayer::replayTimed(). With `others`, processes that replay together and
/// all call it, all get the spans of all: of a node of several processes that
/// of the one where it took longest.
Result<capture::TimedReplay> replayTimed(capture::Replayer &replayer,
                                         device::Rendezvous *others);

/// The replay of median length among several; empty if there are none.
std::vector<capture::NodeSpan>
medianReplay(std::vector<std::vector<capture::NodeSpan>> replays);

/// What ran beside what in a replay.
struct Overlap {
  /// By NodeId: the share of its time in which another node ran on one of its
  /// devices; -1 for a node that did not run.
  std::vector<double> share;
  /// The time of copies and collectives together, and how long of it a kernel
  /// ran on one of their devices.
  double communicationUs = 0, hiddenUs = 0;
};
Overlap overlapOf(const planner::Dag &dag,
                  std::span<const capture::NodeSpan> spans);

} // namespace mgpu::bench

#endif // MGPU_BENCH_PROFILE_REPLAYSPANS_H
