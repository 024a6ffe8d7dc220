// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_PROFILE_PROFILE_H
#define MGPU_BENCH_PROFILE_PROFILE_H

// Times of the nodes of a program in replays on one target, the host or a GPU,
// measured in this process. All times are microseconds.

#include "bench/measure/Sampler.h"
#include "bench/measure/Summary.h"
#include "capture/ranks/Runner.h"
#include "capture/replay/Replayer.h"
#include "device/api/GraphDriver.h"
#include "device/api/MessageRendezvous.h"
#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"

#include <span>
#include <vector>

namespace mgpu::bench {

// Derives shares and overlaps from the spans of nodes in timed replays.

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

/// Replays, by the clock of each rank: the slowest one's seconds. `runner` must
/// outlive it.
Sampler::Runs replaysOf(capture::Runner &runner);

/// Opens a plan on GPUs that several ranks have, with its inputs.
using OpenRunner = std::function<Result<std::unique_ptr<capture::Runner>>(
    const planner::Plan &plan)>;

struct ProfileInput {
  const planner::Dag &dag; ///< as the plans' transforms leave it
  std::span<const std::vector<std::byte>> kernels; ///< by KernelId
  std::function<void(capture::Replayer &)> bind;   ///< writes the inputs
  device::DriverFactory openDriver;
  /// Threads are pinned to these while they are measured, if there are any.
  std::vector<int> cpus = {};
  /// Whether the target has clocks of its own. The cost of the host's clock is
  /// then not taken off; and whole replays are measured before any timed one,
  /// since the target's clocks may slow all that comes after them.
  bool onGpu = false;
  /// The processes that have the other devices: all make the same calls, and
  /// find the times of the slowest. Null: this one has them all.
  device::Rendezvous *others = nullptr;
  /// In place of a driver and what is bound. Null: the driver's.
  OpenRunner openRunner = nullptr;
};

/// A plan, and the threads it is replayed on; 0 on a GPU.
struct ProfileSubject {
  planner::Plan plan;
  uint32_t threads = 1;
};

struct ProfileSamples {
  Summary replayUs; ///< whole replays in which no clock is read
  /// By NodeId, one for each timed replay; empty for a node that a replay does
  /// not run.
  std::vector<std::vector<double>> nodeUs;
  std::vector<Overlap> overlaps; ///< one for each timed replay
  /// Whole replays on the device's own clock; count 0 without one.
  Summary spanUs;
  capture::TimedReplay last; ///< the last timed one, as it was measured
  /// A timed replay of median length, as it was measured.
  std::vector<capture::NodeSpan> timeline;
};

struct Profile {
  Summary serialUs; ///< replays of the serial plan on one thread
  std::vector<ProfileSamples> subjects; ///< as they were given
  std::string timedBy;                  ///< Driver::timedBy()
  /// The subject with the least upper quartile: another thread must not only be
  /// faster at times.
  size_t fastest() const;
};

/// Replays a serial plan, on the host on one thread, and every subject (there
/// is one at least) in turn, `rounds` times, so that all see the same machine;
/// after each replay of a subject come timed ones. The median cost of reading
/// the clock is taken off each node. If the first subject runs on one thread,
/// the times of all are then corrected as correctionFor() says of it. Errors:
/// those of the driver, the plan or a kernel.
Result<Profile> measureProfile(const ProfileInput &input,
                               std::span<const ProfileSubject> subjects,
                               uint64_t rounds);

/// How times of nodes between readings of the clock become those of nodes in a
/// replay without: `lessUs` less, but not below 0, times `factor`.
struct Correction {
  double lessUs = 0, factor = 1;
  double of(double us) const;
};

struct TimedNode {
  double us = 0;    ///< between two readings of the clock
  double count = 1; ///< how often a replay runs it
};

/// So that the nodes of a replay on one thread, each with planner::hostNodeUs
/// beside it, add up to `replayUs`. Where they are too long, reading the clock
/// has delayed each by as much; where they are too short, what is missing is in
/// all in proportion. Where neither can be (no node takes any time, or they do
/// not fit even at 0), as near as it gets.
Correction correctionFor(std::span<const TimedNode> nodes, double replayUs);

} // namespace mgpu::bench

#endif // MGPU_BENCH_PROFILE_PROFILE_H
