// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/problem/Problem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace mgpu::planner {

static Result<void> checkNodes(const Problem::Description &problem) {
  const size_t nodes = problem.durations.size();
  auto bad = [](std::string text) {
    return fail(ErrorKind::Invalid, "problem: " + std::move(text));
  };
  for (size_t node = 0; node < nodes; ++node)
    if (double us = problem.durations[node]; !(us >= 0) || !std::isfinite(us))
      return bad(fmt::format("node {} takes {} us", node, us));
  for (const auto &[node, use] : problem.uses)
    if (node >= nodes || use.resource >= problem.resources.size() ||
        !(use.share > 0) || !(use.share <= 1))
      return bad(fmt::format("node {} uses {} of resource {}", node, use.share,
                             use.resource));
  for (const auto &[from, to] : problem.precedences)
    if (from >= to || to >= nodes)
      return bad(fmt::format("an edge goes from node {} to node {}", from, to));
  return {};
}

static Result<void> checkBuffers(const Problem::Description &problem) {
  auto bad = [](std::string text) {
    return fail(ErrorKind::Invalid, "problem: " + std::move(text));
  };
  std::vector<bool> isUsed(problem.buffers.size());
  for (const auto &[buffer, node] : problem.users) {
    if (buffer >= isUsed.size() || node >= problem.durations.size())
      return bad(fmt::format("node {} uses buffer {}", node, buffer));
    isUsed[buffer] = true;
  }
  for (size_t b = 0; b < isUsed.size(); ++b)
    if (!isUsed[b] || problem.buffers[b].device >= problem.devices.size())
      return bad(fmt::format("buffer {} has no users, or no device", b));
  return {};
}

Result<Problem> Problem::create(Description description) {
  MGPU_TRY(checkNodes(description));
  MGPU_TRY(checkBuffers(description));
  Problem problem;
  const uint32_t nodes = uint32_t(description.durations.size());
  problem.isUnit.assign(description.resources.size(), true);
  for (const auto &[node, use] : description.uses)
    if (use.share < 1)
      problem.isUnit[use.resource] = false;
  problem.uses = Rows<ResourceUse>(nodes, description.uses);
  for (uint32_t node = 0; node < nodes; ++node)
    for (const ResourceUse &use : problem.uses[node])
      for (const ResourceUse &other : problem.uses[node])
        if (&use != &other && use.resource == other.resource)
          return fail(ErrorKind::Invalid,
                      fmt::format("problem: node {} uses resource {} twice",
                                  node, use.resource));
  auto &edges = description.precedences;
  problem.after = Rows<uint32_t>(nodes, edges);
  for (auto &[from, to] : edges)
    std::swap(from, to);
  problem.before = Rows<uint32_t>(nodes, edges);
  auto &users = description.users;
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  problem.users = Rows<uint32_t>(uint32_t(description.buffers.size()), users);
  for (auto &[buffer, node] : users)
    std::swap(buffer, node);
  problem.touched = Rows<uint32_t>(nodes, users);
  problem.durations = std::move(description.durations);
  problem.resources = std::move(description.resources);
  problem.devices = std::move(description.devices);
  problem.buffers = std::move(description.buffers);
  return problem;
}

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

/// By buffer: whether its bytes may serve others before and after. The bytes of
/// buffers that another phase touches may not.
static std::vector<bool> sharedBuffers(const Dag &dag) {
  std::vector<bool> isUsed(dag.buffers.size()), isShared(dag.buffers.size());
  for (size_t b = 0; b < isShared.size(); ++b)
    isShared[b] = !dag.buffers[b].device.isHost() &&
                  dag.buffers[b].role == BufferRole::Temporary;
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses) {
      isUsed[use.buffer.value] = true;
      if (node.phase != Phase::Replay)
        isShared[use.buffer.value] = false;
    }
  for (size_t b = 0; b < isShared.size(); ++b)
    isShared[b] = isShared[b] && isUsed[b];
  return isShared;
}

namespace {

class PhaseMaker {
public:
  PhaseMaker(const Dag &dag, std::span<const double> durations,
             uint64_t memoryBytes)
      : dag(dag), durations(durations), isShared(sharedBuffers(dag)),
        numbers(dag.nodes.size()) {
    std::vector<uint64_t> resident(dag.numDevices, dag.residentBytes);
    for (size_t b = 0; b < dag.buffers.size(); ++b)
      if (isInArena(dag.buffers[b]) && !isShared[b])
        resident[size_t(dag.buffers[b].device.value)] +=
            dag.buffers[b].sizeBytes;
    for (uint64_t bytes : resident)
      devices.push_back({bytes, memoryBytes});
  }

  Result<std::vector<PhaseProblem>> run() {
    std::vector<PhaseProblem> out;
    for (Phase phase : allPhases) {
      PhaseProblem made;
      made.phase = phase;
      made.times = timesInReplay(dag, phase);
      for (uint32_t i = 0; i < dag.nodes.size(); ++i)
        if (dag.nodes[i].phase == phase) {
          numbers[i] = uint32_t(made.nodes.size());
          made.nodes.push_back(NodeId{i});
        }
      if (made.nodes.empty())
        continue;
      MGPU_TRY_ASSIGN(made.problem, Problem::create(describe(made)));
      out.push_back(std::move(made));
    }
    return out;
  }

private:
  Problem::Description describe(const PhaseProblem &made) const {
    Problem::Description description;
    description.devices = devices;
    std::map<std::pair<DeviceId, WorkClass>, uint32_t> resources;
    std::map<BufferId, uint32_t> buffers;
    for (uint32_t i = 0; i < made.nodes.size(); ++i) {
      const DagNode &node = dag.node(made.nodes[i]);
      description.durations.push_back(durations[made.nodes[i].value]);
      for (DeviceId device : streamDevices(node)) {
        auto [at, isNew] = resources.try_emplace({device, workClass(node)},
                                                 uint32_t(resources.size()));
        if (isNew)
          description.resources.push_back(nameOf(device, workClass(node)));
        description.uses.push_back({i, {at->second, 1}});
      }
      std::set<BufferId> mine;
      for (const BufferUse &use : node.uses)
        if (isShared[use.buffer.value] && mine.insert(use.buffer).second) {
          const Buffer &buffer = dag.buffer(use.buffer);
          auto [at, isNew] =
              buffers.try_emplace(use.buffer, uint32_t(buffers.size()));
          if (isNew)
            description.buffers.push_back(
                {uint32_t(buffer.device.value), buffer.sizeBytes, false});
          description.users.push_back({at->second, i});
        }
    }
    for (const DepEdge &edge : dag.edges)
      if (dag.node(edge.from).phase == made.phase &&
          dag.node(edge.to).phase == made.phase)
        description.precedences.push_back(
            {numbers[edge.from.value], numbers[edge.to.value]});
    return description;
  }

  static std::string nameOf(DeviceId device, WorkClass work) {
    const char *what = work == WorkClass::Kernel ? "kernels"
                       : work == WorkClass::Copy ? "copies"
                                                 : "collectives";
    return device.isHost() ? fmt::format("{} of the host", what)
                           : fmt::format("{} of device {}", what, device.value);
  }

  const Dag &dag;
  std::span<const double> durations;
  std::vector<bool> isShared;    ///< by buffer
  std::vector<uint32_t> numbers; ///< by node of the DAG: its place in its phase
  std::vector<ProblemDevice> devices;
};

} // namespace

Result<std::vector<PhaseProblem>>
phaseProblems(const Dag &dag, std::span<const double> durations,
              uint64_t memoryBytes) {
  return PhaseMaker(dag, durations, memoryBytes).run();
}

} // namespace mgpu::planner
