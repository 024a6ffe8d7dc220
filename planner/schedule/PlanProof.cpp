// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/PlanProof.h"

#include "planner/schedule/alike/Quotient.h"
#include "planner/schedule/exact/DisjunctiveSearch.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "planner/schedule/problem/Problem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace mgpu::planner {

Result<std::vector<PhaseProblem>> problemsOf(const Plan &plan, const Dag &dag) {
  const std::vector<double> durations = durationsOf(plan, dag);
  if (!dag.spmd)
    return phaseProblems(dag, durations, plan.memoryBytes);
  Dag frozen = dag;
  for (size_t i = 0; i < durations.size(); ++i)
    frozen.nodes[i].durationUs = durations[i];
  std::vector<PhaseProblem> phases(1);
  FrozenOptions options;
  if (hasOwnOutputs(dag))
    options.memoryBytes = plan.memoryBytes;
  MGPU_TRY_ASSIGN(phases[0].problem, frozenProblem(frozen, options));
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    phases[0].nodes.push_back(NodeId{i});
  return phases;
}

static tl::unexpected<Error> bad(std::string what) {
  return fail(ErrorKind::Invalid, "plan: " + std::move(what));
}

/// The plan's times in one phase, which starts at `begin`.
static Schedule scheduleIn(const PhaseProblem &phase,
                           std::span<const double> starts, double begin) {
  Schedule schedule;
  for (uint32_t i = 0; i < phase.nodes.size(); ++i) {
    schedule.starts.push_back(starts[phase.nodes[i].value] - begin);
    schedule.makespan = std::max(
        schedule.makespan, schedule.starts.back() + phase.problem.durations[i]);
  }
  for (double &start : schedule.starts)
    if (start < 0 && start > -1e-6) // (a + b) - a is not b
      start = 0;
  return schedule;
}

static std::vector<double> startsOf(const Plan &plan, const Dag &dag) {
  std::vector<double> starts(dag.nodes.size());
  for (const PlanStep &step : plan.steps)
    starts[step.node.value] = step.startUs;
  return starts;
}

/// Proves that nothing is shorter than `schedule`, if branches suffice.
static Result<void> proveBySearch(const PhaseProblem &phase, Schedule schedule,
                                  Certificate &certificate) {
  constexpr uint64_t mostBranches = 200'000;
  if (schedule.makespan <= certificate.boundUs * (1 + 1e-12) ||
      !DisjunctiveSearch::suits(phase.problem))
    return {};
  DisjunctiveSearch search(phase.problem, std::move(schedule));
  exact::Budget budget(1e9, mostBranches);
  if (!search.run(UINT64_MAX, budget))
    return {};
  certificate.boundUs = search.best().makespan;
  certificate.argument = search.proof();
  return check(certificate, phase.problem);
}

Result<PlanBound> proofOf(const Plan &plan, const Dag &dag, bool bySearch) {
  MGPU_TRY_ASSIGN(const std::vector<PhaseProblem> phases,
                  problemsOf(plan, dag));
  MGPU_TRY_ASSIGN(PlanBound bound,
                  boundOf(dag, durationsOf(plan, dag), phases));
  if (!bySearch || plan.boundBy != BoundArgument::Search)
    return bound;
  const std::vector<double> starts = startsOf(plan, dag);
  double end = 0;
  bound.us = 0;
  bound.words.clear();
  for (size_t k = 0; k < phases.size(); ++k) {
    if (beginsPart(phases, k))
      end = 0;
    Schedule schedule = scheduleIn(phases[k], starts, end);
    end += schedule.makespan;
    if (phases[k].times == 0)
      continue;
    Certificate &certificate = bound.certificates[k];
    MGPU_TRY(proveBySearch(phases[k], std::move(schedule), certificate));
    bound.words.push_back(explainBound(certificate, phases[k].problem));
    bound.us += phases[k].times * certificate.boundUs;
  }
  if (restsOnSearch(bound.certificates))
    bound.by = BoundArgument::Search;
  return bound;
}

bool restsOnSearch(std::span<const Certificate> certificates) {
  return std::any_of(
      certificates.begin(), certificates.end(), [](const Certificate &each) {
        return std::holds_alternative<SearchArgument>(each.argument);
      });
}

Result<double> checkProof(const Plan &plan, const Dag &dag,
                          std::span<const Certificate> certificates) {
  MGPU_TRY_ASSIGN(const std::vector<PhaseProblem> phases,
                  problemsOf(plan, dag));
  if (phases.size() != certificates.size())
    return fail(ErrorKind::Invalid,
                fmt::format("certificate: it is of {} phases, the plan has {}",
                            certificates.size(), phases.size()));
  for (uint64_t bytes : plan.arenaBytes)
    if (plan.memoryBytes < dag.residentBytes ||
        bytes > plan.memoryBytes - dag.residentBytes)
      return bad(fmt::format("its arena of {} bytes and the {} resident ones "
                             "do not fit the {} bytes it says",
                             bytes, dag.residentBytes, plan.memoryBytes));
  const std::vector<double> starts = startsOf(plan, dag);
  double end = 0, proven = 0;
  PhaseTimes times{};
  for (size_t k = 0; k < phases.size(); ++k) {
    if (certificates[k].phase != phases[k].phase)
      return fail(ErrorKind::Invalid,
                  fmt::format("certificate: it is of phase {} where the plan "
                              "has phase {}",
                              toString(certificates[k].phase),
                              toString(phases[k].phase)));
    if (beginsPart(phases, k))
      end = 0;
    const Schedule schedule = scheduleIn(phases[k], starts, end);
    if (auto ok = check(phases[k].problem, schedule); !ok)
      return bad(
          fmt::format("its times are no schedule: {}", ok.error().message));
    MGPU_TRY(check(certificates[k], phases[k].problem));
    end += schedule.makespan;
    times[size_t(phases[k].phase)] = schedule.makespan;
    proven += phases[k].times * certificates[k].boundUs;
  }
  for (PlanPart part : allPlanParts) {
    const double says = part == PlanPart::Load    ? plan.loadUs
                        : part == PlanPart::Fetch ? plan.fetchUs
                                                  : plan.makespanUs,
                 takes = partUs(times, dag, part);
    if (std::abs(takes - says) > 1e-9 * std::max(1.0, takes))
      return bad(fmt::format("it says a {} of {} us, and its steps take {} us",
                             toString(part), says, takes));
  }
  if (plan.lowerBoundUs > plan.makespanUs * (1 + 1e-9))
    return bad(fmt::format("its bound of {} us is above its makespan of {} us",
                           plan.lowerBoundUs, plan.makespanUs));
  const bool isWhole =
      plan.boundBy != BoundArgument::Search || restsOnSearch(certificates);
  if (isWhole && plan.lowerBoundUs > proven * (1 + 1e-9))
    return bad(fmt::format("it says a bound of {} us, and {} us is proven",
                           plan.lowerBoundUs, proven));
  return proven;
}

} // namespace mgpu::planner
