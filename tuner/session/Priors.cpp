// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/Priors.h"

#include "planner/schedule/HostReplay.h"

namespace mgpu::tuner {

using namespace planner;

PriorTimes::PriorTimes(const Dag &program, const NodeTimes &timed,
                       const LatencyEstimator &model)
    : model(model), kernels(program.kernels.size()) {
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    if (i >= timed.size() || !timed[i] || *timed[i] <= 0)
      continue;
    const DagNode &node = program.nodes[i];
    known.emplace(workText(program, {i}), *timed[i]);
    auto add = [&](Ratio &ratio) {
      ratio.measuredUs += *timed[i];
      ratio.modelUs += model.durationUs(program, {i});
    };
    add(kinds[size_t(workClass(node))]);
    if (auto *call = std::get_if<KernelCall>(&node.work))
      add(kernels[call->kernel.value]);
  }
}

double PriorTimes::durationUs(const Dag &dag, NodeId id) const {
  if (auto at = known.find(workText(dag, id)); at != known.end())
    return at->second;
  const DagNode &node = dag.node(id);
  const double us = model.durationUs(dag, id);
  if (auto *call = std::get_if<KernelCall>(&node.work))
    if (const Ratio &ratio = kernels[call->kernel.value]; ratio.isKnown())
      return us * ratio();
  const Ratio &ratio = kinds[size_t(workClass(node))];
  return ratio.isKnown() ? us * ratio() : us;
}

Result<double> predictedUs(const Dag &dag, const ProgramConfig &config,
                           const Machine &machine,
                           const LatencyEstimator &times) {
  MGPU_TRY_ASSIGN(Plan plan, planOf(dag, config, machine));
  for (PlanStep &step : plan.steps)
    step.durationUs = times.durationUs(dag, step.node);
  return hostReplayUs(plan, dag, config.threads);
}

} // namespace mgpu::tuner
