// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/ResidentPlan.h"

#include "planner/schedule/Simulate.h"
#include "planner/schedule/TargetSearch.h"
#include "planner/schedule/alike/Quotient.h"

#include <algorithm>
#include <map>

namespace mgpu::planner {

/// Nothing of Load comes after, and nothing of Fetch before, what a replay
/// does.
static bool keepsPhases(const Dag &dag) {
  return std::all_of(
      dag.edges.begin(), dag.edges.end(), [&](const DepEdge &edge) {
        return dag.node(edge.from).phase <= dag.node(edge.to).phase;
      });
}

std::optional<Dag> withoutResidents(const Dag &dag) {
  const bool isRolled = dag.loop.trips > 1;
  auto isArgument = [&](BufferId id) {
    return dag.buffer(id).role == BufferRole::Argument;
  };
  std::vector<uint32_t> moved;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    auto *copy = std::get_if<CopyCall>(&dag.nodes[i].work);
    if (copy &&
        ((dag.nodes[i].phase == Phase::Load && isArgument(copy->source)) ||
         (dag.nodes[i].phase == Phase::Fetch && isArgument(copy->destination))))
      moved.push_back(i);
  }
  if (moved.empty())
    return std::nullopt;
  Dag out = dag;
  for (uint32_t i : moved)
    out.nodes[i].phase = !isRolled                           ? Phase::Replay
                         : dag.nodes[i].phase == Phase::Load ? Phase::Prologue
                                                             : Phase::Epilogue;
  if (!keepsPhases(out))
    return std::nullopt;
  return out;
}

/// Microseconds that no replay of withoutResidents() can beat, whatever
/// transforms make of it: a device's uploads of arguments that are read there,
/// each once.
static double leastUploadUs(const Dag &dag, const LatencyEstimator &latency) {
  std::vector<bool> isRead(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.reads)
        isRead[use.buffer.value] = true;
  std::map<DeviceId, std::map<BufferId, double>> uploads;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    if (auto *copy = std::get_if<CopyCall>(&dag.nodes[i].work);
        copy && dag.buffer(copy->source).role == BufferRole::Argument &&
        dag.buffer(copy->source).device.isHost() &&
        isRead[copy->destination.value]) {
      double &us = uploads[dag.buffer(copy->destination).device][copy->source];
      us = std::max(us, latency.durationUs(dag, NodeId{i}));
    }
  double most = 0;
  for (const auto &[device, copies] : uploads) {
    double sum = 0;
    for (const auto &[source, us] : copies)
      sum += us;
    most = std::max(most, device.isHost() ? 0 : sum);
  }
  return most;
}

/// A copy by the names of what it copies; "" of other work.
static std::string copyName(const Dag &dag, const DagNode &node) {
  auto *copy = std::get_if<CopyCall>(&node.work);
  return copy ? node.name + '\n' + dag.buffer(copy->source).name + '\n' +
                    dag.buffer(copy->destination).name
              : "";
}

/// Gives the copies of `made` the phases of those of `dag` that have their
/// names; what crosses phases then outlives a replay. False where names do not
/// tell copies apart, and where that is no DAG.
static bool takePhases(Dag &made, const Dag &dag) {
  std::map<std::string, Phase> phases;
  for (const DagNode &node : dag.nodes)
    if (const std::string name = copyName(dag, node);
        !name.empty() &&
        phases.try_emplace(name, node.phase).first->second != node.phase)
      return false;
  for (uint32_t i = 0; i < made.nodes.size(); ++i)
    if (auto at = phases.find(copyName(made, made.nodes[i]));
        at != phases.end() && timesInReplay(dag, at->second) == 0) {
      made.nodes[i].phase = at->second;
      for (const BufferUse &use : made.nodes[i].uses)
        if (Buffer &buffer = made.buffers[use.buffer.value];
            buffer.role == BufferRole::Temporary)
          buffer.role = BufferRole::Resident;
    }
  return keepsPhases(made) && made.check();
}

/// `other`, a plan of withoutResidents(`dag`), for `dag`: the copies of
/// resident arguments go to their phases, and all else keeps its order and
/// streams, so that no step of a replay starts later. `made` is the DAG that
/// transforms left of the other one, whose nodes get the phases of those of
/// `dag` of their names. None where it cannot be made so. With its bound; not
/// verified.
static std::optional<Plan> planApart(const Plan &other, Dag &made,
                                     const Dag &dag) {
  if (!takePhases(made, dag))
    return std::nullopt;
  std::vector<OrderedStep> order;
  for (Phase phase : allPhases)
    for (const PlanStep &step : other.steps)
      if (made.node(step.node).phase == phase)
        order.push_back({step.node, step.streams});
  const PlanDurations durations(other, made);
  Result<Plan> plan = schedule(made, durations,
                               {other.scheduler + ", of no resident arguments",
                                0, other.streamsPerDevice},
                               std::move(order));
  if (!plan)
    return std::nullopt;
  const std::vector<double> us = durationsOf(*plan, made);
  Result<std::vector<PhaseProblem>> phases = phaseProblems(made, us);
  Result<PlanBound> bound =
      phases ? boundOf(made, us, *phases) : fail(phases.error());
  if (!bound)
    return std::nullopt;
  std::vector<const PlanStep *> stepOf(made.nodes.size());
  for (const PlanStep &step : other.steps)
    stepOf[step.node.value] = &step;
  for (PlanStep &step : plan->steps) {
    step.origin = stepOf[step.node.value]->origin;
    step.algorithm = stepOf[step.node.value]->algorithm;
  }
  plan->transforms = other.transforms;
  plan->memoryBytes = other.memoryBytes;
  plan->error = other.error;
  setBound(*plan, bound->us, bound->by);
  return std::move(*plan);
}

Result<void>
takeApart(TargetPlan &made, const Dag &dag, const Machine &machine,
          const PlanRequest &options,
          const std::function<Result<TargetPlan>(const Dag &)> &planOf) {
  std::optional<Dag> source;
  if (dag.spmd || !(source = withoutResidents(dag)) ||
      made.contendedUs <= leastUploadUs(*source, machine) ||
      (options.transforms.empty() &&
       made.contendedUs <= made.plan.lowerBoundUs * (1 + 1e-9)))
    return {};
  Result<TargetPlan> whole = planOf(*source);
  if (!whole) // it needs more memory than there is
    return whole.error().kind == ErrorKind::Invalid ? Result<void>()
                                                    : fail(whole.error());
  TargetPlan other = *whole;
  Dag left = other.dag ? *other.dag : *source;
  std::optional<Plan> apart = planApart(other.plan, left, dag);
  if (!apart)
    return {};
  const Contention contention = contentionOf(machine.topology());
  other.plan = std::move(*apart);
  if (options.schedulePolicy.join)
    joinForks(other.plan, left, contention);
  other.contendedUs = simulate(other.plan, left, contention).makespanUs;
  auto times = [](const TargetPlan &plan) {
    return std::pair(plan.contendedUs, plan.plan.makespanUs);
  };
  auto isLonger = [&](const TargetPlan &plan) {
    constexpr double rounding = 1 + 1e-9;
    return plan.contendedUs > whole->contendedUs * rounding ||
           plan.plan.makespanUs > whole->plan.makespanUs * rounding;
  };
  if (std::pair(isLonger(other), times(other)) >=
          std::pair(isLonger(made), times(made)) ||
      !verify(other.plan, left,
              {other.plan.streamsPerDevice, options.memoryBytes}))
    return {};
  other.serialUs = made.serialUs;
  if (other.dag)
    other.dag = std::move(left);
  made = std::move(other);
  return {};
}

} // namespace mgpu::planner
