// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/MakePlan.h"

#include "planner/schedule/Origins.h"
#include "planner/schedule/ProgramSearch.h"
#include "planner/schedule/ResidentPlan.h"
#include "planner/schedule/list/PlanBuilder.h"
#include "support/Random.h"

#include <algorithm>
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
  predictTimes(plan, dag);
  return plan;
}

/// Moves of the search, so that it takes some hundredths of a second for a
/// small program, and for a large one no longer than its bound.
uint64_t movesFor(const Dag &dag) {
  return std::clamp<uint64_t>(60'000 / (dag.nodes.size() + 1), 8, 2000);
}

/// By the replay, and of equal ones by what runs once.
bool isShorter(const Plan &a, const Plan &b) {
  if (a.makespanUs != b.makespanUs)
    return a.makespanUs < b.makespanUs * (1 - 1e-9);
  return a.loadUs + a.fetchUs < (b.loadUs + b.fetchUs) * (1 - 1e-9);
}

/// Takes the plan of the program without resident arguments, less their copies,
/// where that is shorter.
Result<void> takeOther(Plan &plan, const Dag &dag, const PlanRequest &request,
                       const LatencyEstimator &latency) {
  auto isLeast = [&](double us) { return plan.makespanUs <= us * (1 + 1e-9); };
  std::optional<Dag> other;
  if (isLeast(plan.lowerBoundUs) || !(other = withoutResidents(dag)))
    return {};
  MGPU_TRY_ASSIGN(const ProgramModel model, modelOf(*other, latency));
  if (isLeast(model.bound.us))
    return {};
  MGPU_TRY_ASSIGN(const Plan whole, makePlan(*other, request, &latency));
  std::optional<Plan> apart = planApart(whole, *other, dag);
  if (!apart || !isShorter(*apart, plan) ||
      !verify(*apart, dag, request.limits))
    return {};
  apart->lowerBoundUs = plan.lowerBoundUs;
  apart->boundBy = plan.boundBy;
  plan = std::move(*apart);
  return {};
}

/// Sets the bound of a plan, and shortens it where the request leaves it open.
Result<void> complete(Plan &plan, const Dag &dag, const PlanRequest &request,
                      const LatencyEstimator &latency) {
  MGPU_TRY_ASSIGN(ProgramModel model, modelOf(dag, latency));
  const bool isOpen = request.scheduler == "list" && request.seed == 0 &&
                      request.schedulePolicy.order &&
                      request.schedulePolicy.early &&
                      plan.streamsPerDevice >= 3;
  if (isOpen && plan.makespanUs > model.bound.us * (1 + 1e-9)) {
    exact::Budget budget(1e9, movesFor(dag));
    const PlanOffer offer = [&](Plan shorter) -> Result<double> {
      double taken = 0;
      for (uint64_t bytes : shorter.arenaBytes)
        taken = std::max(taken, double(bytes + dag.residentBytes) /
                                    double(request.limits.arenaBytes));
      if (taken <= 1 && isShorter(shorter, plan))
        plan = std::move(shorter);
      return taken;
    };
    MGPU_TRY(searchPlans(dag, model, plan, true, latency, plan.streamsPerDevice,
                         1, budget, offer));
  }
  setBound(plan, model.bound.us, model.bound.by);
  return request.scheduler == "list" && request.seed == 0
             ? takeOther(plan, dag, request, latency)
             : Result<void>();
}

} // namespace

Result<Plan> makePlan(const Dag &dag, const PlanRequest &request,
                      const LatencyEstimator *latency) {
  const RooflineEstimator roofline(hostRates(), "host roofline");
  const LatencyEstimator &by = latency ? *latency : roofline;
  MGPU_TRY_ASSIGN(Plan plan, schedule(dag, request, by));
  if (!request.isDraft)
    MGPU_TRY(complete(plan, dag, request, by));
  recordOrigins(plan, dag, by);
  if (auto ok = verify(plan, dag, request.limits); !ok)
    return fail(ErrorKind::Internal,
                fmt::format("scheduler '{}' made an unsafe plan: {}",
                            request.scheduler, ok.error().message));
  return plan;
}

} // namespace mgpu::planner
