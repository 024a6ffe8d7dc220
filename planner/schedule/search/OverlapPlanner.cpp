// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapPlanner.h"

#include "planner/plan/Verify.h"
#include "planner/schedule/search/MemoryBound.h"
#include "planner/schedule/search/OverlapPlan.h"
#include "planner/schedule/search/OverlapSearch.h"

#include <fmt/format.h>

namespace mgpu::planner::search {

static constexpr uint32_t proofCandidates = 12;

static Error doesNotFit(const Dag &dag, const OverlapModel &model,
                        uint64_t limit, const OverlapSearch &search) {
  uint64_t leastPeak = search.leastPeak();
  MemoryBound proof =
      memoryBound(model, search.lowMemory(), proofCandidates, limit);
  auto gb = [](uint64_t bytes) { return double(bytes) / 1e9; };
  if (proof.bytes <= limit)
    return {ErrorKind::Invalid,
            fmt::format("no order found fits {:.3f} GB: the least peak found "
                        "is {:.3f} GB, and {:.3f} GB are proven necessary; "
                        "allow more memory",
                        gb(limit), gb(leastPeak), gb(proof.bytes))};
  std::string largest;
  for (size_t k = 0; k < proof.live.size() && k < 5; ++k) {
    uint32_t node = proof.live[k];
    largest += fmt::format("{}{} \"{}\" ({:.3f} GB)", k ? ", " : "", node,
                           dag.nodes[node].name, gb(model.outBytes[node]));
  }
  return {ErrorKind::Invalid,
          fmt::format("no schedule fits {:.3f} GB: when node {} \"{}\" starts, "
                      "at least {:.3f} GB are live in every order (a minimum "
                      "cut: {:.3f} GB resident, its output and {} others, the "
                      "largest of nodes {}); {:.3f} GB are missing",
                      gb(limit), proof.node, dag.nodes[proof.node].name,
                      gb(proof.bytes), gb(model.residentBytes),
                      proof.live.size(), largest, gb(proof.bytes - limit))};
}

/// Makes and verifies the plan of a schedule; its arena must fit as well.
static Result<OverlapOutcome> finish(const Dag &dag, const OverlapModel &model,
                                     const OverlapSchedule &schedule,
                                     uint64_t limit) {
  OverlapOutcome outcome;
  outcome.plan = makePlan(model, schedule, dag);
  outcome.schedule = schedule;
  outcome.peakBytes = peakMemory(model, schedule);
  MGPU_TRY(verify(outcome.plan, dag, {2, limit}));
  MGPU_TRY(check(model, schedule));
  if (outcome.peakBytes > limit)
    return fail(
        ErrorKind::Internal,
        fmt::format("the plan takes {} bytes of {}", outcome.peakBytes, limit));
  return outcome;
}

static void complete(OverlapOutcome &outcome, const OverlapBounds &bounds,
                     double firstSeconds) {
  outcome.bounds = bounds;
  outcome.firstSeconds = firstSeconds;
  outcome.plan.lowerBoundUs = bounds.makespan;
  outcome.plan.scheduler = "overlap";
  outcome.plan.model = frozenModelName;
}

/// The one schedule there is in the program's order.
static Result<OverlapOutcome> planInOrder(const Dag &dag,
                                          const OverlapModel &model,
                                          uint64_t limit, bool early,
                                          const rcpsp::Budget &budget) {
  OverlapSchedule schedule = inOrderSchedule(model, early);
  if (uint64_t peak = peakMemory(model, schedule); peak > limit)
    return fail(ErrorKind::Invalid,
                fmt::format("in the program's own order {:.3f} GB are live, "
                            "{:.3f} GB more than there are; let the order be "
                            "chosen (--transforms auto), or allow more memory",
                            double(peak) / 1e9, double(peak - limit) / 1e9));
  MGPU_TRY_ASSIGN(OverlapOutcome outcome, finish(dag, model, schedule, limit));
  complete(outcome, makespanBounds(model), budget.elapsed());
  return outcome;
}

Result<OverlapOutcome> planOverlap(const Dag &dag, const OverlapModel &model,
                                   uint64_t memoryLimit, uint64_t seed,
                                   rcpsp::Budget &budget,
                                   SchedulePolicy schedulePolicy) {
  if (!schedulePolicy.order)
    return planInOrder(dag, model, memoryLimit, schedulePolicy.early, budget);
  OverlapOutcome best;
  std::optional<Error> refusal;
  OverlapSearch search(
      model, memoryLimit, seed,
      [&](const OverlapSchedule &schedule) {
        Result<OverlapOutcome> outcome =
            finish(dag, model, schedule, memoryLimit);
        if (outcome)
          best = std::move(*outcome);
        else
          refusal = std::move(outcome.error());
        return outcome.has_value();
      },
      !schedulePolicy.early);
  if (!search.first())
    return fail(search.leastPeak() > memoryLimit || !refusal
                    ? doesNotFit(dag, model, memoryLimit, search)
                    : *refusal);
  double firstSeconds = budget.elapsed();
  OverlapBounds bounds = makespanBounds(model);
  search.setBound(bounds.makespan);
  search.improve(budget);
  complete(best, bounds, firstSeconds);
  return best;
}

} // namespace mgpu::planner::search
