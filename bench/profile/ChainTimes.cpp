// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/profile/ChainTimes.h"

#include "bench/measure/Summary.h"
#include "support/Clock.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::bench {

using namespace device;

ChainTimes::ChainTimes(Driver &driver, double seconds, LargestOfAll largest,
                       std::function<void(const std::string &)> progress,
                       bool isLeast)
    : driver(driver), seconds(seconds), isLeast(isLeast),
      largest(largest ? std::move(largest)
                      : [](double mine) -> Result<double> { return mine; }),
      progress(std::move(progress)) {}

Result<std::unique_ptr<GraphExec>> ChainTimes::chain(const TimedWork &work,
                                                     uint32_t length) {
  if (!work.add)
    return std::unique_ptr<GraphExec>();
  auto graph = driver.createGraph();
  TimedWork::Nodes last;
  for (uint32_t k = 0; k < length; ++k) {
    MGPU_TRY_ASSIGN(GraphNodeId node, work.add(*graph, last));
    last = {node};
  }
  return graph->instantiate();
}

Result<double> ChainTimes::replayUs(GraphExec *exec, double seconds) {
  constexpr size_t least = 3, most = 101;
  if (exec)
    MGPU_TRY(exec->launch());
  std::vector<double> samples;
  const Clock::time_point start = Clock::now();
  while (true) {
    // Ranks decide alike, and launch together.
    MGPU_TRY_ASSIGN(double spentUs, largest(microsecondsSince(start)));
    if (samples.size() >= most ||
        (samples.size() >= least && spentUs >= seconds * 1e6))
      return isLeast ? std::ranges::min(samples) : median(std::move(samples));
    double us = 0;
    if (exec) {
      const Clock::time_point begin = Clock::now();
      MGPU_TRY_ASSIGN(std::optional<double> span, exec->launchSpan());
      us = span ? *span : microsecondsSince(begin);
    }
    MGPU_TRY_ASSIGN(us, largest(us));
    samples.push_back(us);
  }
}

Result<double> ChainTimes::usOf(const TimedWork &work) {
  MGPU_TRY_ASSIGN(auto one, chain(work, 1));
  MGPU_TRY_ASSIGN(double shorter, replayUs(one.get(), seconds / 4));
  // The chain takes a millisecond or two beside its launch.
  const uint32_t length =
      uint32_t(std::clamp(2000 / std::max(shorter, 0.01), 2.0, 200.0)) + 1;
  MGPU_TRY_ASSIGN(auto many, chain(work, length));
  MGPU_TRY_ASSIGN(double longer, replayUs(many.get(), seconds));
  MGPU_TRY_ASSIGN(double again, replayUs(one.get(), seconds / 4));
  double us = (longer - std::min(shorter, again)) / (length - 1);
  // A machine that was disturbed meanwhile: then with the launch.
  if (!(us > 0))
    us = longer / length;
  if (!(us > 0))
    return fail(ErrorKind::Internal,
                fmt::format("{}: no time was measured", work.name));
  say(fmt::format("{}: {:.3f} us", work.name, us));
  return us;
}

Result<std::vector<NodeTiming>> ChainTimes::timed(GraphExec &exec) {
  MGPU_TRY(largest(0)); // ranks launch together
  std::vector<NodeTiming> timings;
  MGPU_TRY(exec.launchTimed(timings));
  return timings;
}

/// The time of `count` nodes from the first on, together.
static double lengthsOf(const std::vector<NodeTiming> &timings, uint32_t first,
                        uint32_t count) {
  double us = 0;
  for (const NodeTiming &timing : timings)
    if (timing.node.value >= first && timing.node.value < first + count)
      us += timing.endUs - timing.startUs;
  return us;
}

/// The mean time of the nodes from `first` on that each chain of the nodes
/// before, whose lengths are `chains`, covered; 0 if there are none, or if
/// nothing ran beside them.
static double coveredUs(const std::vector<NodeTiming> &timings,
                        const std::vector<uint32_t> &chains, uint32_t first) {
  double begin = 0, end = INFINITY, us = 0;
  uint32_t from = 0;
  for (uint32_t each : chains) {
    double starts = INFINITY, ends = 0;
    for (const NodeTiming &timing : timings)
      if (timing.node.value >= from && timing.node.value < from + each) {
        starts = std::min(starts, timing.startUs);
        ends = std::max(ends, timing.endUs);
      }
    begin = std::max(begin, starts);
    end = std::min(end, ends);
    from += each;
  }
  uint32_t covered = 0;
  for (const NodeTiming &timing : timings)
    if (timing.node.value >= first && timing.startUs >= begin &&
        timing.endUs <= end) {
      us += timing.endUs - timing.startUs;
      ++covered;
    }
  // Nodes of one queue cover each other's span, but never run at a time.
  bool overlaps = false;
  for (const NodeTiming &mine : timings)
    for (const NodeTiming &theirs : timings)
      overlaps |= mine.node.value >= first && theirs.node.value < first &&
                  mine.startUs < theirs.endUs && theirs.startUs < mine.endUs;
  return covered > 0 && overlaps ? us / covered : 0;
}

Result<std::optional<double>>
ChainTimes::factorOf(const TimedWork &work,
                     const std::vector<TimedWork> &others) {
  using None = std::optional<double>;
  constexpr uint32_t length = 3;
  constexpr size_t rounds = 7;
  MGPU_TRY_ASSIGN(auto alone, chain(work, length));
  std::vector<uint32_t> lengths;
  MGPU_TRY_ASSIGN(auto first, timed(*alone));
  MGPU_TRY_ASSIGN(const double aloneUs, largest(lengthsOf(first, 0, length)));
  for (const TimedWork &other : others) {
    MGPU_TRY_ASSIGN(auto exec, chain(other, 1));
    MGPU_TRY(exec->launch());
    MGPU_TRY_ASSIGN(auto timings, timed(*exec));
    MGPU_TRY_ASSIGN(const double otherUs, largest(lengthsOf(timings, 0, 1)));
    // Long enough to last, though they slow each other down.
    lengths.push_back(uint32_t(
        std::clamp(4 * aloneUs / std::max(otherUs, 0.01), 2.0, 300.0)));
  }
  auto graph = driver.createGraph();
  uint32_t count = 0;
  for (size_t k = 0; k < others.size(); ++k) {
    TimedWork::Nodes last;
    for (uint32_t j = 0; j < lengths[k]; ++j, ++count) {
      MGPU_TRY_ASSIGN(GraphNodeId node, others[k].add(*graph, last));
      last = {node};
    }
  }
  TimedWork::Nodes last;
  for (uint32_t k = 0; k < length; ++k) {
    MGPU_TRY_ASSIGN(GraphNodeId node, work.add(*graph, last));
    last = {node};
  }
  MGPU_TRY_ASSIGN(auto together, graph->instantiate());
  std::vector<double> factors;
  for (size_t round = 0; round < rounds; ++round) {
    MGPU_TRY_ASSIGN(auto apart, timed(*alone));
    MGPU_TRY_ASSIGN(auto timings, timed(*together));
    const double aloneNow = lengthsOf(apart, 0, length) / length;
    const double besideUs = coveredUs(timings, lengths, count);
    if (besideUs > 0 && aloneNow > 0)
      factors.push_back(besideUs / aloneNow);
  }
  // Less than 1 is noise: nothing is helped by what runs beside it.
  const double mine = factors.size() <= rounds / 2
                          ? 0
                          : std::clamp(median(std::move(factors)), 1.0, 1000.0);
  MGPU_TRY_ASSIGN(const double factor, largest(mine));
  return factor > 0 ? None(factor) : None();
}

} // namespace mgpu::bench
