// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/TargetSearch.h"

#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/ProgramSearch.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/alike/Quotient.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "planner/schedule/search/MemoryBound.h"
#include "planner/schedule/search/OverlapSearch.h"
#include "support/Random.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace mgpu::planner {

namespace {

/// The work on the streams of a device at the start of each step: collectives
/// on one, kernels on another, or on several where they run side by side.
class OverlapStreams {
public:
  OverlapStreams(const Problem &problem, const Schedule &schedule)
      : problem(problem), schedule(schedule) {
    const bool isUnit = problem.isUnit[uint32_t(FrozenResource::Kernels)];
    of.resize(isUnit ? 2 : mostKernels + 1);
    for (Stream &stream : of)
      stream.known.assign(of.size(), none);
  }

  /// A step of the plan; steps come by start.
  PlanStep add(uint32_t node, const std::vector<DeviceId> &devices) {
    PlanStep step;
    step.node = NodeId{node};
    step.startUs = schedule.starts[node];
    step.durationUs = problem.durations[node];
    const uint32_t mine = isCollective(problem, node) ? 1 : freeStream(node);
    for (DeviceId device : devices)
      step.streams.push_back({device, StreamId{mine}});
    for (uint32_t other = 0; other < of.size(); ++other)
      if (other != mine)
        if (const uint32_t ended = endedOn(other, step.startUs);
            ended != none && ended != of[mine].known[other]) {
          step.waits.push_back(NodeId{ended});
          of[mine].known[other] = ended;
        }
    std::sort(step.waits.begin(), step.waits.end());
    of[mine].former = of[mine].latest;
    of[mine].latest = node;
    used = std::max(used, mine + 1);
    return step;
  }
  uint32_t count() const { return used; }

private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Stream {
    uint32_t latest = none, former = none; ///< the last steps begun
    std::vector<uint32_t> known; ///< by stream: what it has waited for already
  };

  double endOf(uint32_t node) const {
    return schedule.starts[node] + problem.durations[node];
  }
  /// The last step on a stream that has ended by `time`.
  uint32_t endedOn(uint32_t stream, double time) const {
    const uint32_t latest = of[stream].latest;
    return latest != none && endOf(latest) > time ? of[stream].former : latest;
  }
  /// The first stream for kernels where nothing runs; of those where something
  /// does, for times are rounded, the one that is free first.
  uint32_t freeStream(uint32_t node) const {
    uint32_t first = 0;
    double soonest = 0;
    for (uint32_t k = 0; k < of.size(); ++k) {
      if (k == 1)
        continue;
      const double until = of[k].latest == none ? 0 : endOf(of[k].latest);
      if (until <= schedule.starts[node])
        return k;
      if (k == 0 || until < soonest) {
        soonest = until;
        first = k;
      }
    }
    return first;
  }

  const Problem &problem;
  const Schedule &schedule;
  std::vector<Stream> of;
  uint32_t used = 2;
};

} // namespace

/// Whether the buffers of the arena fit even if they share no bytes.
static bool fitsApart(const Dag &dag, uint64_t bytes) {
  for (const Buffer &buffer : dag.buffers) {
    if (!isInArena(buffer))
      continue;
    const uint64_t taken =
        (buffer.sizeBytes / arenaAlignment + 1) * arenaAlignment;
    if (taken > bytes)
      return false;
    bytes -= taken;
  }
  return true;
}

/// The schedule of a frozen problem as a plan of `dag`: collectives on stream
/// 1, kernels on stream 0 and, where they run side by side, on others. Each
/// step waits for what the other streams have ended by its start, so that what
/// the schedule orders in time is ordered for good: every dependence, and every
/// two buffers of which one ends before the other begins, which may then share
/// bytes of the arena. That is laid out for `enough` bytes (layoutArena), or
/// left out where its buffers fit into them side by side. The bound and model
/// line are the caller's.
static Plan asPlan(const Problem &problem, const Schedule &schedule,
                   const Dag &dag, uint64_t enough) {
  Plan plan;
  plan.scheduler = "overlap";
  plan.numDevices = dag.numDevices;
  plan.makespanUs = schedule.makespan;
  plan.steps.reserve(problem.size());
  OverlapStreams streams(problem, schedule);
  for (uint32_t node : startOrder(problem, schedule))
    plan.steps.push_back(streams.add(node, dag.nodes[node].devices));
  plan.streamsPerDevice = streams.count();
  if (fitsApart(dag, enough))
    return plan;
  ArenaLayout layout = layoutArena(plan, dag, enough);
  plan.placements = std::move(layout.placements);
  plan.arenaBytes = std::move(layout.arenaBytes);
  return plan;
}

/// A plan of a schedule that fits, proven unless it is a draft.
static Result<TargetPlan> keepOverlap(const Dag &dag, const Problem &problem,
                                      const Schedule &schedule, Plan plan,
                                      Proof proof) {
  const uint64_t limit = problem.devices[0].memoryBytes;
  TargetPlan made;
  made.plan = std::move(plan);
  made.overlap = OverlapOutcome();
  made.overlap->schedule = schedule;
  made.overlap->peakBytes = peakBytes(problem, schedule)[0];
  if (proof == Proof::Verified)
    MGPU_TRY(verify(made.plan, dag, {mostKernels + 1, limit}));
  MGPU_TRY(check(problem, schedule));
  if (made.overlap->peakBytes > limit)
    return fail(ErrorKind::Internal,
                fmt::format("the plan takes {} bytes of {}",
                            made.overlap->peakBytes, limit));
  return made;
}

/// The one schedule there is in the program's order.
static Result<TargetPlan> planInOrder(const Dag &dag, const Problem &problem,
                                      bool early, Proof proof,
                                      uint64_t enough) {
  const uint64_t limit = problem.devices[0].memoryBytes;
  Schedule schedule = inOrderSchedule(problem, early);
  if (uint64_t peak = peakBytes(problem, schedule)[0]; peak > limit)
    return fail(ErrorKind::Invalid,
                fmt::format("in the program's own order {:.3f} GB are live, "
                            "{:.3f} GB more than there are; let the order be "
                            "chosen (--transforms auto), or allow more memory",
                            double(peak) / 1e9, double(peak - limit) / 1e9));
  return keepOverlap(dag, problem, schedule,
                     asPlan(problem, schedule, dag, enough), proof);
}

/// The model and the times beside the makespan.
static void describeOverlap(TargetPlan &made, const Dag &dag,
                            const Machine &machine, const Problem &problem) {
  const bool isFrozen = std::ranges::all_of(dag.nodes, [](const DagNode &node) {
    return node.durationUs.has_value();
  });
  made.plan.model = isFrozen ? frozenModelName : machine.name();
  made.contendedUs =
      simulate(made.plan, dag, contentionOf(machine.topology())).makespanUs;
  for (double us : problem.durations)
    made.serialUs += us;
}

/// The plan of a DAG that is spmd, by search::OverlapSearch: until the budget
/// ends or the bound is met. Without SchedulePolicy::order there is one
/// schedule, inOrderSchedule(); `join` is nothing to the model, which has no
/// contention. The bound is of the problem without the places that collectives
/// keep where they may not be early.
static Result<TargetPlan> searchOverlap(const Dag &dag, const Machine &machine,
                                        const PlanRequest &request,
                                        exact::Budget &budget, Proof proof) {
  const SchedulePolicy &schedulePolicy = request.schedulePolicy;
  FrozenOptions options{request.scaleComm, &machine, request.memoryBytes};
  MGPU_TRY_ASSIGN(Problem problem, frozenProblem(dag, options));
  const uint64_t enough =
      proof == Proof::Draft && options.memoryBytes > dag.residentBytes
          ? options.memoryBytes - dag.residentBytes
          : 0;
  std::optional<TargetPlan> best;
  std::optional<Problem> placed;
  std::optional<Error> fault;
  std::optional<search::OverlapSearch> search;
  if (!schedulePolicy.order) {
    MGPU_TRY_ASSIGN(
        best, planInOrder(dag, problem, schedulePolicy.early, proof, enough));
  } else {
    options.keepsPlaces = true;
    if (!schedulePolicy.early) {
      MGPU_TRY_ASSIGN(placed, frozenProblem(dag, options));
    }
    const Problem &searched = placed ? *placed : problem;
    search.emplace(searched, request.seed, [&](const Schedule &schedule) {
      Plan plan = asPlan(problem, schedule, dag, enough);
      uint64_t bytes = peakBytes(problem, schedule)[0];
      for (uint64_t arena : plan.arenaBytes)
        bytes = std::max(bytes, arena + dag.residentBytes);
      if (bytes > options.memoryBytes)
        return double(bytes) / double(options.memoryBytes);
      auto made = keepOverlap(dag, problem, schedule, std::move(plan), proof);
      if (!made) {
        fault = std::move(made.error());
        return std::numeric_limits<double>::infinity();
      }
      best = std::move(*made);
      return 0.0;
    });
    const bool found = search->first(budget);
    if (fault)
      return fail(std::move(*fault));
    if (!found)
      return fail(
          search::frozenDoesNotFit(searched, dag, search->lowestSequence()));
  }
  const double firstSeconds = budget.elapsed();
  Certificate certificate = makespanBound(problem, hasOwnOutputs(dag));
  MGPU_TRY(check(certificate, problem));
  if (search)
    search->improve(certificate, budget);
  if (fault)
    return fail(std::move(*fault));
  // The problem that is searched may be kept to places, and then its optimum is
  // not a bound.
  const double provenUs =
      search && schedulePolicy.early ? search->provenUs() : 0;
  if (provenUs > certificate.boundUs * (1 + 1e-12))
    setBound(best->plan, provenUs, BoundArgument::Search);
  else
    setBound(best->plan, certificate.boundUs, argumentOf(certificate));
  describeOverlap(*best, dag, machine, problem);
  best->overlap->problem = std::move(problem);
  best->overlap->certificate = std::move(certificate);
  best->overlap->firstSeconds = firstSeconds;
  return std::move(*best);
}

Result<void> prove(TargetPlan &draft, const Dag &dag,
                   const PlanRequest &request) {
  Plan &plan = draft.plan;
  if (draft.quotient) {
    MGPU_TRY(lift(plan, *draft.quotient, dag));
    MGPU_TRY_ASSIGN(
        const std::vector<PhaseProblem> phases,
        phaseProblems(dag, durationsOf(plan, dag), request.memoryBytes));
    Result<PlanBound> bound = liftBound(*draft.quotient, dag, phases);
    if (!bound) // a reason may hold of classes alone
      bound = boundOf(phases);
    MGPU_TRY(bound);
    setBound(plan, bound->us, bound->by);
    draft.classes = draft.quotient->dag.numDevices;
    draft.quotient.reset();
  }
  if (auto verdict = verify(plan, dag, {.arenaBytes = request.memoryBytes});
      !verdict)
    return fail(ErrorKind::Internal,
                fmt::format("scheduler {} made an unsafe plan: {}",
                            plan.scheduler, verdict.error().message));
  return {};
}

Result<double> firstUs(const Dag &dag, const Machine &machine,
                       const PlanRequest &request) {
  MGPU_TRY_ASSIGN(std::vector<double> durations, nodeDurations(dag, machine));
  const auto quotient =
      request.byClass ? quotientOf(dag, durations) : std::nullopt;
  const Dag &planned = quotient ? quotient->dag : dag;
  const PlanDurations times(
      quotient ? quotient->durations() : std::move(durations), machine.name());
  MGPU_TRY_ASSIGN(const Plan plan, schedule(planned, times, request));
  return simulate(plan, planned, contentionOf(machine.topology())).makespanUs;
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
  /// `isQuotient`: of a DAG with one device for several.
  Search(const Dag &dag, const LatencyEstimator &machine,
         const Contention &contention, const PlanRequest &request,
         bool isQuotient)
      : dag(dag), machine(machine), options(request), contention(contention),
        isQuotient(isQuotient) {
    if (!contends())
      schedulePolicy.join = false; // there is nothing to gain
  }

  Result<TargetPlan> run(exact::Budget &budget, Proof proof) {
    MGPU_TRY_ASSIGN(model, modelOf(dag, machine, options.memoryBytes));
    const PlanBound bound = model.bound;
    MGPU_TRY(options.isFixed() ? planFixed() : improve(budget));
    if (!hasPlan())
      return fail(
          search::doesNotFit(model.phases, smallest, dag, options.memoryBytes));
    // A search of a quotient knows no schedules but those by class.
    const PlanBound &proven = isQuotient ? bound : model.bound;
    setBound(best.plan, proven.us, proven.by);
    if (proof == Proof::Verified)
      MGPU_TRY(prove(best, dag, options));
    return std::move(best);
  }

private:
  /// Whether work slows down what runs beside it.
  bool contends() const { return contention != Contention(); }

  /// The scheduler's own plan.
  Result<void> planFixed() {
    if (options.drawn == 0) {
      MGPU_TRY_ASSIGN(Plan plan, schedule(dag, machine, options));
      return consider(std::move(plan));
    }
    MGPU_TRY_ASSIGN(Plan plan,
                    schedule(dag, Perturbed(machine, options.drawn), options));
    // The draw chose the order. The prediction is what was estimated.
    retime(plan, dag, machine);
    return consider(std::move(plan));
  }

  Result<void> improve(exact::Budget &budget) {
    std::optional<Plan> serial;
    if (contends() && !isQuotient) {
      MGPU_TRY_ASSIGN(serial, schedule(dag, machine, {"serial"}));
      best.serialUs = simulate(*serial, dag, contention).makespanUs;
    }
    tails = longestPaths(dag, model.durations).tail;
    for (size_t i = 0; i < tails.size(); ++i)
      tails[i] += model.durations[i];
    // Fewer streams fork less, and need less memory.
    ScheduleOptions narrow = options;
    for (; narrow.streamsPerDevice > 0; narrow.streamsPerDevice /= 2) {
      MGPU_TRY_ASSIGN(Plan plan, schedule(dag, machine, narrow));
      MGPU_TRY(consider(std::move(plan)));
      if (!schedulePolicy.join && hasPlan())
        break;
    }
    if (!serial && !isQuotient && !hasPlan()) {
      MGPU_TRY_ASSIGN(serial, schedule(dag, machine, {"serial"}));
    }
    if (serial && (schedulePolicy.join || !hasPlan()))
      MGPU_TRY(consider(std::move(*serial)));
    if (schedulePolicy.order && schedulePolicy.early &&
        options.streamsPerDevice >= 3)
      MGPU_TRY(search(budget));
    if (schedulePolicy.order && (contends() || !hasPlan()))
      MGPU_TRY(disturb(budget));
    if (schedulePolicy.join && hasPlan())
      join();
    return {};
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
    best.plan = std::move(plan);
    best.contendedUs = contended;
    return {};
  }
  void join() {
    if (joinForks(best.plan, dag, contention) > 0)
      best.contendedUs = simulate(best.plan, dag, contention).makespanUs;
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
      MGPU_TRY_ASSIGN(Plan plan,
                      schedule(dag, machine,
                               {"list search", 0, streams, schedulePolicy},
                               listOrder(dag, model.durations, priorities,
                                         streams, schedulePolicy.early)));
      double before = best.contendedUs;
      MGPU_TRY(consider(std::move(plan)));
      fruitless = best.contendedUs < before ? 0 : fruitless + 1;
    }
    return {};
  }

  /// A search that has found nothing better so often ends.
  static constexpr uint32_t patience = 2000;

  const Dag &dag;
  const LatencyEstimator &machine;
  PlanRequest options;
  SchedulePolicy &schedulePolicy = options.schedulePolicy;
  Contention contention;
  bool isQuotient;
  std::vector<double> tails; ///< longest path from each node's start
  TargetPlan best;
  Plan shortest; ///< shortest that fits, without contention
  Plan smallest; ///< smallest, where none fits
  ProgramModel model;
};

} // namespace

/// All nodes one after the other, as the scheduler "serial" has them.
static double serialUs(const Dag &dag, const Quotient &quotient) {
  PhaseTimes times{};
  for (uint32_t node : quotient.nodeOf)
    times[size_t(quotient.dag.nodes[node].phase)] +=
        *quotient.dag.nodes[node].durationUs;
  return partUs(times, dag, PlanPart::Replay);
}

/// A draft of a quotient; none where its plans do not fit, of which the whole
/// tells more.
static std::optional<TargetPlan>
searchQuotient(std::shared_ptr<const Quotient> quotient, const Dag &dag,
               const Machine &machine, const PlanRequest &request,
               exact::Budget &budget) {
  const Contention contention = contentionOf(machine.topology());
  const PlanDurations times(quotient->durations(), machine.name());
  Result<TargetPlan> made =
      Search(quotient->dag, times, contention, request, true)
          .run(budget, Proof::Draft);
  if (!made)
    return std::nullopt;
  if (contention != Contention())
    made->serialUs = serialUs(dag, *quotient);
  made->quotient = std::move(quotient);
  return std::move(*made);
}

Result<TargetPlan> searchPlan(const Dag &dag, const Machine &machine,
                              const PlanRequest &request, exact::Budget &budget,
                              Proof proof,
                              std::shared_ptr<const Quotient> known) {
  if (dag.spmd && !request.isFixed())
    return searchOverlap(dag, machine, request, budget, proof);
  if (request.byClass && !request.isFixed() && !known) {
    MGPU_TRY_ASSIGN(const std::vector<double> durations,
                    nodeDurations(dag, machine));
    if (auto quotient = quotientOf(dag, durations))
      known = std::make_shared<const Quotient>(std::move(*quotient));
  }
  if (known)
    if (auto made = searchQuotient(known, dag, machine, request, budget);
        made && (proof == Proof::Draft || prove(*made, dag, request)))
      return std::move(*made);
  return Search(dag, machine, contentionOf(machine.topology()), request, false)
      .run(budget, proof);
}

} // namespace mgpu::planner
