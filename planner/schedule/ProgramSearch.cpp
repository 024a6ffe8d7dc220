// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/ProgramSearch.h"

#include "planner/schedule/list/Schedulers.h"
#include "planner/schedule/search/OverlapSearch.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace mgpu::planner {

Result<ProgramModel> modelOf(const Dag &dag, const LatencyEstimator &latency,
                             uint64_t memoryBytes) {
  ProgramModel model;
  MGPU_TRY_ASSIGN(model.durations, nodeDurations(dag, latency));
  MGPU_TRY_ASSIGN(model.phases,
                  phaseProblems(dag, model.durations, memoryBytes));
  MGPU_TRY_ASSIGN(model.bound, boundOf(model.phases));
  return model;
}

namespace {

class ProgramSearch {
public:
  ProgramSearch(const Dag &dag, ProgramModel &model, const Plan &start,
                bool kept, const LatencyEstimator &latency,
                uint32_t streamsPerDevice, const PlanOffer &offer)
      : dag(dag), model(model), kept(kept), latency(latency),
        streamsPerDevice(streamsPerDevice), offer(offer) {
    std::vector<double> starts(dag.nodes.size());
    for (const PlanStep &step : start.steps)
      starts[step.node.value] = step.startUs;
    double end = 0;
    for (size_t k = 0; k < model.phases.size(); ++k) {
      const PhaseProblem &phase = model.phases[k];
      if (beginsPart(model.phases, k))
        end = 0;
      for (const ProblemDevice &device : phase.problem.devices)
        memoryBytes = std::min(memoryBytes, device.memoryBytes);
      Schedule &schedule = schedules.emplace_back();
      for (uint32_t i = 0; i < phase.nodes.size(); ++i) {
        schedule.starts.push_back(
            std::max(0.0, starts[phase.nodes[i].value] - end));
        schedule.makespan =
            std::max(schedule.makespan,
                     schedule.starts.back() + phase.problem.durations[i]);
      }
      end += schedule.makespan;
    }
  }

  Result<void> run(uint64_t seed, exact::Budget &budget) {
    uint64_t parts = 0;
    for (size_t k = 0; k < schedules.size(); ++k)
      parts += isOpen(k);
    for (size_t k = 0; k < schedules.size(); ++k)
      if (isOpen(k)) {
        exact::Budget part = budget.part(parts);
        MGPU_TRY(improve(k, seed, part));
        budget.spend(part.spentNodes());
      }
    return {};
  }

private:
  bool isOpen(size_t k) const {
    return !kept || schedules[k].makespan >
                        model.bound.certificates[k].boundUs * (1 + 1e-12);
  }

  Result<void> improve(size_t k, uint64_t seed, exact::Budget &budget) {
    const Certificate &certificate = model.bound.certificates[k];
    std::optional<Error> fault;
    search::OverlapSearch search(
        model.phases[k].problem, seed, [&](const Schedule &schedule) {
          const Schedule before = std::exchange(schedules[k], schedule);
          Result<double> taken = offerPlan();
          if (!taken)
            fault = taken.error();
          if (!taken || *taken > 1)
            schedules[k] = before;
          return taken ? *taken : std::numeric_limits<double>::infinity();
        });
    if (kept)
      search.startFrom(schedules[k]);
    else if (!search.first(budget))
      return fault ? Result<void>(fail(std::move(*fault))) : Result<void>();
    kept = true;
    search.improve(certificate, budget);
    if (fault)
      return fail(std::move(*fault));
    if (search.provenUs() > certificate.boundUs * (1 + 1e-12)) {
      model.bound.us +=
          model.phases[k].times * (search.provenUs() - certificate.boundUs);
      if (model.phases[k].times > 0)
        model.bound.by = BoundArgument::Search;
    }
    return {};
  }

  /// A plan of the schedules: nodes in the order of their starts, and a stream
  /// for each class of work.
  Result<double> offerPlan() const {
    std::vector<OrderedStep> order;
    for (size_t k = 0; k < schedules.size(); ++k) {
      const PhaseProblem &phase = model.phases[k];
      for (uint32_t i : startOrder(phase.problem, schedules[k])) {
        const DagNode &node = dag.node(phase.nodes[i]);
        OrderedStep step{phase.nodes[i], {}};
        for (DeviceId device : streamDevices(node))
          step.streams.push_back({device, streamOf(workClass(node))});
        order.push_back(std::move(step));
      }
    }
    MGPU_TRY_ASSIGN(Plan plan,
                    schedule(dag, latency, {"list search", 0, streamsPerDevice},
                             std::move(order)));
    for (size_t d = 0; d < plan.arenaBytes.size(); ++d)
      if (plan.arenaBytes[d] + dag.residentBytes > memoryBytes) {
        followTimes(plan, dag);
        break;
      }
    return offer(std::move(plan));
  }

  const Dag &dag;
  ProgramModel &model;
  bool kept;
  const LatencyEstimator &latency;
  const uint32_t streamsPerDevice;
  uint64_t memoryBytes = UINT64_MAX;
  const PlanOffer &offer;
  std::vector<Schedule> schedules; ///< by phase: the best that was kept
};

} // namespace

Result<void> searchPlans(const Dag &dag, ProgramModel &model, const Plan &start,
                         bool kept, const LatencyEstimator &latency,
                         uint32_t streamsPerDevice, uint64_t seed,
                         exact::Budget &budget, const PlanOffer &offer) {
  return ProgramSearch(dag, model, start, kept, latency, streamsPerDevice,
                       offer)
      .run(seed, budget);
}

} // namespace mgpu::planner
