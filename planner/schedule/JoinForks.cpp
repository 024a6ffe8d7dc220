// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Simulate.h"
#include "planner/schedule/TargetSearch.h"
#include "planner/schedule/alike/Quotient.h"
#include "planner/schedule/list/Schedulers.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <tuple>

namespace mgpu::planner {

namespace {

constexpr double nothing = 1e-9; // microseconds
constexpr WorkClass allClasses[] = {WorkClass::Kernel, WorkClass::Copy,
                                    WorkClass::Collective};

/// Two steps of one device that run at the same time; `first` stands earlier in
/// the plan.
struct Fork {
  uint32_t first, second;
  double us = 0;   ///< how long they do
  double lost = 0; ///< work that the two do less meanwhile, microseconds
};

/// The forks of a replay. A class of a device runs one step at a time, so each
/// step meets no more than one of each other class at its start.
std::vector<Fork> forksOf(const Plan &plan, const Dag &dag,
                          const Contention &contention) {
  Simulation played = simulate(plan, dag, contention);
  std::vector<uint32_t> byStart;
  for (uint32_t s = 0; s < plan.steps.size(); ++s)
    if (timesInReplay(dag, dag.node(plan.steps[s].node).phase) > 0)
      byStart.push_back(s);
  std::sort(byStart.begin(), byStart.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(played.startUs[a], a) < std::pair(played.startUs[b], b);
  });
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> running(numResources(dag), none);
  std::vector<Fork> forks;
  for (uint32_t s : byStart) {
    const DagNode &node = dag.node(plan.steps[s].node);
    WorkClass mine = workClass(node);
    for (DeviceId device : streamDevices(node)) {
      for (WorkClass other : allClasses) {
        uint32_t t = running[resourceIndex(device, other)];
        if (other == mine || t == none)
          continue;
        double us = std::min(played.endUs[s], played.endUs[t]) -
                    played.startUs[s],
               lost = 2 - 1 / contention.of(mine, other) -
                      1 / contention.of(other, mine);
        if (us > nothing)
          forks.push_back({std::min(s, t), std::max(s, t), us, us * lost});
      }
      running[resourceIndex(device, mine)] = s;
    }
  }
  return forks;
}

/// `fork.second` waits for `fork.first`; 0 where it does already.
uint32_t order(Plan &plan, const Fork &fork) {
  std::vector<NodeId> &waits = plan.steps[fork.second].waits;
  NodeId first = plan.steps[fork.first].node;
  auto at = std::lower_bound(waits.begin(), waits.end(), first);
  if (at != waits.end() && *at == first)
    return 0;
  waits.insert(at, first);
  return 1;
}

class Joining {
public:
  Joining(Plan &plan, const Dag &dag, const Contention &contention)
      : plan(plan), dag(dag), contention(contention),
        makespan(simulate(plan, dag, contention).makespanUs),
        trialsLeft(std::clamp(mostNodes / (plan.steps.size() + 1), 8ul, 96ul)) {
  }

  uint32_t run() {
    for (size_t a = 0; a < std::size(allClasses); ++a)
      for (size_t b = 0; b < a; ++b)
        joinClasses(allClasses[a], allClasses[b]);
    while (joinOne()) {
    }
    if (added > 0)
      predictTimes(plan, dag);
    return added;
  }

private:
  // The most steps that all trials together may have.
  static constexpr size_t mostNodes = 400000;
  static constexpr int maxRounds = 8;

  /// Whether `trial`, with `waits` more, is shorter than the plan was.
  bool isShorter(const Plan &trial, uint32_t waits) {
    double us = simulate(trial, dag, contention).makespanUs;
    --trialsLeft;
    if (us >= makespan * (1 - 1e-9))
      return false;
    makespan = us;
    added += waits;
    return true;
  }

  /// No step of the one class beside one of the other. A step that is moved
  /// meets others, so it takes several rounds.
  void joinClasses(WorkClass a, WorkClass b) {
    if (trialsLeft == 0 ||
        (contention.of(a, b) == 1 && contention.of(b, a) == 1))
      return;
    Plan trial = plan;
    uint32_t waits = 0;
    for (int round = 0; round < maxRounds; ++round) {
      uint32_t more = 0;
      for (const Fork &fork : forksOf(trial, dag, contention)) {
        WorkClass first = workClass(dag.node(plan.steps[fork.first].node)),
                  second = workClass(dag.node(plan.steps[fork.second].node));
        if ((first == a && second == b) || (first == b && second == a))
          more += order(trial, fork);
      }
      waits += more;
      if (more == 0)
        break;
    }
    if (waits > 0 && isShorter(trial, waits))
      plan = std::move(trial);
  }

  /// Takes out the fork that loses most among those whose end shortens the
  /// plan.
  bool joinOne() {
    std::vector<Fork> forks = forksOf(plan, dag, contention);
    std::erase_if(forks, [](const Fork &fork) { return fork.lost <= nothing; });
    std::sort(forks.begin(), forks.end(), [](const Fork &a, const Fork &b) {
      return std::tuple(b.lost, a.second, a.first) <
             std::tuple(a.lost, b.second, b.first);
    });
    for (const Fork &fork : forks) {
      if (trialsLeft == 0)
        return false;
      if (order(plan, fork) == 0)
        continue;
      if (isShorter(plan, 1))
        return true;
      std::erase(plan.steps[fork.second].waits, plan.steps[fork.first].node);
    }
    return false;
  }

  Plan &plan;
  const Dag &dag;
  const Contention &contention;
  double makespan;
  size_t trialsLeft;
  uint32_t added = 0;
};

} // namespace

uint32_t joinForks(Plan &plan, const Dag &dag, const Contention &contention) {
  return Joining(plan, dag, contention).run();
}

std::vector<bool> runsBeside(const Plan &plan, const Dag &dag,
                             const Contention &contention) {
  std::vector<bool> beside(dag.nodes.size(), false);
  for (const Fork &fork : forksOf(plan, dag, contention))
    for (uint32_t s : {fork.first, fork.second})
      beside[plan.steps[s].node.value] = true;
  return beside;
}

static PolicyChange comparePlaces(const Plan *without, const Plan &with,
                                  const Dag &dag) {
  std::vector<size_t> place(dag.nodes.size());
  std::iota(place.begin(), place.end(), size_t(0));
  for (size_t s = 0; without && s < without->steps.size(); ++s)
    place[without->steps[s].node.value] = s;
  PolicyChange change;
  for (size_t s = 0; s < with.steps.size(); ++s)
    change.nodes += place[with.steps[s].node.value] != s;
  change.lines.push_back(fmt::format("{} of {} nodes are created at another "
                                     "place than in the program",
                                     change.nodes, dag.nodes.size()));
  return change;
}

static PolicyChange compareStarts(const Plan &with, const Dag &dag) {
  std::vector<double> starts(dag.nodes.size()), ends(dag.nodes.size());
  for (const PlanStep &step : with.steps) {
    starts[step.node.value] = step.startUs;
    ends[step.node.value] = step.startUs + step.durationUs;
  }
  PolicyChange change;
  uint32_t collectives = 0;
  double most = 0;
  std::vector<std::vector<uint32_t>> places = placesOfCollectives(dag);
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    if (workClass(dag.nodes[i]) != WorkClass::Collective)
      continue;
    ++collectives;
    double end = 0;
    for (uint32_t before : places[i])
      end = std::max(end, ends[before]);
    change.nodes += end > starts[i] + nothing;
    most = std::max(most, end - starts[i]);
  }
  change.lines.push_back(
      fmt::format("{} of {} collectives start before what stands before them "
                  "in the program has ended, by at most {:.3f} us",
                  change.nodes, collectives, most));
  return change;
}

/// runsBeside() of a draft, by node of `dag`.
static std::vector<bool> besideIn(const TargetPlan &draft, const Dag &dag,
                                  const Contention &contention) {
  if (!draft.quotient)
    return runsBeside(draft.plan, dag, contention);
  const std::vector<bool> ofClasses =
      runsBeside(draft.plan, draft.quotient->dag, contention);
  std::vector<bool> beside;
  for (uint32_t node : draft.quotient->nodeOf)
    beside.push_back(ofClasses[node]);
  return beside;
}

/// The nodes of `dag` and their times, in the order of a draft.
static Plan stepsOf(const TargetPlan &draft) {
  Plan plan;
  for (const PlanStep &step : draft.plan.steps)
    for (uint32_t node : draft.quotient->nodes[step.node.value])
      plan.steps.push_back(
          {NodeId{node}, {}, {}, step.startUs, step.durationUs});
  return plan;
}

static PolicyChange compareForks(const TargetPlan &without,
                                 const TargetPlan &with, const Dag &dag,
                                 const Contention &contention) {
  std::vector<bool> before = besideIn(without, dag, contention),
                    after = besideIn(with, dag, contention);
  PolicyChange change;
  for (size_t i = 0; i < before.size(); ++i)
    change.nodes += before[i] && !after[i];
  for (size_t a = 0; a < std::size(allClasses); ++a)
    for (size_t b = 0; b < a; ++b)
      change.lines.push_back(fmt::format(
          "{} and {} side by side do {:.2f} times the work of one alone",
          toString(allClasses[b]), toString(allClasses[a]),
          1 / contention.of(allClasses[a], allClasses[b]) +
              1 / contention.of(allClasses[b], allClasses[a])));
  return change;
}

PolicyChange comparePolicy(TransformKind policyFlag, const TargetPlan *without,
                           const TargetPlan &with, const Dag &dag,
                           const Contention &contention) {
  if (policyFlag == TransformKind::NoFork)
    return compareForks(without ? *without : with, with, dag, contention);
  auto whole = [](const TargetPlan &draft) {
    return draft.quotient ? stepsOf(draft) : draft.plan;
  };
  if (policyFlag == TransformKind::Early)
    return compareStarts(whole(with), dag);
  const Plan before = without ? whole(*without) : Plan();
  return comparePlaces(without ? &before : nullptr, whole(with), dag);
}

} // namespace mgpu::planner
