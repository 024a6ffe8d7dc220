// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/TargetSearch.h"

#include "planner/schedule/ProgramSearch.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/list/PlanBuilder.h"
#include "planner/schedule/list/Schedulers.h"
#include "planner/schedule/search/LowerPeak.h"
#include "planner/schedule/search/MemoryBound.h"
#include "support/Random.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

/// The buffers that are live where the plan's arena is fullest, on the device
/// that exceeds the limit most.
static Error doesNotFit(const Plan &plan, const Dag &dag, uint64_t limit) {
  size_t worst = 0;
  for (size_t d = 0; d < plan.arenaBytes.size(); ++d)
    if (plan.arenaBytes[d] > plan.arenaBytes[worst])
      worst = d;
  constexpr size_t never = SIZE_MAX;
  std::vector<size_t> first(dag.buffers.size(), never),
      last(dag.buffers.size(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (const BufferUse &use : dag.node(plan.steps[s].node).uses) {
      first[use.buffer.value] = std::min(first[use.buffer.value], s);
      last[use.buffer.value] = s;
    }
  auto isLive = [&](size_t b, size_t s) {
    const Buffer &buffer = dag.buffers[b];
    if (!isInArena(buffer) || size_t(buffer.device.value) != worst)
      return false;
    return buffer.role == BufferRole::Resident || first[b] == never ||
           (first[b] <= s && s <= last[b]);
  };
  std::vector<int64_t> change(plan.steps.size() + 2, 0);
  for (size_t b = 0; b < dag.buffers.size(); ++b) {
    const Buffer &buffer = dag.buffers[b];
    if (!isInArena(buffer) || size_t(buffer.device.value) != worst)
      continue;
    bool always = buffer.role == BufferRole::Resident || first[b] == never;
    change[always ? 0 : first[b]] += int64_t(buffer.sizeBytes);
    change[always ? plan.steps.size() : last[b] + 1] -=
        int64_t(buffer.sizeBytes);
  }
  int64_t live = 0, most = 0;
  size_t at = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s)
    if ((live += change[s]) > most) {
      most = live;
      at = s;
    }
  std::vector<size_t> buffers;
  for (size_t b = 0; b < dag.buffers.size(); ++b)
    if (isLive(b, at))
      buffers.push_back(b);
  std::sort(buffers.begin(), buffers.end(), [&](size_t a, size_t b) {
    return std::pair(dag.buffers[b].sizeBytes, a) <
           std::pair(dag.buffers[a].sizeBytes, b);
  });
  std::string largest;
  for (size_t k = 0; k < buffers.size() && k < 5; ++k)
    largest += fmt::format("{}\"{}\" ({} bytes)", k ? ", " : "",
                           dag.buffers[buffers[k]].name,
                           dag.buffers[buffers[k]].sizeBytes);
  const DagNode &node = dag.node(plan.steps[at].node);
  uint64_t needed = plan.arenaBytes[worst] + dag.residentBytes;
  return {ErrorKind::Invalid,
          fmt::format("no plan found fits {} bytes: the smallest arena of "
                      "device {} is {} bytes, {} are missing; most is live at "
                      "node {} \"{}\"{}{}: {} bytes in {} buffers, the largest "
                      "{}; use more devices or smaller buffers",
                      limit, worst, needed, needed - limit,
                      plan.steps[at].node.value, node.name,
                      node.location.empty() ? "" : " at ", node.location, most,
                      buffers.size(), largest)};
}

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

class Search {
public:
  Search(const Dag &dag, const Machine &machine, const PlanRequest &options,
         SchedulePolicy schedulePolicy)
      : dag(dag), machine(machine), options(options),
        schedulePolicy(schedulePolicy),
        contention(contentionOf(machine.topology())) {
    if (!contends())
      this->schedulePolicy.join = false; // there is nothing to gain
  }

  Result<TargetPlan> run(exact::Budget &budget) {
    MGPU_TRY_ASSIGN(model, modelOf(dag, machine, options.memoryBytes));
    MGPU_TRY(options.isFixed() ? planFixed() : improve(budget));
    if (!hasPlan())
      return fail(withProof(doesNotFit(smallest, dag, options.memoryBytes)));
    setBound(best.plan, model.bound.us, model.bound.by);
    return std::move(best);
  }

private:
  /// Whether work slows down what runs beside it.
  bool contends() const { return contention != Contention(); }

  /// The scheduler's own plan.
  Result<void> planFixed() {
    ScheduleOptions schedule;
    schedule.streamsPerDevice = options.streamsPerDevice;
    schedule.schedulePolicy = schedulePolicy;
    auto made = [&](const LatencyEstimator &by) {
      return options.scheduler == "shuffled"
                 ? scheduleShuffled(dag, by, options.seed, schedule)
             : options.scheduler == "serial" ? scheduleSerial(dag, by, schedule)
                                             : scheduleList(dag, by, schedule);
    };
    if (options.drawn == 0) {
      MGPU_TRY_ASSIGN(Plan plan, made(machine));
      return consider(std::move(plan));
    }
    MGPU_TRY_ASSIGN(Plan plan, made(Perturbed(machine, options.drawn)));
    // The draw chose the order. The prediction is what was estimated.
    for (PlanStep &step : plan.steps)
      step.durationUs = machine.durationUs(dag, step.node);
    predictTimes(plan, dag);
    return consider(std::move(plan));
  }

  Result<void> improve(exact::Budget &budget) {
    std::optional<Plan> serial;
    if (contends()) {
      MGPU_TRY_ASSIGN(serial, scheduleSerial(dag, machine, {}));
      best.serialUs = simulate(*serial, dag, contention).makespanUs;
    }
    tails = longestPaths(dag, model.durations).tail;
    for (size_t i = 0; i < tails.size(); ++i)
      tails[i] += model.durations[i];
    // Fewer streams fork less, and need less memory.
    for (uint32_t streams = options.streamsPerDevice; streams > 0;
         streams /= 2) {
      ScheduleOptions schedule;
      schedule.streamsPerDevice = streams;
      schedule.schedulePolicy = schedulePolicy;
      MGPU_TRY_ASSIGN(Plan plan, scheduleList(dag, machine, schedule));
      MGPU_TRY(consider(std::move(plan)));
      if (!schedulePolicy.join && hasPlan())
        break;
    }
    if (!serial && !hasPlan()) {
      MGPU_TRY_ASSIGN(serial, scheduleSerial(dag, machine, {}));
    }
    if (schedulePolicy.join || !hasPlan())
      MGPU_TRY(consider(std::move(*serial)));
    if (schedulePolicy.order && schedulePolicy.early &&
        options.streamsPerDevice >= 3)
      MGPU_TRY(search(budget));
    if (schedulePolicy.order && (contends() || !hasPlan()))
      MGPU_TRY(disturb(budget));
    return schedulePolicy.join && hasPlan() ? join() : Result<void>();
  }

  bool hasPlan() const { return !best.plan.steps.empty() || dag.nodes.empty(); }

  Result<void> consider(Plan plan) {
    uint64_t needed = largestArena(plan) + dag.residentBytes;
    if (needed > options.memoryBytes) {
      if (smallest.steps.empty() || largestArena(plan) < largestArena(smallest))
        smallest = std::move(plan);
      return {};
    }
    auto lengths = [](const Plan &of) {
      return std::pair(of.makespanUs, of.loadUs + of.fetchUs);
    };
    if (shortest.steps.empty() || lengths(plan) < lengths(shortest))
      shortest = plan;
    const double contended = contends()
                                 ? simulate(plan, dag, contention).makespanUs
                                 : plan.makespanUs;
    if (!best.plan.steps.empty() &&
        std::pair(contended, lengths(plan)) >=
            std::pair(best.contendedUs, lengths(best.plan)))
      return {};
    MGPU_TRY(prove(plan));
    best.plan = std::move(plan);
    best.contendedUs = contended;
    return {};
  }
  Result<void> prove(const Plan &plan) const {
    PlanLimits limits;
    limits.arenaBytes = options.memoryBytes;
    if (auto verdict = verify(plan, dag, limits); !verdict)
      return fail(ErrorKind::Internal,
                  fmt::format("scheduler {} made an unsafe plan: {}",
                              plan.scheduler, verdict.error().message));
    return {};
  }

  Result<void> join() {
    if (joinForks(best.plan, dag, contention) == 0)
      return {};
    best.contendedUs = simulate(best.plan, dag, contention).makespanUs;
    return prove(best.plan);
  }

  /// Says it where no order at all fits: what is live at one node is a minimum
  /// cut.
  Error withProof(Error error) const {
    constexpr uint32_t candidates = 12;
    for (const PhaseProblem &phase : model.phases)
      for (uint32_t d = 0; d < phase.problem.devices.size(); ++d) {
        const search::MemoryBound bound = search::memoryBound(
            phase.problem, d, search::lowMemoryOrder(phase.problem), candidates,
            options.memoryBytes);
        if (bound.bytes <= options.memoryBytes)
          continue;
        const DagNode &node = dag.node(phase.nodes[bound.node]);
        error.message = fmt::format(
            "no schedule fits {} bytes: when \"{}\"{}{} starts, {} bytes of "
            "device {} are live in every order; {}",
            options.memoryBytes, node.name, node.location.empty() ? "" : " at ",
            node.location, bound.bytes, d, error.message);
        return error;
      }
    return error;
  }

  /// Plans that are shorter where contention is left out, which leaves half the
  /// budget to others where there is any.
  Result<void> search(exact::Budget &budget) {
    exact::Budget half = budget.part(contends() ? 2 : 1);
    const Plan &start = shortest.steps.empty() ? smallest : shortest;
    const bool hasStart = !shortest.steps.empty();
    if (hasStart && start.makespanUs <= model.bound.us * (1 + 1e-9))
      return {};
    MGPU_TRY(searchPlans(
        dag, model, Plan(start), hasStart, machine, options.streamsPerDevice,
        options.seed, half, [&](Plan plan) -> Result<double> {
          const double taken = double(largestArena(plan) + dag.residentBytes) /
                               double(options.memoryBytes);
          MGPU_TRY(consider(std::move(plan)));
          return taken;
        }));
    budget.spend(half.spentNodes());
    return {};
  }

  /// The priorities of list scheduling, with noise of a share of each.
  Result<void> disturb(exact::Budget &budget) {
    Random random(options.seed);
    std::vector<double> priorities(tails.size());
    uint32_t fruitless = 0;
    while (!budget.exhausted() && fruitless < patience) {
      if (!best.plan.steps.empty() && best.contendedUs <= model.bound.us)
        break;
      budget.spend();
      double share = 0.02 + 0.5 * random.uniform() * random.uniform();
      for (size_t i = 0; i < tails.size(); ++i) // once is what it was
        priorities[i] = partOf(dag.nodes[i].phase) != PlanPart::Replay
                            ? tails[i]
                            : tails[i] * (1 + share * (random.uniform() - 0.5));
      uint32_t most = std::max(options.streamsPerDevice, 1u),
               streams = schedulePolicy.join ? 1 + uint32_t(random.below(most))
                                             : most;
      ScheduleOptions schedule;
      schedule.schedulePolicy = schedulePolicy;
      MGPU_TRY_ASSIGN(Plan plan,
                      finishPlan("list search",
                                 listOrder(dag, model.durations, priorities,
                                           streams, schedulePolicy.early),
                                 streams, WaitPolicy::Dependences, dag, machine,
                                 schedule));
      double before = best.contendedUs;
      MGPU_TRY(consider(std::move(plan)));
      fruitless = best.contendedUs < before ? 0 : fruitless + 1;
    }
    return {};
  }

  /// A search that has found nothing better so often ends.
  static constexpr uint32_t patience = 2000;

  const Dag &dag;
  const Machine &machine;
  const PlanRequest &options;
  SchedulePolicy schedulePolicy;
  Contention contention;
  std::vector<double> tails; ///< longest path from each node's start
  TargetPlan best;
  Plan shortest; ///< shortest that fits, without contention
  Plan smallest; ///< smallest, where none fits
  ProgramModel model;
};

} // namespace

Result<TargetPlan> searchLists(const Dag &dag, const Machine &machine,
                               const PlanRequest &options,
                               SchedulePolicy schedulePolicy,
                               exact::Budget &budget) {
  return Search(dag, machine, options, schedulePolicy).run(budget);
}

} // namespace mgpu::planner
