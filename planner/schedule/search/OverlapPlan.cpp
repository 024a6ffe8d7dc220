// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapPlan.h"

#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/problem/FrozenProblem.h"

namespace mgpu::planner::search {

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

Plan makePlan(const Problem &problem, const Schedule &schedule, const Dag &dag,
              uint64_t enough) {
  constexpr uint32_t none = UINT32_MAX;
  Plan plan;
  plan.scheduler = "overlap";
  plan.model = "frozen";
  plan.numDevices = dag.numDevices;
  plan.streamsPerDevice = 2;
  plan.makespanUs = schedule.makespan;
  plan.steps.reserve(problem.size());
  // Per stream: the step begun last and the one before it, and what the other
  // stream has waited for of it already.
  uint32_t latest[2] = {none, none}, former[2] = {none, none},
           known[2] = {none, none};
  for (uint32_t node : startOrder(problem, schedule)) {
    const uint8_t stream = isCollective(problem, node), other = 1 - stream;
    PlanStep step;
    step.node = NodeId{node};
    step.startUs = schedule.starts[node];
    step.durationUs = problem.durations[node];
    for (DeviceId device : dag.nodes[node].devices)
      step.streams.push_back({device, StreamId{stream}});
    uint32_t ended = latest[other];
    if (ended != none &&
        schedule.starts[ended] + problem.durations[ended] > step.startUs)
      ended = former[other];
    if (ended != none && ended != known[other]) {
      step.waits.push_back(NodeId{ended});
      known[other] = ended;
    }
    former[stream] = latest[stream];
    latest[stream] = node;
    plan.steps.push_back(std::move(step));
  }
  if (fitsApart(dag, enough))
    return plan;
  ArenaLayout layout = layoutArena(plan, dag, enough);
  plan.placements = std::move(layout.placements);
  plan.arenaBytes = std::move(layout.arenaBytes);
  return plan;
}

} // namespace mgpu::planner::search
