// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/TargetSearch.h"

#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/ResidentPlan.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/Timeline.h"
#include "planner/schedule/transform/ChunkCounts.h"
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

namespace {

/// Plans a DAG as it is, then after one transform more at a time.
class Transforming {
public:
  Transforming(const Dag &dag, const Machine &machine,
               const PlanRequest &options, exact::Budget &budget)
      : source(dag), chosen(machine), plain(machine.withoutAlgorithms()),
        options(options), budget(budget),
        schedulePolicy(options.schedulePolicy) {}

  Result<TargetPlan> run() {
    if (options.makesAll)
      return makeAll();
    // Without time there is nothing to share out.
    if (!budget.exhausted())
      for (const Transform &transform : options.transforms)
        parts += takesPart(transform);
    const bool isDraft = !options.transforms.empty();
    Result<TargetPlan> first = plan(current(), plain, schedulePolicy,
                                    isDraft ? Proof::Draft : Proof::Verified);
    if (!first && first.error().kind != ErrorKind::Invalid)
      return first;
    if (first)
      best = std::move(*first);
    for (size_t k = 0; k < options.transforms.size();)
      if (policyFlagOf(options.transforms[k].kind))
        ++k;
      else
        MGPU_TRY(tryNext(k));
    if (!best)
      return first;
    for (const Transform &transform : options.transforms)
      if (auto policyFlag = policyFlagOf(transform.kind);
          policyFlag && schedulePolicy.*policyFlag)
        MGPU_TRY(weigh(transform.kind));
    if (isDraft)
      MGPU_TRY(complete(*best));
    return finish();
  }

private:
  const Dag &current() const { return changed ? *changed : source; }
  const Machine &machine() const { return chooses ? chosen : plain; }

  /// The plan after all transforms.
  Result<TargetPlan> makeAll() {
    for (const Transform &transform : options.transforms) {
      TransformGain gain;
      gain.transform = transform;
      if (isFree(transform))
        MGPU_TRY(chooseChunks(gain));
      const bool isPolicy = bool(policyFlagOf(transform.kind));
      if (!isPolicy) {
        MGPU_TRY_ASSIGN(Transformed made, tried(gain.transform, gain.left));
        gain.changes = made.changes;
        if (made.dag)
          changed = std::move(made.dag);
      }
      chooses |= transform.kind == TransformKind::Algorithm && gain.changes > 0;
      gain.isKept = gain.changes > 0 || isPolicy;
      if (gain.isKept)
        kept.emplace_back(toString(gain.transform));
      isChanged |= changed.has_value();
      gains.push_back(std::move(gain));
    }
    MGPU_TRY_ASSIGN(
        best, plan(current(), machine(), schedulePolicy, Proof::Verified));
    return finish();
  }

  /// Whether a transform leads to a search of its own.
  bool takesPart(const Transform &transform) const {
    if (!schedulePolicy.order)
      return false;
    if (transform.kind == TransformKind::Order)
      return false; // without it there is nothing to search
    if (transform.kind == TransformKind::NoFork)
      return !source.spmd;
    if (policyFlagOf(transform.kind))
      return true;
    if (isFree(transform))
      return !chunkGroups(source).empty();
    if (transform.kind == TransformKind::Algorithm)
      return changedAlgorithms() > 0;
    Result<Transformed> trial =
        transformed(source, transform, contextOf(nullptr));
    return trial && trial->changes > 0;
  }

  Result<TargetPlan> plan(const Dag &of, const Machine &on,
                          SchedulePolicy allowed, Proof proof = Proof::Draft,
                          std::shared_ptr<const Quotient> known = {}) {
    exact::Budget part = budget.part(parts);
    PlanRequest request = options;
    request.schedulePolicy = allowed;
    Result<TargetPlan> result =
        searchPlan(of, on, request, part, proof, std::move(known));
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
        findChunkCounts(current(), {&machine(), nullptr, options.ops},
                        [&](const Dag &of) -> Result<double> {
                          PlanRequest request = options;
                          request.schedulePolicy = schedulePolicy;
                          if (of.spmd) {
                            exact::Budget first(1e9, 0);
                            MGPU_TRY_ASSIGN(TargetPlan plan,
                                            searchPlan(of, machine(), request,
                                                       first, Proof::Draft));
                            return plan.plan.makespanUs;
                          }
                          request.scheduler = "list";
                          return firstUs(of, machine(), request);
                        }));
    gain.left = explainChunks(counts, current());
    if (std::any_of(counts.counts.begin(), counts.counts.end(),
                    [](uint32_t count) { return count > 1; }))
      gain.transform.counts = counts.counts;
    return {};
  }

  TransformContext contextOf(std::vector<std::string> *left) const {
    return {&machine(), left, options.ops};
  }
  /// How many durations other algorithms change.
  uint32_t changedAlgorithms() const {
    const Dag &dag = current();
    uint32_t changes = 0;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      changes +=
          workClass(dag.nodes[i]) == WorkClass::Collective &&
          plain.durationUs(dag, NodeId{i}) != chosen.durationUs(dag, NodeId{i});
    return changes;
  }

  /// The DAG after a transform; algorithms change none of its nodes.
  Result<Transformed> tried(const Transform &transform,
                            std::vector<std::string> &left) const {
    if (transform.kind != TransformKind::Algorithm)
      return transformed(current(), transform, contextOf(&left));
    Transformed trial;
    trial.changes = changedAlgorithms();
    return trial;
  }

  bool isBetter(const TargetPlan &a) const {
    return !best || isBetter(a, *best);
  }
  bool isBetter(const TargetPlan &a, const TargetPlan &b) const {
    std::pair mine(a.contendedUs, a.plan.makespanUs),
        theirs(b.contendedUs, b.plan.makespanUs);
    if (source.spmd) {
      std::swap(mine.first, mine.second);
      std::swap(theirs.first, theirs.second);
    }
    return mine < theirs;
  }

  /// The transform at `k`, or several that are alternatives: those start from
  /// the same DAG, and the best of them stays.
  Result<void> tryNext(size_t &k) {
    TransformGain before;
    if (best) {
      before.beforeUs = best->plan.makespanUs;
      before.contendedBeforeUs = best->contendedUs;
    }
    std::optional<size_t> winner;
    std::optional<Dag> winning;
    bool isAlternative = isChunk(options.transforms[k].kind);
    do {
      TransformGain gain = before;
      gain.transform = options.transforms[k++];
      std::vector<std::string> left;
      if (isFree(gain.transform))
        MGPU_TRY(chooseChunks(gain));
      const bool ofAlgorithms = gain.transform.kind == TransformKind::Algorithm;
      MGPU_TRY_ASSIGN(Transformed trial, tried(gain.transform, left));
      gain.changes = trial.changes;
      gain.left.insert(gain.left.end(), left.begin(), left.end());
      if (gain.changes > 0)
        if (Result<TargetPlan> after =
                plan(trial.dag ? *trial.dag : current(),
                     ofAlgorithms ? chosen : machine(), schedulePolicy)) {
          gain.afterUs = after->plan.makespanUs;
          gain.contendedAfterUs = after->contendedUs;
          if (isBetter(*after)) {
            winner = gains.size();
            best = std::move(*after);
            winning = std::move(trial.dag);
          }
        }
      if (ofAlgorithms)
        chooses = gain.changes == 0 || winner == gains.size();
      gains.push_back(std::move(gain));
    } while (isAlternative && k < options.transforms.size() &&
             isChunk(options.transforms[k].kind));
    if (winning)
      changed = std::move(winning);
    if (winner) {
      gains[*winner].isKept = true;
      kept.emplace_back(toString(gains[*winner].transform));
      isChanged |= gains[*winner].transform.kind != TransformKind::Algorithm;
    }
    return {};
  }

  static uint64_t memoryOf(const TargetPlan &plan) {
    if (plan.overlap)
      return plan.overlap->peakBytes;
    return largestArena(plan.plan);
  }

  /// Weighs a schedule policy against a plan without it; which stays where it
  /// is not longer, and at the same length needs no more memory.
  Result<void> weigh(TransformKind kind) {
    SchedulePolicy allowed = schedulePolicy;
    allowed.*policyFlagOf(kind) = false;
    // The overlap search is of a model without contention, and forks in any
    // case.
    bool isSame = kind == TransformKind::NoFork && source.spmd;
    Result<TargetPlan> without = isSame ? *best
                                        : plan(current(), machine(), allowed,
                                               Proof::Draft, best->quotient);
    if (!without && without.error().kind != ErrorKind::Invalid)
      return fail(without.error());
    PolicyChange change =
        comparePolicy(kind, without ? &*without : nullptr, *best, current(),
                      contentionOf(machine().topology()));
    TransformGain gain;
    gain.transform = kind;
    gain.changes = change.nodes;
    gain.left = std::move(change.lines);
    gain.afterUs = best->plan.makespanUs;
    gain.contendedAfterUs = best->contendedUs;
    if (without) {
      gain.beforeUs = without->plan.makespanUs;
      gain.contendedBeforeUs = without->contendedUs;
    }
    bool isTie =
        without && !isBetter(*best, *without) && !isBetter(*without, *best);
    gain.isKept = !without || isBetter(*best, *without) ||
                  (isTie && memoryOf(*best) < memoryOf(*without));
    if (gain.isKept && isTie)
      gain.left.push_back(
          fmt::format("kept for {} bytes of memory less on the fullest device",
                      memoryOf(*without) - memoryOf(*best)));
    if (gain.isKept) {
      kept.emplace_back(toString(kind));
    } else {
      best = std::move(*without);
      schedulePolicy = allowed;
    }
    gains.push_back(std::move(gain));
    return {};
  }

  /// A draft becomes a plan: with the smaller arena, and verified.
  Result<void> complete(TargetPlan &draft) const {
    Plan &plan = draft.plan;
    if (draft.quotient)
      return prove(draft, current(), options);
    if (draft.overlap) {
      ArenaLayout layout = layoutArena(plan, current());
      plan.placements = std::move(layout.placements);
      plan.arenaBytes = std::move(layout.arenaBytes);
    }
    return verify(plan, current(),
                  {plan.streamsPerDevice, options.memoryBytes});
  }

  /// Nodes with a frozen duration that the source does not have by that name.
  std::vector<bool> scaledNodes() const {
    std::set<std::string_view> names;
    for (const DagNode &node : source.nodes)
      names.insert(node.name);
    std::vector<bool> scaled;
    for (const DagNode &node : current().nodes)
      scaled.push_back(node.durationUs && !names.count(node.name));
    return scaled;
  }

  Result<TargetPlan> finish() {
    best->plan.transforms = std::move(kept);
    if (options.memoryBytes < uint64_t(INT64_MAX)) // else "none"
      best->plan.memoryBytes = options.memoryBytes;
    best->gains = std::move(gains);
    if (isChanged)
      best->isScaled = scaledNodes();
    recordOrigins(best->plan, current(), machine());
    for (PlanStep &step : best->plan.steps)
      if (isChanged && best->isScaled[step.node.value])
        step.origin = Origin::Assumed;
    if (chooses) {
      best->algorithms = chooseAlgorithms(current(), chosen);
      for (AlgorithmChoice &choice : best->algorithms)
        if (isChanged && best->isScaled[choice.node.value])
          choice.durationFrom = scaledWords;
      recordAlgorithms(best->plan, best->algorithms);
    }
    if (isChanged) {
      if (best->overlap && best->plan.model == frozenModelName)
        best->plan.model +=
            ", what transforms changed scaled as estimated on " + chosen.name();
      best->dag = std::move(*changed);
    }
    return std::move(*best);
  }

  const Dag &source;
  /// With the best algorithm for each collective, and with ring Simple for all.
  const Machine &chosen;
  Machine plain;
  const PlanRequest &options;
  exact::Budget &budget;
  uint64_t parts = 1;         ///< shares of the budget
  std::optional<Dag> changed; ///< the source after the transforms kept
  bool chooses = false, isChanged = false;
  SchedulePolicy schedulePolicy;
  std::optional<TargetPlan> best;
  std::vector<TransformGain> gains;
  std::vector<std::string> kept;
};

} // namespace

Result<TargetPlan> makePlan(const Dag &dag, const Machine &machine,
                            const PlanRequest &request, exact::Budget *budget) {
  const device::Topology &topology = machine.topology();
  if (dag.numDevices > topology.devices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, {} has {}",
                            dag.numDevices, topology.name, topology.devices));
  exact::Budget moves(
      1e9, std::clamp<uint64_t>(60'000 / (dag.nodes.size() + 1), 8, 2000));
  if (!budget)
    budget = &moves;
  if (!request.transforms.empty() && machine.numMeasured() > 0)
    return makePlan(dag, machine.withTimes({}), request, budget);
  // The budget by which the program without resident arguments is planned.
  exact::Budget again = budget->part(1);
  Result<TargetPlan> found = Transforming(dag, machine, request, *budget).run();
  if (!found && found.error().kind == ErrorKind::Internal && request.byClass) {
    PlanRequest whole = request; // a quotient's plan was none of the whole
    whole.byClass = false;
    return makePlan(dag, machine, whole, budget);
  }
  MGPU_TRY_ASSIGN(TargetPlan made, std::move(found));
  if (!request.isFixed())
    MGPU_TRY(takeApart(made, dag, machine, request, [&](const Dag &source) {
      return Transforming(source, machine, request, again).run();
    }));
  return made;
}

} // namespace mgpu::planner
