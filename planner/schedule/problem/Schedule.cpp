// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/problem/Schedule.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <tuple>

namespace mgpu::planner {

std::vector<uint32_t> startOrder(const Problem &problem,
                                 const Schedule &schedule) {
  std::vector<uint32_t> order(schedule.starts.size());
  std::iota(order.begin(), order.end(), 0u);
  auto key = [&](uint32_t node) {
    return std::tuple(schedule.starts[node], problem.durations[node] > 0, node);
  };
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  return order;
}

/// The shares in use at any time sum to at most 1.
static Result<void> checkResource(const Problem &problem, uint32_t resource,
                                  const Schedule &schedule, double rounding) {
  struct Change {
    double time, share;
    uint32_t node;
  };
  std::vector<Change> changes;
  for (uint32_t i = 0; i < problem.size(); ++i)
    for (const ResourceUse &use : problem.uses[i])
      if (use.resource == resource && problem.durations[i] > 2 * rounding) {
        double start = schedule.starts[i];
        changes.push_back({start + rounding, use.share, i});
        changes.push_back(
            {start + problem.durations[i] - rounding, -use.share, i});
      }
  std::sort(changes.begin(), changes.end(),
            [](const Change &a, const Change &b) {
              return a.time != b.time ? a.time < b.time : a.share < b.share;
            });
  double used = 0;
  for (const Change &change : changes)
    if ((used += change.share) > 1 + 1e-9)
      return fail(ErrorKind::Internal,
                  fmt::format("schedule: {} is taken {:.6f} times when node {} "
                              "starts at {} us",
                              problem.resources[resource], used, change.node,
                              schedule.starts[change.node]));
  return {};
}

Result<void> check(const Problem &problem, const Schedule &schedule) {
  constexpr double rounding = 1e-6; // a picosecond
  auto bad = [](std::string text) {
    return fail(ErrorKind::Internal, "schedule: " + std::move(text));
  };
  if (schedule.starts.size() != problem.size())
    return bad("it does not have one start per node");
  for (uint32_t i = 0; i < problem.size(); ++i) {
    double start = schedule.starts[i];
    if (!(start >= 0) ||
        !(start + problem.durations[i] <= schedule.makespan + rounding))
      return bad(
          fmt::format("node {} runs from {} on, outside the plan", i, start));
    for (uint32_t before : problem.before[i])
      if (schedule.starts[before] + problem.durations[before] >
          start + rounding)
        return bad(
            fmt::format("node {} starts before node {} has ended", i, before));
  }
  for (uint32_t r = 0; r < problem.numResources(); ++r)
    MGPU_TRY(checkResource(problem, r, schedule, rounding));
  return {};
}

namespace {

struct MemoryChange {
  int64_t time;
  uint32_t device;
  int64_t bytes;
  bool operator<(const MemoryChange &other) const {
    return time != other.time ? time < other.time : bytes < other.bytes;
  }
};

} // namespace

static std::vector<uint64_t> highest(const Problem &problem,
                                     std::vector<MemoryChange> changes) {
  std::sort(changes.begin(), changes.end());
  std::vector<int64_t> live(problem.devices.size(), 0), peak = live;
  for (const MemoryChange &change : changes) {
    live[change.device] += change.bytes;
    peak[change.device] = std::max(peak[change.device], live[change.device]);
  }
  std::vector<uint64_t> bytes;
  for (size_t d = 0; d < peak.size(); ++d)
    bytes.push_back(uint64_t(peak[d]) + problem.devices[d].residentBytes);
  return bytes;
}

std::vector<uint64_t> peakBytes(const Problem &problem,
                                const Schedule &schedule) {
  auto nanoseconds = [](double us) { return std::llround(us * 1000); };
  std::vector<MemoryChange> changes;
  for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const ProblemBuffer &buffer = problem.buffers[b];
    double first = schedule.makespan, last = buffer.isKept ? first : 0;
    for (uint32_t user : problem.users[b]) {
      first = std::min(first, schedule.starts[user]);
      last = std::max(last, schedule.starts[user] + problem.durations[user]);
    }
    int64_t bytes = int64_t(buffer.bytes);
    changes.push_back({nanoseconds(first), buffer.device, bytes});
    changes.push_back({nanoseconds(last), buffer.device, -bytes});
  }
  return highest(problem, std::move(changes));
}

std::vector<uint64_t> sequencePeakBytes(const Problem &problem,
                                        const std::vector<uint32_t> &order) {
  std::vector<int64_t> place(problem.size());
  for (size_t k = 0; k < order.size(); ++k)
    place[order[k]] = int64_t(k);
  std::vector<MemoryChange> changes;
  for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const ProblemBuffer &buffer = problem.buffers[b];
    int64_t first = int64_t(problem.size()), last = buffer.isKept ? first : 0;
    for (uint32_t user : problem.users[b]) {
      first = std::min(first, place[user]);
      last = std::max(last, place[user] + 1);
    }
    int64_t bytes = int64_t(buffer.bytes);
    changes.push_back({first, buffer.device, bytes});
    changes.push_back({last, buffer.device, -bytes});
  }
  return highest(problem, std::move(changes));
}

bool fits(const Problem &problem, const std::vector<uint64_t> &bytes) {
  for (size_t d = 0; d < bytes.size(); ++d)
    if (bytes[d] > problem.devices[d].memoryBytes)
      return false;
  return true;
}

} // namespace mgpu::planner
