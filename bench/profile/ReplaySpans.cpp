// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/profile/ReplaySpans.h"

#include "bench/measure/Summary.h"
#include "capture/ranks/Runner.h"
#include "support/Clock.h"

#include <algorithm>
#include <map>

namespace mgpu::bench {

using namespace planner;

capture::TimedReplay slowestOf(std::span<const capture::TimedReplay> all) {
  capture::TimedReplay out;
  std::map<uint32_t, capture::NodeSpan> longest;
  uint32_t firstQueue = 0;
  for (const capture::TimedReplay &each : all) {
    uint32_t nextQueue = firstQueue;
    for (capture::NodeSpan span : each.nodes) {
      span.queue += firstQueue; // those of each process are apart
      nextQueue = std::max(nextQueue, span.queue + 1);
      auto [at, isNew] = longest.emplace(span.node.value, span);
      if (!isNew &&
          span.endUs - span.startUs > at->second.endUs - at->second.startUs)
        at->second = span;
    }
    firstQueue = nextQueue;
  }
  for (const auto &[node, span] : longest)
    out.nodes.push_back(span);
  std::sort(out.nodes.begin(), out.nodes.end(),
            [](const capture::NodeSpan &a, const capture::NodeSpan &b) {
              return a.startUs < b.startUs;
            });
  return out;
}

Result<capture::TimedReplay> replayTimed(capture::Replayer &replayer,
                                         device::Rendezvous *others) {
  if (!others)
    return replayer.replayTimed();
  MGPU_TRY(others->meet());
  MGPU_TRY_ASSIGN(capture::TimedReplay timed, replayer.replayTimed());
  Bytes mine;
  capture::appendTimedReplay(mine, timed);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others->exchange(mine));
  std::vector<capture::TimedReplay> each;
  for (const Bytes &bytes : all)
    each.push_back(capture::takeTimedReplay(bytes));
  timed.nodes = slowestOf(each).nodes;
  return timed;
}

Result<std::vector<Spans>>
timedFor(double seconds, device::Rendezvous *others,
         const std::function<Result<capture::TimedReplay>()> &timed) {
  std::vector<Spans> replays;
  const Clock::time_point start = Clock::now();
  for (double passed = 0; replays.size() < 3 || passed < seconds;) {
    MGPU_TRY_ASSIGN(capture::TimedReplay spans, timed());
    replays.push_back(std::move(spans.nodes));
    passed = secondsSince(start);
    if (others) {
      MGPU_TRY_ASSIGN(passed, others->largest(passed));
    }
  }
  return replays;
}

std::vector<double> medianTimes(size_t numNodes,
                                std::span<const Spans> replays) {
  std::vector<std::vector<double>> times(numNodes);
  for (const Spans &spans : replays)
    for (const capture::NodeSpan &span : spans)
      if (span.node.value < numNodes) // another process may have said it
        times[span.node.value].push_back(span.endUs - span.startUs);
  std::vector<double> out;
  for (std::vector<double> &ofNode : times)
    out.push_back(ofNode.empty() ? 0.0 : median(std::move(ofNode)));
  return out;
}

std::vector<capture::NodeSpan>
medianReplay(std::vector<std::vector<capture::NodeSpan>> replays) {
  if (replays.empty())
    return {};
  auto length = [](const std::vector<capture::NodeSpan> &spans) {
    double end = 0;
    for (const capture::NodeSpan &span : spans)
      end = std::max(end, span.endUs);
    return end;
  };
  auto middle = replays.begin() + ptrdiff_t(replays.size() / 2);
  std::nth_element(
      replays.begin(), middle, replays.end(),
      [&](const auto &a, const auto &b) { return length(a) < length(b); });
  return std::move(*middle);
}

Overlap overlapOf(const Dag &dag, std::span<const capture::NodeSpan> spans) {
  Overlap out;
  out.share.assign(dag.nodes.size(), -1);
  std::vector<const capture::NodeSpan *> order;
  for (const capture::NodeSpan &span : spans)
    order.push_back(&span);
  std::sort(order.begin(), order.end(),
            [](auto *a, auto *b) { return a->startUs < b->startUs; });
  auto meets = [&](const DagNode &a, const DagNode &b) {
    return std::any_of(a.devices.begin(), a.devices.end(), [&](DeviceId d) {
      return std::find(b.devices.begin(), b.devices.end(), d) !=
             b.devices.end();
    });
  };
  // The cover of a span is the union of the others' parts of it, which come in
  // the order of their starts. Before one that starts earlier nothing may end
  // later than the longest span before.
  double longest = 0;
  for (const capture::NodeSpan *span : order)
    longest = std::max(longest, span->endUs - span->startUs);
  for (size_t k = 0; k < order.size(); ++k) {
    const capture::NodeSpan &mine = *order[k];
    const DagNode &node = dag.node(mine.node);
    const double length = mine.endUs - mine.startUs;
    double any = 0, kernels = 0, anyTo = mine.startUs, kernelsTo = mine.startUs;
    size_t first = k;
    while (first > 0 && order[first - 1]->startUs > mine.startUs - longest)
      --first;
    for (size_t j = first; j < order.size() && order[j]->startUs < mine.endUs;
         ++j) {
      const capture::NodeSpan &other = *order[j];
      const DagNode &beside = dag.node(other.node);
      if (j == k || other.endUs <= mine.startUs || !meets(node, beside))
        continue;
      auto add = [&](double &sum, double &to) {
        double from = std::max(to, other.startUs),
               until = std::min(mine.endUs, other.endUs);
        sum += std::max(0.0, until - from);
        to = std::max(to, until);
      };
      add(any, anyTo);
      if (workClass(beside) == WorkClass::Kernel)
        add(kernels, kernelsTo);
    }
    out.share[mine.node.value] = length > 0 ? any / length : 0;
    if (workClass(node) != WorkClass::Kernel) {
      out.communicationUs += length;
      out.hiddenUs += kernels;
    }
  }
  return out;
}

} // namespace mgpu::bench
