// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapPlanner.h"

#include "planner/plan/ArenaLayout.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "planner/schedule/search/MemoryBound.h"
#include "planner/schedule/search/OverlapSearch.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace mgpu::planner::search {

namespace {

/// The work on the streams of a device at the start of each step: collectives
/// on one, kernels on another, or on several where they run side by side.
class Streams {
public:
  Streams(const Problem &problem, const Schedule &schedule)
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
  plan.model = "frozen";
  plan.numDevices = dag.numDevices;
  plan.makespanUs = schedule.makespan;
  plan.steps.reserve(problem.size());
  Streams streams(problem, schedule);
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

Schedule inOrderSchedule(const Problem &problem, bool early) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const uint32_t n = problem.size();
  Schedule schedule;
  schedule.starts.assign(n, 0);
  std::vector<uint32_t> missing(n);
  std::set<uint32_t> ready; // collectives that wait for nothing any more
  for (uint32_t i = 0; i < n; ++i) {
    missing[i] = uint32_t(problem.before[i].size());
    if (missing[i] == 0 && isCollective(problem, i))
      ready.insert(i);
  }
  double now = 0, until[2] = {never, never};
  uint32_t running[2] = {0, 0}, kernel = 0, collective = 0, started = 0;
  auto skip = [&](uint32_t &next, uint8_t resource) {
    while (next < n && isCollective(problem, next) != bool(resource))
      ++next;
  };
  auto start = [&](uint32_t node, uint8_t resource) {
    schedule.starts[node] = now;
    ++started;
    running[resource] = node;
    until[resource] = now + problem.durations[node];
    schedule.makespan = std::max(schedule.makespan, until[resource]);
  };
  skip(kernel, 0);
  skip(collective, 1);
  while (started < n || until[0] != never || until[1] != never) {
    if (until[1] == never && !ready.empty()) {
      uint32_t next = *ready.begin();
      bool inPlace = next == collective && kernel > next &&
                     (until[0] == never || running[0] > next);
      if (early || inPlace) {
        ready.erase(ready.begin());
        start(next, 1);
        if (next == collective)
          skip(++collective, 1);
      }
    }
    if (until[0] == never && kernel < n && missing[kernel] == 0) {
      start(kernel, 0);
      skip(++kernel, 0);
    }
    now = std::min(until[0], until[1]);
    for (uint8_t resource : {1, 0})
      if (until[resource] <= now) {
        until[resource] = never;
        for (uint32_t next : problem.after[running[resource]])
          if (--missing[next] == 0 && isCollective(problem, next))
            ready.insert(next);
      }
  }
  return schedule;
}

} // namespace mgpu::planner::search
