// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapPlan.h"

#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/problem/FrozenProblem.h"

#include <algorithm>

namespace mgpu::planner::search {

namespace {

/// The work on the streams of a device at the start of each step: collectives
/// on one, kernels on another, or on several where they run side by side.
class Streams {
public:
  Streams(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule) {
    const bool isUnit = problem.isUnit[uint32_t(FrozenResource::Kernels)];
    of.resize(isUnit ? 2 : mostKernels + 1);
    for (Stream &stream : of)
      stream.known.assign(of.size(), none);
  }

  /// A step of the plan; steps come by start.
  PlanStep add(uint32_t node, const std::vector<DeviceId> &devices) {
    PlanStep step;
    step.node = NodeId{node};
    step.startUs = schedule.starts[node];
    step.durationUs = problem.durations[node];
    const uint32_t mine = isCollective(problem, node) ? 1 : freeStream(node);
    for (DeviceId device : devices)
      step.streams.push_back({device, StreamId{mine}});
    for (uint32_t other = 0; other < of.size(); ++other)
      if (other != mine)
        if (const uint32_t ended = endedOn(other, step.startUs);
            ended != none && ended != of[mine].known[other]) {
          step.waits.push_back(NodeId{ended});
          of[mine].known[other] = ended;
        }
    std::sort(step.waits.begin(), step.waits.end());
    of[mine].former = of[mine].latest;
    of[mine].latest = node;
    used = std::max(used, mine + 1);
    return step;
  }
  uint32_t count() const { return used; }

private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Stream {
    uint32_t latest = none, former = none; ///< the last steps begun
    std::vector<uint32_t> known; ///< by stream: what it has waited for already
  };

  double endOf(uint32_t node) const {
    return schedule.starts[node] + problem.durations[node];
  }
  /// The last step on a stream that has ended by `time`.
  uint32_t endedOn(uint32_t stream, double time) const {
    const uint32_t latest = of[stream].latest;
    return latest != none && endOf(latest) > time ? of[stream].former : latest;
  }
  /// The first stream for kernels where nothing runs; of those where something
  /// does, for times are rounded, the one that is free first.
  uint32_t freeStream(uint32_t node) const {
    uint32_t first = 0;
    double soonest = 0;
    for (uint32_t k = 0; k < of.size(); ++k) {
      if (k == 1)
        continue;
      const double until = of[k].latest == none ? 0 : endOf(of[k].latest);
      if (until <= schedule.starts[node])
        return k;
      if (k == 0 || until < soonest) {
        soonest = until;
        first = k;
      }
    }
    return first;
  }

  const Problem &problem;
  const Schedule &schedule;
  std::vector<Stream> of;
  uint32_t used = 2;
};

} // namespace

/// Whether the buffers of the arena fit even if they share no bytes.
static bool fitsApart(const Dag &dag, uint64_t bytes) {
  for (const Buffer &buffer : dag.buffers) {
    if (!isInArena(buffer))
      continue;
    const uint64_t taken =
        (buffer.sizeBytes / arenaAlignment + 1) * arenaAlignment;
    if (taken > bytes)
      return false;
    bytes -= taken;
  }
  return true;
}

Plan asPlan(const Problem &problem, const Schedule &schedule, const Dag &dag,
            uint64_t enough) {
  Plan plan;
  plan.scheduler = "overlap";
  plan.model = "frozen";
  plan.numDevices = dag.numDevices;
  plan.makespanUs = schedule.makespan;
  plan.steps.reserve(problem.size());
  Streams streams(problem, schedule);
  for (uint32_t node : startOrder(problem, schedule))
    plan.steps.push_back(streams.add(node, dag.nodes[node].devices));
  plan.streamsPerDevice = streams.count();
  if (fitsApart(dag, enough))
    return plan;
  ArenaLayout layout = layoutArena(plan, dag, enough);
  plan.placements = std::move(layout.placements);
  plan.arenaBytes = std::move(layout.arenaBytes);
  return plan;
}

} // namespace mgpu::planner::search
