// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Timeline.h"
#include "planner/schedule/list/Schedulers.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::planner {

namespace {

class Explainer {
public:
  Explainer(const Plan &given, const Dag &dag)
      : plan(given), dag(dag), reasons(predictTimes(plan, dag)),
        stepOf(dag.nodes.size(), 0), predecessors(dag), successors(dag),
        kernels(dag.numDevices) {
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const PlanStep &step = plan.steps[s];
      stepOf[step.node.value] = s;
      const DagNode &node = dag.node(step.node);
      if (workClass(node) == WorkClass::Kernel &&
          timesInReplay(dag, node.phase) > 0)
        for (DeviceId device : node.devices)
          kernels[size_t(device.value)].push_back(s);
    }
    for (std::vector<uint32_t> &of : kernels)
      std::sort(of.begin(), of.end(), [&](uint32_t a, uint32_t b) {
        return plan.steps[a].startUs < plan.steps[b].startUs;
      });
  }

  std::vector<ExposedCollective> run(size_t most) {
    std::vector<ExposedCollective> all;
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const DagNode &node = dag.node(plan.steps[s].node);
      if (workClass(node) != WorkClass::Collective)
        continue;
      ExposedCollective worst;
      for (DeviceId device : node.devices) {
        double us = timesInReplay(dag, node.phase) * exposedOn(s, device);
        if (us > worst.exposedUs)
          worst = {plan.steps[s].node, device, us, {}, "", "", 0};
      }
      if (worst.exposedUs > 1e-9)
        all.push_back(worst);
    }
    std::sort(all.begin(), all.end(), [](auto &a, auto &b) {
      return std::pair(-a.exposedUs, a.node) < std::pair(-b.exposedUs, b.node);
    });
    if (all.size() > most)
      all.resize(most);
    for (ExposedCollective &one : all)
      explain(one);
    return all;
  }

private:
  double endOf(uint32_t s) const {
    return plan.steps[s].startUs + plan.steps[s].durationUs;
  }
  /// How long the step runs while no kernel runs on the device.
  double exposedOn(uint32_t s, DeviceId device) const {
    double begin = plan.steps[s].startUs, end = endOf(s);
    const std::vector<uint32_t> &of = kernels[size_t(device.value)];
    auto it = std::partition_point(
        of.begin(), of.end(), [&](uint32_t k) { return endOf(k) <= begin; });
    double hidden = 0;
    for (; it != of.end() && plan.steps[*it].startUs < end; ++it)
      hidden +=
          std::min(end, endOf(*it)) - std::max(begin, plan.steps[*it].startUs);
    return end - begin - hidden;
  }
  std::string nameOf(NodeId id) const {
    return fmt::format("{} \"{}\"", id.value, dag.node(id).name);
  }

  /// No byte, but the order of a communicator.
  bool isOrderAlone(NodeId from, NodeId to) const {
    for (const DepEdge &edge : predecessors.of(to))
      if (edge.from == from)
        return edge.kind == DepKind::Collective;
    return false;
  }
  /// The first kernel of the device that starts once the collective ended.
  std::optional<NodeId> nextKernel(uint32_t s, DeviceId device) const {
    for (uint32_t k : kernels[size_t(device.value)])
      if (plan.steps[k].startUs >= endOf(s) - 1e-9)
        return plan.steps[k].node;
    return std::nullopt;
  }

  /// Kernels of the device that neither lead to the node nor follow from it.
  double independentUs(NodeId id, DeviceId device) const {
    std::vector<bool> related(dag.nodes.size(), false);
    related[id.value] = true;
    for (uint32_t i = id.value; i < dag.nodes.size(); ++i)
      if (related[i])
        for (NodeId next : successors.of(NodeId{i}))
          related[next.value] = true;
    std::vector<bool> before(dag.nodes.size(), false);
    before[id.value] = true;
    for (uint32_t i = id.value + 1; i-- > 0;)
      if (before[i]) {
        related[i] = true;
        for (const DepEdge &edge : predecessors.of(NodeId{i}))
          before[edge.from.value] = true;
      }
    double sum = 0;
    for (uint32_t k : kernels[size_t(device.value)])
      if (!related[plan.steps[k].node.value] &&
          dag.node(plan.steps[k].node).phase == dag.node(id).phase)
        sum += plan.steps[k].durationUs;
    return timesInReplay(dag, dag.node(id).phase) * sum;
  }

  void explain(ExposedCollective &one) const {
    uint32_t s = stepOf[one.node.value];
    const StartReason &reason = reasons[s];
    one.independentUs = independentUs(one.node, one.device);
    std::optional<NodeId> next = nextKernel(s, one.device);
    std::string needs = next ? fmt::format("kernel {} runs next", nameOf(*next))
                             : "no kernel of the device is left";
    switch (reason.kind) {
    case StartReason::Immediately:
    case StartReason::Phase:
      one.reason = ExposedReason::Dependency;
      one.why = fmt::format("it starts with its phase; {}", needs);
      break;
    case StartReason::Dependence:
      if (isOrderAlone(reason.node, one.node)) {
        one.reason = ExposedReason::RankOverlap;
        one.why = fmt::format("its communicator keeps it behind {}; {}",
                              nameOf(reason.node), needs);
        break;
      }
      one.reason = ExposedReason::Dependency;
      one.why = fmt::format("it needs {}; {}", nameOf(reason.node), needs);
      break;
    case StartReason::Stream:
      if (workClass(dag.node(reason.node)) != WorkClass::Collective) {
        one.reason = ExposedReason::ChainLimit;
        one.why =
            fmt::format("its stream ran {}; {}", nameOf(reason.node), needs);
        break;
      }
      [[fallthrough]]; // on another stream it would have to wait as well
    case StartReason::Resource:
      one.reason = ExposedReason::Contention;
      one.why = fmt::format("the links were busy with {}; {}",
                            nameOf(reason.node), needs);
      break;
    case StartReason::Order: {
      bool both = workClass(dag.node(reason.node)) == WorkClass::Collective &&
                  plan.scheduler != "overlap";
      one.reason = both ? ExposedReason::RankOverlap : ExposedReason::Memory;
      one.why = both ? fmt::format("it shares ranks with {}, which goes first; "
                                   "{}",
                                   nameOf(reason.node), needs)
                     : fmt::format("the plan holds it back until {} has ended, "
                                   "to reuse memory; {}",
                                   nameOf(reason.node), needs);
      break;
    }
    }
    one.change = changeFor(one);
  }

  /// Only all_reduces are made into one by a transform.
  static bool isAllReduce(const DagNode &node) {
    if (auto *call = std::get_if<CollectiveCall>(&node.work))
      return call->kind == CollectiveKind::AllReduce;
    auto *call = std::get_if<OpaqueCall>(&node.work);
    return call && call->kind == CollectiveKind::AllReduce;
  }

  std::string changeFor(const ExposedCollective &one) const {
    switch (one.reason) {
    case ExposedReason::ChainLimit:
      return "more streams (--streams)";
    case ExposedReason::RankOverlap:
      return isAllReduce(dag.node(one.node))
                 ? "one collective of both (--transforms bucket), or less "
                   "before it"
                 : "less communication before it";
    case ExposedReason::Memory:
      return "more memory (--memory)";
    case ExposedReason::Contention:
      return "less traffic before it, or faster links (--what-if link=2x)";
    case ExposedReason::Dependency:
      break;
    }
    if (one.independentUs >= one.exposedUs)
      return fmt::format("{:.3f} us of kernels do not depend on it: a longer "
                         "search (--budget) may put them beside it",
                         one.independentUs);
    return fmt::format("only {:.3f} us of kernels do not depend on it: send it "
                       "in parts as its producer makes them, or make it faster "
                       "(--what-if link=2x)",
                       one.independentUs);
  }

  Plan plan;
  const Dag &dag;
  std::vector<StartReason> reasons;
  std::vector<uint32_t> stepOf;
  Predecessors predecessors;
  Successors successors;
  std::vector<std::vector<uint32_t>> kernels; ///< steps by device, by start
};

} // namespace

std::string_view toString(ExposedReason reason) {
  switch (reason) {
  case ExposedReason::Dependency:
    return "dependency";
  case ExposedReason::Memory:
    return "memory";
  case ExposedReason::Contention:
    return "contention";
  case ExposedReason::RankOverlap:
    return "rank overlap";
  case ExposedReason::ChainLimit:
    return "chain limit";
  }
  return "unknown";
}

std::vector<ExposedCollective> exposedCollectives(const Plan &plan,
                                                  const Dag &dag, size_t most) {
  return Explainer(plan, dag).run(most);
}

} // namespace mgpu::planner
