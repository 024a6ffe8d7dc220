// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/TargetPlan.h"

#include "planner/schedule/Paths.h"
#include "planner/schedule/PlanBuilder.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/transform/ChunkCounts.h"
#include "support/Random.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace mgpu::planner {

Result<uint64_t> memoryLimit(const device::Topology &topology,
                             const std::string &memory) {
  if (memory.empty())
    return topology.device.memoryBytes;
  if (memory == "none")
    return uint64_t(INT64_MAX);
  return parseByteSize(memory, "--memory");
}

/// What is live where the plan's arena is fullest, on the device that exceeds
/// the limit most.
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
    if (size_t(buffer.device.value) != worst || buffer.device.isHost())
      return false;
    return buffer.role == BufferRole::Resident || first[b] == never ||
           (first[b] <= s && s <= last[b]);
  };
  std::vector<int64_t> change(plan.steps.size() + 2, 0);
  for (size_t b = 0; b < dag.buffers.size(); ++b) {
    const Buffer &buffer = dag.buffers[b];
    if (buffer.device.isHost() || size_t(buffer.device.value) != worst)
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

class Search {
public:
  Search(const Dag &dag, const TopologyEstimator &machine,
         const TargetOptions &options)
      : dag(dag), machine(machine), options(options),
        contention(contentionOf(machine.machine())) {}

  Result<TargetPlan> run(rcpsp::Budget &budget) {
    ScheduleOptions unlimited;
    MGPU_TRY_ASSIGN(Plan serial, scheduleSerial(dag, machine, unlimited));
    best.serialUs = simulate(serial, dag, contention).makespanUs;
    MGPU_TRY_ASSIGN(std::vector<double> durations, nodeDurations(dag, machine));
    tails = longestPaths(dag, durations).tail;
    for (size_t i = 0; i < tails.size(); ++i)
      tails[i] += durations[i];
    for (uint32_t streams = options.streamsPerDevice; streams > 0;
         streams /= 2) {
      ScheduleOptions schedule;
      schedule.streamsPerDevice = streams;
      MGPU_TRY_ASSIGN(Plan plan, scheduleList(dag, machine, schedule));
      MGPU_TRY(consider(std::move(plan)));
    }
    MGPU_TRY(consider(std::move(serial)));
    MGPU_TRY(disturb(durations, budget));
    if (best.plan.steps.empty() && !dag.nodes.empty())
      return fail(doesNotFit(smallest, dag, options.memoryBytes));
    return std::move(best);
  }

private:
  static uint64_t largestArena(const Plan &plan) {
    return plan.arenaBytes.empty() ? 0
                                   : *std::max_element(plan.arenaBytes.begin(),
                                                       plan.arenaBytes.end());
  }

  Result<void> consider(Plan plan) {
    uint64_t needed = largestArena(plan) + dag.residentBytes;
    if (needed > options.memoryBytes) {
      if (smallest.steps.empty() || largestArena(plan) < largestArena(smallest))
        smallest = std::move(plan);
      return {};
    }
    double contended = simulate(plan, dag, contention).makespanUs;
    if (!best.plan.steps.empty() &&
        std::pair(contended, plan.makespanUs) >=
            std::pair(best.contendedUs, best.plan.makespanUs))
      return {};
    PlanLimits limits;
    limits.arenaBytes = options.memoryBytes;
    if (auto verdict = verify(plan, dag, limits); !verdict)
      return fail(ErrorKind::Internal,
                  fmt::format("scheduler {} made an unsafe plan: {}",
                              plan.scheduler, verdict.error().message));
    best.plan = std::move(plan);
    best.contendedUs = contended;
    return {};
  }

  /// The priorities of list scheduling, with noise of a share of each.
  Result<void> disturb(const std::vector<double> &durations,
                       rcpsp::Budget &budget) {
    Random random(options.seed);
    std::vector<double> priorities(tails.size());
    uint32_t fruitless = 0;
    while (!budget.exhausted() && fruitless < patience) {
      if (!best.plan.steps.empty() &&
          best.contendedUs <= best.plan.lowerBoundUs)
        break;
      budget.spend();
      double share = 0.02 + 0.5 * random.uniform() * random.uniform();
      for (size_t i = 0; i < tails.size(); ++i)
        priorities[i] = tails[i] * (1 + share * (random.uniform() - 0.5));
      uint32_t streams =
          1 + uint32_t(random.below(std::max(options.streamsPerDevice, 1u)));
      MGPU_TRY_ASSIGN(Plan plan,
                      finishPlan("list search",
                                 listOrder(dag, durations, priorities, streams),
                                 streams, WaitPolicy::Dependences, dag, machine,
                                 {}));
      double before = best.contendedUs;
      MGPU_TRY(consider(std::move(plan)));
      fruitless = best.contendedUs < before ? 0 : fruitless + 1;
    }
    return {};
  }

  /// A search that has found nothing better so often ends.
  static constexpr uint32_t patience = 2000;

  const Dag &dag;
  const TopologyEstimator &machine;
  const TargetOptions &options;
  Contention contention;
  std::vector<double> tails; ///< longest path from each node's start
  TargetPlan best;
  Plan smallest; ///< of those that do not fit
};

} // namespace

static constexpr const char *scaledWords =
    "the file's duration, scaled by the estimates of what it was and is "
    "(assumed)";

/// A DAG that is spmd: by the overlap search.
static Result<TargetPlan> planOverlapped(const Dag &dag,
                                         const TopologyEstimator &machine,
                                         const TargetOptions &options,
                                         rcpsp::Budget &budget) {
  TargetPlan result;
  MGPU_TRY_ASSIGN(result.model, overlap::OverlapModel::create(
                                    dag, options.scaleComm, &machine));
  MGPU_TRY_ASSIGN(result.overlap,
                  overlap::planOverlap(dag, *result.model, options.memoryBytes,
                                       options.seed, budget));
  result.plan = result.overlap->plan;
  bool frozen =
      std::all_of(dag.nodes.begin(), dag.nodes.end(), [](const DagNode &node) {
        return node.durationUs.has_value();
      });
  if (!frozen)
    result.plan.model = machine.name();
  result.contendedUs =
      simulate(result.plan, dag, contentionOf(machine.machine())).makespanUs;
  result.serialUs =
      result.overlap->bounds.kernels + result.overlap->bounds.collectives;
  return result;
}

namespace {

/// Plans a DAG as it is, then after one transform more at a time.
class Transforming {
public:
  Transforming(const Dag &dag, const TopologyEstimator &machine,
               const TargetOptions &options, rcpsp::Budget &budget)
      : source(dag), chosen(machine), plain(machine.withoutAlgorithms()),
        options(options), budget(budget), current(dag) {}

  Result<TargetPlan> run() {
    for (const Transform &transform : options.transforms) {
      if (isFree(transform)) {
        parts += !chunkGroups(source).empty();
        continue;
      }
      Dag trial = source;
      Result<uint32_t> changes = apply(trial, transform, nullptr);
      parts += changes.value_or(0) > 0;
    }
    Result<TargetPlan> first = plan(current, plain);
    if (!first && first.error().kind != ErrorKind::Invalid)
      return first;
    if (first)
      best = std::move(*first);
    for (size_t k = 0; k < options.transforms.size();)
      MGPU_TRY(tryNext(k));
    if (!best)
      return first;
    return finish();
  }

private:
  const TopologyEstimator &machine() const { return chooses ? chosen : plain; }

  Result<TargetPlan> plan(const Dag &of, const TopologyEstimator &on) {
    rcpsp::Budget part = budget.part(parts);
    Result<TargetPlan> result = of.spmd ? planOverlapped(of, on, options, part)
                                        : Search(of, on, options).run(part);
    budget.spend(part.spentNodes());
    return result;
  }

  /// Chunks of numbers that are to be found.
  static bool isFree(const Transform &transform) {
    return transform.kind == TransformKind::Chunk && transform.counts.empty();
  }
  /// Finds them by first schedules.
  Result<void> chooseChunks(TransformGain &gain) const {
    MGPU_TRY_ASSIGN(
        ChunkCounts counts,
        findChunkCounts(
            current, {&machine(), nullptr},
            [&](const Dag &of) -> Result<double> {
              if (of.spmd) {
                rcpsp::Budget first(1e9, 0);
                MGPU_TRY_ASSIGN(TargetPlan plan,
                                planOverlapped(of, machine(), options, first));
                return plan.plan.makespanUs;
              }
              ScheduleOptions schedule;
              schedule.streamsPerDevice = options.streamsPerDevice;
              MGPU_TRY_ASSIGN(Plan plan, scheduleList(of, machine(), schedule));
              return simulate(plan, of, contentionOf(machine().machine()))
                  .makespanUs;
            }));
    gain.left = explainChunks(counts, current);
    if (counts.counts != std::vector<uint32_t>(counts.counts.size(), 1))
      gain.transform.counts = std::move(counts.counts);
    return {};
  }

  /// How many nodes it changes; of algorithms, whose durations.
  Result<uint32_t> apply(Dag &dag, const Transform &transform,
                         std::vector<std::string> *left) const {
    if (transform.kind != TransformKind::Algorithm)
      return applyTransform(dag, transform, {&machine(), left});
    uint32_t changes = 0;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      changes +=
          workClass(dag.nodes[i]) == WorkClass::Collective &&
          plain.durationUs(dag, NodeId{i}) != chosen.durationUs(dag, NodeId{i});
    return changes;
  }

  bool isBetter(const TargetPlan &a) const {
    if (!best)
      return true;
    std::pair mine(a.contendedUs, a.plan.makespanUs),
        theirs(best->contendedUs, best->plan.makespanUs);
    if (source.spmd) {
      std::swap(mine.first, mine.second);
      std::swap(theirs.first, theirs.second);
    }
    return mine < theirs;
  }

  /// The transform at `k`, or several that are alternatives: those start from
  /// the same DAG, and the best of them stays.
  Result<void> tryNext(size_t &k) {
    Dag base = current;
    TransformGain before;
    if (best) {
      before.beforeUs = best->plan.makespanUs;
      before.contendedBeforeUs = best->contendedUs;
    }
    std::optional<size_t> winner;
    bool isAlternative = isChunk(options.transforms[k].kind);
    do {
      TransformGain gain = before;
      gain.transform = options.transforms[k++];
      Dag trial = base;
      std::vector<std::string> left;
      if (isFree(gain.transform))
        MGPU_TRY(chooseChunks(gain));
      MGPU_TRY_ASSIGN(gain.changes, apply(trial, gain.transform, &left));
      gain.left.insert(gain.left.end(), left.begin(), left.end());
      bool ofAlgorithms = gain.transform.kind == TransformKind::Algorithm;
      if (gain.changes > 0)
        if (Result<TargetPlan> after =
                plan(trial, ofAlgorithms ? chosen : machine())) {
          gain.afterUs = after->plan.makespanUs;
          gain.contendedAfterUs = after->contendedUs;
          if (isBetter(*after)) {
            winner = gains.size();
            best = std::move(*after);
            current = std::move(trial);
          }
        }
      if (ofAlgorithms)
        chooses = gain.changes == 0 || winner == gains.size();
      gains.push_back(std::move(gain));
    } while (isAlternative && k < options.transforms.size() &&
             isChunk(options.transforms[k].kind));
    if (winner) {
      gains[*winner].isKept = true;
      kept.emplace_back(toString(gains[*winner].transform));
      isChanged |= gains[*winner].transform.kind != TransformKind::Algorithm;
    }
    return {};
  }

  /// Those with a frozen duration that the source does not have by that name.
  std::vector<bool> scaledNodes() const {
    std::set<std::string_view> names;
    for (const DagNode &node : source.nodes)
      names.insert(node.name);
    std::vector<bool> scaled;
    for (const DagNode &node : current.nodes)
      scaled.push_back(node.durationUs && !names.count(node.name));
    return scaled;
  }

  Result<TargetPlan> finish() {
    best->plan.transforms = std::move(kept);
    best->gains = std::move(gains);
    if (isChanged)
      best->isScaled = scaledNodes();
    if (chooses) {
      best->algorithms = chooseAlgorithms(current, chosen);
      for (AlgorithmChoice &choice : best->algorithms)
        if (isChanged && best->isScaled[choice.node.value])
          choice.durationFrom = scaledWords;
      recordAlgorithms(best->plan, best->algorithms);
      if (best->overlap)
        recordAlgorithms(best->overlap->plan, best->algorithms);
    }
    if (isChanged) {
      if (best->overlap && best->plan.model == overlap::frozenModelName)
        best->plan.model +=
            ", what transforms changed scaled as estimated on " + chosen.name();
      best->dag = std::move(current);
    }
    return std::move(*best);
  }

  const Dag &source;
  /// With the best algorithm for each collective, and with ring Simple for all.
  const TopologyEstimator &chosen;
  TopologyEstimator plain;
  const TargetOptions &options;
  rcpsp::Budget &budget;
  uint64_t parts = 1; ///< of the budget
  Dag current;
  bool chooses = false, isChanged = false;
  std::optional<TargetPlan> best;
  std::vector<TransformGain> gains;
  std::vector<std::string> kept;
};

} // namespace

Result<TargetPlan> planForTarget(const Dag &dag,
                                 const TopologyEstimator &machine,
                                 const TargetOptions &options,
                                 rcpsp::Budget &budget) {
  const device::Topology &topology = machine.machine();
  if (dag.numDevices > topology.devices)
    return fail(ErrorKind::Absent,
                fmt::format("the program uses {} devices, {} has {}",
                            dag.numDevices, topology.name, topology.devices));
  return Transforming(dag, machine, options, budget).run();
}

std::string explainModel(const TargetPlan &plan, const Dag &dag,
                         const TopologyEstimator &given) {
  std::string out = fmt::format(
      "with contention: makespan {:.3f} us, one node after the other {:.3f} "
      "us\n",
      plan.contendedUs, plan.serialUs);
  for (const TransformGain &gain : plan.gains) {
    out += fmt::format("transform {}: ", toString(gain.transform));
    if (gain.changes == 0)
      out += "nothing to change\n";
    else if (gain.afterUs == 0)
      out += fmt::format("{} changes, does not fit the memory\n", gain.changes);
    else
      out += fmt::format("{} changes, makespan {:.3f} -> {:.3f} us, with "
                         "contention {:.3f} -> {:.3f} us, {}\n",
                         gain.changes, gain.beforeUs, gain.afterUs,
                         gain.contendedBeforeUs, gain.contendedAfterUs,
                         gain.isKept ? "kept" : "not kept");
    for (const std::string &line : gain.left)
      out += "  " + line + "\n";
  }
  TopologyEstimator machine = plan.algorithms.empty()
                                  ? given.withoutAlgorithms()
                                  : given.on(given.machine());
  out += explainAlgorithms(plan.algorithms, dag, machine);
  double sums[3] = {0, 0, 0}, total = 0;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    Estimate estimate = machine.estimate(dag, NodeId{i});
    if (i < plan.isScaled.size() && plan.isScaled[i])
      estimate.origin = Origin::Assumed;
    sums[size_t(estimate.origin)] += estimate.us;
    total += estimate.us;
  }
  auto share = [&](Origin origin) {
    return total > 0 ? 100 * sums[size_t(origin)] / total : 0;
  };
  if (std::count(plan.isScaled.begin(), plan.isScaled.end(), true) > 0)
    out += fmt::format(
        "{} nodes that transforms made: {}\n",
        std::count(plan.isScaled.begin(), plan.isScaled.end(), true),
        scaledWords);
  out += fmt::format("durations of {}: {:.0f} % measured or frozen, {:.0f} % "
                     "published, {:.0f} % assumed\n",
                     machine.name(), share(Origin::Measured),
                     share(Origin::Published), share(Origin::Assumed));
  std::vector<Coefficient> list = machine.coefficients();
  contentionOf(machine.machine(), &list);
  for (const Coefficient &c : list)
    out += fmt::format("  {} = {:.6g} {}({}: {})\n", c.name, c.value,
                       c.unit.empty() ? "" : c.unit + " ", toString(c.origin),
                       c.source);
  return out;
}

} // namespace mgpu::planner
