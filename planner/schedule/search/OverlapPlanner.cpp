// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapPlanner.h"

#include "planner/plan/Verify.h"
#include "planner/schedule/bound/PlanBound.h"
#include "planner/schedule/search/InOrder.h"
#include "planner/schedule/search/MemoryBound.h"
#include "planner/schedule/search/OverlapPlan.h"
#include "planner/schedule/search/OverlapSearch.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace mgpu::planner::search {

static constexpr uint32_t proofCandidates = 12;

static Error doesNotFit(const Dag &dag, const Problem &problem,
                        const std::vector<uint32_t> &lowest) {
  const uint64_t limit = problem.devices[0].memoryBytes;
  MemoryBound proof = memoryBound(problem, 0, lowest, proofCandidates, limit);
  auto gb = [](uint64_t bytes) { return double(bytes) / 1e9; };
  const uint64_t least = sequencePeakBytes(problem, lowest)[0];
  if (proof.bytes <= limit)
    return {
        ErrorKind::Invalid,
        fmt::format("no plan was found that fits {:.3f} GB: the least "
                    "peak found is {:.3f} GB{}, and {:.3f} GB are proven "
                    "necessary; allow more memory",
                    gb(limit), gb(least),
                    least <= limit ? " with gaps in the arena beside it" : "",
                    gb(proof.bytes))};
  std::string largest;
  for (size_t k = 0; k < proof.live.size() && k < 5; ++k) {
    uint32_t node = problem.users[proof.live[k]].front();
    largest += fmt::format("{}{} \"{}\" ({:.3f} GB)", k ? ", " : "", node,
                           dag.nodes[node].name,
                           gb(problem.buffers[proof.live[k]].bytes));
  }
  return {ErrorKind::Invalid,
          fmt::format("no schedule fits {:.3f} GB: when node {} \"{}\" starts, "
                      "at least {:.3f} GB are live in every order (a minimum "
                      "cut: {:.3f} GB resident, its output and {} others, the "
                      "largest of nodes {}); {:.3f} GB are missing",
                      gb(limit), proof.node, dag.nodes[proof.node].name,
                      gb(proof.bytes), gb(problem.devices[0].residentBytes),
                      proof.live.size(), largest, gb(proof.bytes - limit))};
}

/// Proves a plan of a schedule that fits, unless it is a draft.
static Result<OverlapOutcome> finish(const Dag &dag, const Problem &problem,
                                     const Schedule &schedule, Plan plan,
                                     Proof proof) {
  const uint64_t limit = problem.devices[0].memoryBytes;
  OverlapOutcome outcome;
  outcome.plan = std::move(plan);
  outcome.schedule = schedule;
  outcome.peakBytes = peakBytes(problem, schedule)[0];
  if (proof == Proof::Verified)
    MGPU_TRY(verify(outcome.plan, dag, {mostKernels + 1, limit}));
  MGPU_TRY(check(problem, schedule));
  if (outcome.peakBytes > limit)
    return fail(
        ErrorKind::Internal,
        fmt::format("the plan takes {} bytes of {}", outcome.peakBytes, limit));
  return outcome;
}

/// `provenUs`: by the exact search, or 0.
static void complete(OverlapOutcome &outcome, Problem problem,
                     Certificate certificate, double firstSeconds,
                     double provenUs = 0) {
  setBound(outcome.plan, certificate.boundUs, argumentOf(certificate));
  if (provenUs > certificate.boundUs * (1 + 1e-12))
    setBound(outcome.plan, provenUs, BoundArgument::Search);
  outcome.plan.scheduler = "overlap";
  outcome.plan.model = frozenModelName;
  outcome.problem = std::move(problem);
  outcome.certificate = std::move(certificate);
  outcome.firstSeconds = firstSeconds;
}

/// The one schedule there is in the program's order.
static Result<OverlapOutcome> planInOrder(const Dag &dag, Problem problem,
                                          bool early,
                                          const exact::Budget &budget,
                                          Proof proof, uint64_t enough) {
  const uint64_t limit = problem.devices[0].memoryBytes;
  Schedule schedule = inOrderSchedule(problem, early);
  if (uint64_t peak = peakBytes(problem, schedule)[0]; peak > limit)
    return fail(ErrorKind::Invalid,
                fmt::format("in the program's own order {:.3f} GB are live, "
                            "{:.3f} GB more than there are; let the order be "
                            "chosen (--transforms auto), or allow more memory",
                            double(peak) / 1e9, double(peak - limit) / 1e9));
  MGPU_TRY_ASSIGN(OverlapOutcome outcome,
                  finish(dag, problem, schedule,
                         asPlan(problem, schedule, dag, enough), proof));
  const double firstSeconds = budget.elapsed();
  Certificate certificate = makespanBound(problem, hasOwnOutputs(dag));
  MGPU_TRY(check(certificate, problem));
  complete(outcome, std::move(problem), std::move(certificate), firstSeconds);
  return outcome;
}

Result<OverlapOutcome> planOverlap(const Dag &dag, const FrozenOptions &options,
                                   uint64_t seed, exact::Budget &budget,
                                   SchedulePolicy schedulePolicy, Proof proof) {
  MGPU_TRY_ASSIGN(Problem problem, frozenProblem(dag, options));
  const uint64_t enough =
      proof == Proof::Draft && options.memoryBytes > dag.residentBytes
          ? options.memoryBytes - dag.residentBytes
          : 0;
  if (!schedulePolicy.order)
    return planInOrder(dag, std::move(problem), schedulePolicy.early, budget,
                       proof, enough);
  std::optional<Problem> placed;
  if (!schedulePolicy.early) {
    FrozenOptions keeping = options;
    keeping.keepsPlaces = true;
    MGPU_TRY_ASSIGN(placed, frozenProblem(dag, keeping));
  }
  const Problem &searched = placed ? *placed : problem;
  const double limit = double(options.memoryBytes);
  std::optional<OverlapOutcome> best;
  std::optional<Error> fault;
  OverlapSearch search(searched, seed, [&](const Schedule &schedule) {
    Plan plan = asPlan(problem, schedule, dag, enough);
    uint64_t bytes = peakBytes(problem, schedule)[0];
    for (uint64_t arena : plan.arenaBytes)
      bytes = std::max(bytes, arena + dag.residentBytes);
    if (bytes > options.memoryBytes)
      return double(bytes) / limit;
    auto made = finish(dag, problem, schedule, std::move(plan), proof);
    if (!made) {
      fault = std::move(made.error());
      return std::numeric_limits<double>::infinity();
    }
    best = std::move(*made);
    return 0.0;
  });
  const bool found = search.first(budget);
  if (fault)
    return fail(std::move(*fault));
  if (!found)
    return fail(doesNotFit(dag, searched, search.lowestSequence()));
  const double firstSeconds = budget.elapsed();
  Certificate certificate = makespanBound(problem, hasOwnOutputs(dag));
  MGPU_TRY(check(certificate, problem));
  search.improve(certificate, budget);
  if (fault)
    return fail(std::move(*fault));
  // The problem that is searched may be kept to places, and then its optimum is
  // not a bound.
  complete(*best, std::move(problem), std::move(certificate), firstSeconds,
           schedulePolicy.early ? search.provenUs() : 0);
  return std::move(*best);
}

} // namespace mgpu::planner::search
