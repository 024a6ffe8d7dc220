// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_PROFILE_CHAINTIMES_H
#define MGPU_BENCH_PROFILE_CHAINTIMES_H

// How long one node of a target takes, alone and beside others, by chains of it
// in graphs.

#include "device/api/GraphDriver.h"

#include <functional>
#include <string>
#include <vector>

namespace mgpu::bench {

/// The largest of the values that several ranks give, one for each GPU. All of
/// them call it in one order, and none returns before all did.
using LargestOfAll = std::function<Result<double>(double)>;

/// Work to be timed: a node, added after others.
struct TimedWork {
  using Nodes = std::vector<device::GraphNodeId>;
  std::string name;
  /// Empty if this rank has no part in the work, but waits for those that do.
  std::function<Result<device::GraphNodeId>(device::GraphDriver &,
                                            const Nodes &after)>
      add;
};

/// Several ranks call the same functions in one order. They find the time of
/// the slowest, which also decides how they go on, so that all launch the same.
class ChainTimes {
public:
  /// `seconds` is for each figure. `largest` and `progress` may be null. A
  /// figure is the median of replays or, with `isLeast`, the least, as others
  /// on the machine only ever make it longer.
  ChainTimes(device::Driver &driver, double seconds, LargestOfAll largest,
             std::function<void(const std::string &)> progress,
             bool isLeast = false);

  /// Microseconds of one node in a chain: the difference of a longer and a
  /// shorter one, so that launching and waiting cancel. Internal where it is
  /// not above 0.
  Result<double> usOf(const TimedWork &work);
  /// How many times as long `work` takes beside all of `others`; none: they do
  /// not run at a time.
  Result<std::optional<double>> factorOf(const TimedWork &work,
                                         const std::vector<TimedWork> &others);
  void say(const std::string &text) const {
    if (progress)
      progress(text);
  }

private:
  Result<std::unique_ptr<device::GraphExec>> chain(const TimedWork &work,
                                                   uint32_t length);
  /// `exec` is null where this rank has no part in it.
  Result<double> replayUs(device::GraphExec *exec, double seconds);
  Result<std::vector<device::NodeTiming>> timed(device::GraphExec &exec);

  device::Driver &driver;
  const double seconds;
  const bool isLeast;
  const LargestOfAll largest;
  const std::function<void(const std::string &)> progress;
};

} // namespace mgpu::bench

#endif // MGPU_BENCH_PROFILE_CHAINTIMES_H
