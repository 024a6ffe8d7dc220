// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapModel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::planner::search {

Result<OverlapModel> OverlapModel::create(const Dag &dag, double scaleComm,
                                          const LatencyEstimator *latency) {
  if (!dag.spmd)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("DAG \"{}\" is not spmd; the frozen model plans one "
                    "device that stands for all",
                    dag.name));
  if (!(scaleComm >= 0) || !std::isfinite(scaleComm))
    return fail(ErrorKind::Usage, "the scale of communication must be a "
                                  "number from 0 on");
  OverlapModel model;
  uint32_t n = uint32_t(dag.nodes.size());
  model.residentBytes = dag.residentBytes;
  for (uint32_t i = 0; i < n; ++i) {
    const DagNode &node = dag.nodes[i];
    double duration = node.durationUs ? *node.durationUs
                      : latency       ? latency->durationUs(dag, NodeId{i})
                                      : -1;
    if (!(duration >= 0) || !std::isfinite(duration))
      return fail(ErrorKind::Invalid,
                  fmt::format("node {} \"{}\" has no duration_us; the frozen "
                              "model needs one for every node",
                              i, node.name));
    bool collective = workClass(node) == WorkClass::Collective;
    model.isCollective.push_back(collective);
    model.durations.push_back(duration * (collective ? scaleComm : 1));
    model.outBytes.push_back(node.outBytes);
  }
  model.beforeBegin.assign(n + 1, 0);
  model.afterBegin.assign(n + 1, 0);
  for (const DepEdge &edge : dag.edges) {
    ++model.beforeBegin[edge.to.value + 1];
    ++model.afterBegin[edge.from.value + 1];
  }
  for (uint32_t i = 0; i < n; ++i) {
    model.beforeBegin[i + 1] += model.beforeBegin[i];
    model.afterBegin[i + 1] += model.afterBegin[i];
  }
  model.before.resize(dag.edges.size());
  model.after.resize(dag.edges.size());
  std::vector<uint32_t> nextBefore = model.beforeBegin,
                        nextAfter = model.afterBegin;
  for (const DepEdge &edge : dag.edges) {
    model.before[nextBefore[edge.to.value]++] = edge.from.value;
    model.after[nextAfter[edge.from.value]++] = edge.to.value;
  }
  return model;
}

uint64_t peakMemory(const OverlapModel &model,
                    const OverlapSchedule &schedule) {
  struct Event {
    int64_t time;
    bool allocates;
    int64_t bytes;
    bool operator<(const Event &other) const {
      return time != other.time ? time < other.time
                                : allocates < other.allocates;
    }
  };
  auto nanoseconds = [](double us) { return std::llround(us * 1000); };
  std::vector<Event> events;
  events.reserve(size_t(model.size()) * 2);
  for (uint32_t i = 0; i < model.size(); ++i) {
    double last = model.successors(i).empty() ? schedule.makespan : 0;
    for (uint32_t next : model.successors(i))
      last = std::max(last, schedule.starts[next] + model.durations[next]);
    events.push_back(
        {nanoseconds(schedule.starts[i]), true, int64_t(model.outBytes[i])});
    events.push_back({nanoseconds(last), false, -int64_t(model.outBytes[i])});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0, peak = 0;
  for (const Event &event : events) {
    live += event.bytes;
    peak = std::max(peak, live);
  }
  return uint64_t(peak) + model.residentBytes;
}

Result<void> check(const OverlapModel &model, const OverlapSchedule &schedule) {
  constexpr double rounding = 1e-6; // a picosecond
  auto bad = [](std::string text) {
    return fail(ErrorKind::Internal, "schedule: " + std::move(text));
  };
  if (schedule.starts.size() != model.size())
    return bad("it does not have one start per node");
  for (uint32_t i = 0; i < model.size(); ++i) {
    double start = schedule.starts[i];
    if (!(start >= 0) ||
        !(start + model.durations[i] <= schedule.makespan + rounding))
      return bad(
          fmt::format("node {} runs from {} on, outside the plan", i, start));
    for (uint32_t before : model.predecessors(i))
      if (schedule.starts[before] + model.durations[before] > start + rounding)
        return bad(
            fmt::format("node {} starts before node {} has ended", i, before));
  }
  for (uint8_t collective : {0, 1}) {
    std::vector<std::pair<double, double>> spans;
    for (uint32_t i = 0; i < model.size(); ++i)
      if (model.isCollective[i] == collective)
        spans.emplace_back(schedule.starts[i],
                           schedule.starts[i] + model.durations[i]);
    std::sort(spans.begin(), spans.end());
    for (size_t k = 1; k < spans.size(); ++k)
      if (spans[k - 1].second > spans[k].first + rounding)
        return bad(fmt::format("two {} run at {} us",
                               collective ? "collectives" : "kernels",
                               spans[k].first));
  }
  return {};
}

namespace {

/// Sums of kernel and collective durations of the nodes on one side of each
/// collective, as the largest of the two and of the longest path `heads`.
/// Rows of bits; `forward` takes ancestors, else descendants.
std::vector<double> sideBounds(const OverlapModel &model, bool forward,
                               const std::vector<double> &heads) {
  uint32_t n = model.size(), words = (n + 63) / 64;
  std::vector<uint64_t> closure(size_t(n) * words, 0);
  // Durations by bytes of a row: 256 sums for each 8 nodes.
  std::vector<double> kernelSums(size_t(words) * 8 * 256),
      collectiveSums(kernelSums.size());
  for (size_t block = 0; block < size_t(words) * 8; ++block)
    for (uint32_t value = 1; value < 256; ++value) {
      uint32_t low = value & (~value + 1);
      size_t node = block * 8 + size_t(std::countr_zero(low));
      double duration = node < n ? model.durations[node] : 0;
      bool collective = node < n && model.isCollective[node];
      size_t at = block * 256 + value, rest = at - low;
      kernelSums[at] = kernelSums[rest] + (collective ? 0 : duration);
      collectiveSums[at] = collectiveSums[rest] + (collective ? duration : 0);
    }
  std::vector<double> result(n, 0);
  for (uint32_t k = 0; k < n; ++k) {
    uint32_t i = forward ? k : n - 1 - k;
    uint64_t *row = &closure[size_t(i) * words];
    for (uint32_t other :
         forward ? model.predecessors(i) : model.successors(i)) {
      const uint64_t *theirs = &closure[size_t(other) * words];
      for (uint32_t w = 0; w < words; ++w)
        row[w] |= theirs[w];
      row[other / 64] |= uint64_t(1) << (other % 64);
    }
    if (!model.isCollective[i])
      continue;
    double kernels = 0, collectives = 0;
    for (uint32_t w = 0; w < words; ++w)
      for (uint32_t byte = 0; row[w] >> (8 * byte) != 0; ++byte) {
        size_t at = (size_t(w) * 8 + byte) * 256 + (row[w] >> (8 * byte) & 255);
        kernels += kernelSums[at];
        collectives += collectiveSums[at];
        if (byte == 7)
          break;
      }
    result[i] = std::max({kernels, collectives, heads[i]});
  }
  return result;
}

} // namespace

OverlapBounds makespanBounds(const OverlapModel &model) {
  uint32_t n = model.size();
  OverlapBounds bounds;
  std::vector<double> heads(n, 0), tails(n, 0);
  for (uint32_t i = 0; i < n; ++i) {
    (model.isCollective[i] ? bounds.collectives : bounds.kernels) +=
        model.durations[i];
    for (uint32_t before : model.predecessors(i))
      heads[i] = std::max(heads[i], heads[before] + model.durations[before]);
    bounds.criticalPath =
        std::max(bounds.criticalPath, heads[i] + model.durations[i]);
  }
  for (uint32_t i = n; i-- > 0;)
    for (uint32_t next : model.successors(i))
      tails[i] = std::max(tails[i], tails[next] + model.durations[next]);
  bounds.makespan =
      std::max({bounds.kernels, bounds.collectives, bounds.criticalPath});
  if (n <= maxClosureNodes) {
    std::vector<double> left = sideBounds(model, true, heads);
    std::vector<double> right = sideBounds(model, false, tails);
    for (uint32_t i = 0; i < n; ++i)
      if (model.isCollective[i])
        bounds.makespan =
            std::max(bounds.makespan, left[i] + model.durations[i] + right[i]);
  }
  return bounds;
}

std::optional<double> hiddenShare(const OverlapBounds &bounds,
                                  double makespan) {
  double least = bounds.makespan - bounds.kernels;
  if (bounds.collectives <= least)
    return std::nullopt;
  return 1 - (makespan - bounds.kernels - least) / (bounds.collectives - least);
}

} // namespace mgpu::planner::search
