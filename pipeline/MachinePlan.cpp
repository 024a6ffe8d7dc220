// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/MachinePlan.h"

#include "device/api/Topology.h"
#include "planner/schedule/WhatIf.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

using namespace planner;

Result<TopologyEstimator> openMachine(const std::string &target,
                                      const MachineOptions &options) {
  MGPU_TRY_ASSIGN(device::Topology topology, device::openTopology(target));
  std::shared_ptr<const CollectiveTable> table;
  if (!options.collectivesFile.empty()) {
    MGPU_TRY_ASSIGN(auto rows, readCollectives(options.collectivesFile));
    MGPU_TRY_ASSIGN(auto made, CollectiveTable::create(std::move(rows)));
    table = std::make_shared<const CollectiveTable>(std::move(made));
  }
  return TopologyEstimator(std::move(topology), std::move(table));
}

Result<TargetPlan> makePlan(const Dag &dag, const MachineRequest &request,
                            uint64_t memory, std::vector<OpFactor> ops) {
  const PlanOptions &plan = request.plan;
  if (plan.scheduler != "list")
    return fail(ErrorKind::Usage,
                fmt::format("--scheduler {} is for the host; sim targets are "
                            "planned by search",
                            plan.scheduler));
  TargetOptions target;
  MGPU_TRY_ASSIGN(target.memoryBytes, memoryLimit(request.machine.machine(),
                                                  request.options.memory));
  if (memory > 0)
    target.memoryBytes = memory;
  if (target.memoryBytes <= request.workspace)
    return fail(ErrorKind::Invalid,
                fmt::format("cuBLASLt needs {} bytes of each device, which has "
                            "{}: allow more --memory, or use "
                            "--variant cublaslt=off",
                            request.workspace, target.memoryBytes));
  target.memoryBytes -= request.workspace;
  target.streamsPerDevice = plan.streams;
  target.seed = plan.seed;
  MGPU_TRY_ASSIGN(TransformChoice choice, parseTransforms(plan.transforms));
  target.transforms = std::move(choice.transforms);
  target.schedulePolicy = choice.schedulePolicy;
  target.ops = std::move(ops);
  MGPU_TRY_ASSIGN(SearchBudget budget, parseBudget(request.options.budget));
  exact::Budget search(budget.seconds, budget.evaluations);
  return planForTarget(dag, request.machine, target, search);
}

/// The bytes of the fullest device, resident ones included.
static uint64_t memoryOf(const TargetPlan &plan, const Dag &dag) {
  if (plan.overlap)
    return plan.overlap->peakBytes;
  uint64_t most = 0;
  for (uint64_t bytes : plan.plan.arenaBytes)
    most = std::max(most, bytes + dag.residentBytes);
  return most;
}

Result<Front> makeFront(const Dag &dag, const MachineRequest &request) {
  constexpr double step = 0.9;
  Front front;
  uint64_t limit = 0;
  do {
    auto plan = makePlan(dag, request, limit);
    if (!plan &&
        (front.points.empty() || plan.error().kind != ErrorKind::Invalid))
      return fail(plan.error());
    if (!plan) {
      front.stopped = plan.error().message;
      break;
    }
    FrontPoint point{
        memoryOf(*plan, plan->dag ? *plan->dag : dag) + request.workspace,
        plan->plan.makespanUs, plan->contendedUs, plan->plan.lowerBoundUs,
        // See planForTarget().
        dag.spmd ? plan->plan.makespanUs : plan->contendedUs,
        plan->plan.transforms};
    limit = uint64_t(double(point.memory) * step);
    while (!front.points.empty() &&
           front.points.back().chosenUs >= point.chosenUs)
      front.points.pop_back();
    front.points.push_back(std::move(point));
  } while (limit > 0);
  return front;
}

Result<ChangedPlan> planWhatIf(const Dag &dag, const Dag &planned,
                               const MachineRequest &request,
                               const std::vector<std::string> &changes) {
  MGPU_TRY_ASSIGN(WhatIf changed,
                  applyWhatIf(changes, request.machine, dag, planned));
  const TopologyEstimator other =
      request.machine.on(std::move(changed.topology));
  ChangedPlan out;
  MGPU_TRY_ASSIGN(out.plan, makePlan(changed.dag,
                                     {other, request.plan, request.options,
                                      request.workspace},
                                     0, changed.made));
  out.scaled = changed.scaled;
  const Dag &made = out.plan.dag ? *out.plan.dag : changed.dag;
  for (const OpFactor &op : changed.made)
    if (std::none_of(
            made.nodes.begin(), made.nodes.end(),
            [&](const DagNode &node) { return op.matches(node.name); }))
      out.absent.push_back(op.pattern);
  return out;
}

} // namespace mgpu::pipeline
