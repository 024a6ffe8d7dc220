// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_PROFILE_REPLAYSPANS_H
#define MGPU_BENCH_PROFILE_REPLAYSPANS_H

// Derives shares and overlaps from the spans of nodes in timed replays.

#include "capture/replay/Replayer.h"
#include "device/api/MessageRendezvous.h"
#include "planner/dag/Dag.h"

#include <span>
#include <vector>

namespace mgpu::bench {

/// Replayer::replayTimed(). With `others`, processes that replay together and
/// all call it, all get the spans of all: of a node of several processes that
/// of the one where it took longest.
Result<capture::TimedReplay> replayTimed(capture::Replayer &replayer,
                                         device::Rendezvous *others);

/// The spans of a replay as each of several processes or ranks saw it: of a
/// node of several that of the one where it took longest.
capture::TimedReplay slowestOf(std::span<const capture::TimedReplay> all);

using Spans = std::vector<capture::NodeSpan>;
/// Timed replays for about `seconds`, three at least. `others` as above.
Result<std::vector<Spans>>
timedFor(double seconds, device::Rendezvous *others,
         const std::function<Result<capture::TimedReplay>()> &timed);
/// Median microseconds of each of so many nodes; 0 of one that did not run.
std::vector<double> medianTimes(size_t numNodes,
                                std::span<const Spans> replays);
/// The replay of median length among several; empty if there are none.
std::vector<capture::NodeSpan>
medianReplay(std::vector<std::vector<capture::NodeSpan>> replays);

/// How much of a replay's communication ran beside kernels.
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
