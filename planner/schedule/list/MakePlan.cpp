// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/MakePlan.h"

#include "planner/schedule/list/PlanBuilder.h"
#include "support/Random.h"

#include <fmt/format.h>

namespace mgpu::planner {

namespace {

/// Durations off by a factor that is drawn for each node. They lead to other
/// orders of the steps that a list scheduler finds worth trying.
class Perturbed final : public LatencyEstimator {
public:
  Perturbed(const LatencyEstimator &inner, uint64_t seed)
      : inner(inner), seed(seed) {}
  double durationUs(const Dag &dag, NodeId node) const override {
    Random random(seed * 0x9e3779b97f4a7c15 + node.value);
    return inner.durationUs(dag, node) * (0.5 + 1.5 * random.uniform());
  }
  std::string name() const override { return inner.name(); }

private:
  const LatencyEstimator &inner;
  uint64_t seed;
};

Result<Plan> schedule(const Dag &dag, const PlanRequest &request,
                      const LatencyEstimator &latency) {
  if (request.scheduler == "shuffled")
    return scheduleShuffled(dag, latency, request.seed, request);
  const bool isSerial = request.scheduler == "serial";
  auto made = [&](const LatencyEstimator &by) {
    return isSerial ? scheduleSerial(dag, by, request)
                    : scheduleList(dag, by, request);
  };
  if (request.seed == 0)
    return made(latency);
  MGPU_TRY_ASSIGN(Plan plan, made(Perturbed(latency, request.seed)));
  // The draw chose the order. What is predicted is what was estimated.
  for (PlanStep &step : plan.steps)
    step.durationUs = latency.durationUs(dag, step.node);
  plan.lowerBoundUs = makespanLowerBound(dag, latency);
  predictTimes(plan, dag);
  return plan;
}

} // namespace

Result<Plan> makePlan(const Dag &dag, const PlanRequest &request,
                      const LatencyEstimator *latency) {
  const RooflineEstimator roofline(hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(Plan plan,
                  schedule(dag, request, latency ? *latency : roofline));
  if (auto ok = verify(plan, dag, request.limits); !ok)
    return fail(ErrorKind::Internal,
                fmt::format("scheduler '{}' made an unsafe plan: {}",
                            request.scheduler, ok.error().message));
  return plan;
}

} // namespace mgpu::planner
