// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/Schedulers.h"

#include "planner/plan/ArenaLayout.h"
#include "planner/plan/StreamClocks.h"
#include "support/Assert.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>

namespace mgpu::planner {

Result<std::vector<double>> nodeDurations(const Dag &dag,
                                          const LatencyEstimator &latency) {
  std::vector<double> durations(dag.nodes.size());
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    durations[i] = latency.durationUs(dag, NodeId{i});
    if (!(durations[i] >= 0) || !std::isfinite(durations[i]))
      return fail(ErrorKind::Invalid,
                  fmt::format("node {} \"{}\" has duration {} us by {}; it "
                              "must be finite and not negative",
                              i, dag.nodes[i].name, durations[i],
                              latency.name()));
  }
  return durations;
}

/// The devices of which a node has its resource for itself. Kernels that share
/// the SMs have the plan's waits instead.
static std::span<const DeviceId> exclusiveDevices(const DagNode &node) {
  return smShare(node) < 1 ? std::span<const DeviceId>() : streamDevices(node);
}

static bool isPredecessor(std::span<const DepEdge> edges, NodeId node) {
  auto it = std::lower_bound(
      edges.begin(), edges.end(), node,
      [](const DepEdge &edge, NodeId from) { return edge.from < from; });
  return it != edges.end() && it->from == node;
}

namespace {
/// The step that runs last on a stream, a resource, or in a phase.
struct Holder {
  double until = 0;
  NodeId node;
  bool used = false;
};
} // namespace

std::vector<StartReason> predictTimes(Plan &plan, const Dag &dag) {
  std::vector<Holder> resources(numResources(dag));
  std::map<PlanStream, Holder> streams;
  std::vector<double> endOf(dag.nodes.size(), 0);
  std::vector<StartReason> reasons(plan.steps.size());
  Predecessors predecessors(dag);
  auto depends = [&](NodeId node, NodeId on) {
    return isPredecessor(predecessors.of(node), on);
  };

  Holder phaseEnd, latest; // latest: the step that ends last so far
  Phase phase = Phase::Load;
  PhaseTimes times{};
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    PlanStep &step = plan.steps[s];
    const DagNode &node = dag.node(step.node);
    if (partOf(node.phase) != partOf(phase)) { // its times begin at 0
      resources.assign(resources.size(), {});
      streams.clear();
      phaseEnd = latest = {};
    } else if (node.phase != phase) {
      phaseEnd = latest;
    }
    phase = node.phase;
    double start = 0;
    StartReason reason;
    // The strictest constraint names the reason; of equals, the first asked.
    auto constrain = [&](double until, StartReason::Kind kind, NodeId by) {
      if (until > start) {
        start = until;
        reason = {kind, by};
      }
    };
    for (NodeId wait : step.waits)
      if (partOf(dag.node(wait).phase) == partOf(phase))
        constrain(endOf[wait.value],
                  depends(step.node, wait) ? StartReason::Dependence
                                           : StartReason::Order,
                  wait);
    for (PlanStream stream : step.streams)
      if (const Holder &tail = streams[stream]; tail.used)
        constrain(tail.until,
                  depends(step.node, tail.node) ? StartReason::Dependence
                                                : StartReason::Stream,
                  tail.node);
    for (DeviceId device : exclusiveDevices(node))
      if (const Holder &holder =
              resources[resourceIndex(device, workClass(node))];
          holder.used)
        constrain(holder.until, StartReason::Resource, holder.node);
    if (phaseEnd.used)
      constrain(phaseEnd.until, StartReason::Phase, phaseEnd.node);

    step.startUs = start;
    reasons[s] = reason;
    Holder mine{start + step.durationUs, step.node, true};
    endOf[step.node.value] = mine.until;
    for (PlanStream stream : step.streams)
      streams[stream] = mine;
    for (DeviceId device : exclusiveDevices(node))
      resources[resourceIndex(device, workClass(node))] = mine;
    if (!latest.used || mine.until > latest.until)
      latest = mine;
    times[size_t(phase)] = latest.until - phaseEnd.until;
  }
  plan.loadUs = partUs(times, dag, PlanPart::Load);
  plan.makespanUs = partUs(times, dag, PlanPart::Replay);
  plan.fetchUs = partUs(times, dag, PlanPart::Fetch);
  return reasons;
}

void recordOrigins(Plan &plan, const Dag &dag,
                   const LatencyEstimator &latency) {
  double wrongUs = 0, us = 0;
  for (PlanStep &step : plan.steps) {
    step.origin = latency.origin(dag, step.node);
    if (dag.node(step.node).phase != Phase::Replay)
      continue;
    wrongUs += step.durationUs * latency.error(dag, step.node);
    us += step.durationUs;
  }
  plan.error = us > 0 ? wrongUs / us : 0;
}

void retime(Plan &plan, const Dag &dag, const LatencyEstimator &latency) {
  for (PlanStep &step : plan.steps)
    step.durationUs = latency.durationUs(dag, step.node);
  recordOrigins(plan, dag, latency);
  plan.model = latency.name();
  predictTimes(plan, dag);
}

namespace {
/// Collectives that share two ranks must be ordered for good, whatever their
/// communicators (planner/plan/Verify.h): each follows the last one on every
/// set of devices that meets its own twice.
class CollectiveOrder {
public:
  void follow(const DagNode &node, uint32_t step,
              std::vector<uint32_t> &needed) {
    if (workClass(node) != WorkClass::Collective || node.devices.size() < 2)
      return;
    auto it = numbers.find(node.devices);
    if (it == numbers.end())
      it = add(node.devices);
    for (uint32_t other : groups[it->second].meets)
      if (groups[other].used)
        needed.push_back(groups[other].lastStep);
    groups[it->second].used = true;
    groups[it->second].lastStep = step;
  }

private:
  struct Group {
    std::vector<DeviceId> devices;
    std::vector<uint32_t> meets; ///< itself among them
    uint32_t lastStep = 0;
    bool used = false;
  };
  using Numbers = std::map<std::vector<DeviceId>, uint32_t>;

  Numbers::iterator add(const std::vector<DeviceId> &devices) {
    uint32_t mine = uint32_t(groups.size());
    groups.push_back({devices, {}, 0, false});
    for (uint32_t other = 0; other <= mine; ++other) {
      std::vector<DeviceId> both;
      std::set_intersection(
          devices.begin(), devices.end(), groups[other].devices.begin(),
          groups[other].devices.end(), std::back_inserter(both));
      if (both.size() < 2)
        continue;
      groups[mine].meets.push_back(other);
      if (other != mine)
        groups[other].meets.push_back(mine);
    }
    return numbers.emplace(devices, mine).first;
  }

  Numbers numbers;
  std::vector<Group> groups;
};
} // namespace

/// Gives step `s` the waits that order it after the steps `needed`, without
/// those that others imply. Later ones go first: no earlier step can imply a
/// later one.
static void setWaits(Plan &plan, uint32_t s, std::vector<uint32_t> &needed,
                     StreamClocks &clocks) {
  std::sort(needed.begin(), needed.end(), std::greater<>());
  PlanStep &step = plan.steps[s];
  step.waits.clear();
  clocks.begin(step.streams);
  for (uint32_t earlier : needed)
    if (!clocks.follows(earlier)) {
      clocks.join(earlier);
      step.waits.push_back(plan.steps[earlier].node);
    }
  clocks.end();
  std::sort(step.waits.begin(), step.waits.end());
}

/// Each step follows its predecessors in the DAG; in a plan that is serial, the
/// step before it as well.
static void assignWaits(Plan &plan, bool isSerial, bool early, const Dag &dag) {
  std::vector<std::vector<uint32_t>> places;
  if (!early)
    places = placesOfCollectives(dag);
  std::set<PlanStream> streams;
  for (const PlanStep &step : plan.steps)
    streams.insert(step.streams.begin(), step.streams.end());
  StreamClocks clocks(plan.steps.size(), streams.size());
  std::vector<uint32_t> stepOf(dag.nodes.size());
  Predecessors predecessors(dag);
  std::vector<uint32_t> needed;
  CollectiveOrder collectives;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    PlanStep &step = plan.steps[s];
    stepOf[step.node.value] = s;
    needed.clear();
    for (const DepEdge &edge : predecessors.of(step.node))
      needed.push_back(stepOf[edge.from.value]);
    collectives.follow(dag.node(step.node), s, needed);
    if (!early)
      for (uint32_t before : places[step.node.value])
        needed.push_back(stepOf[before]);
    if (isSerial && s > 0)
      needed.push_back(s - 1);
    setWaits(plan, s, needed, clocks);
  }
}

void followTimes(Plan &plan, const Dag &dag) {
  std::vector<uint32_t> stepOf(dag.nodes.size());
  // By stream: its steps so far, and how many of them have ended.
  struct Steps {
    std::vector<uint32_t> steps;
    size_t ended = 0;
  };
  std::map<PlanStream, Steps> streams;
  for (const PlanStep &step : plan.steps)
    for (PlanStream stream : step.streams)
      streams[stream];
  StreamClocks clocks(plan.steps.size(), streams.size());
  std::vector<uint32_t> needed;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    PlanStep &step = plan.steps[s];
    stepOf[step.node.value] = s;
    needed.clear();
    for (NodeId wait : step.waits)
      needed.push_back(stepOf[wait.value]);
    for (PlanStream mine : step.streams)
      for (auto at = streams.lower_bound({mine.device, {0}});
           at != streams.end() && at->first.device == mine.device; ++at) {
        Steps &other = at->second;
        auto hasEnded = [&](const PlanStep &each) {
          return partOf(dag.node(each.node).phase) <
                     partOf(dag.node(step.node).phase) ||
                 each.startUs + each.durationUs <= step.startUs;
        };
        while (other.ended < other.steps.size() &&
               hasEnded(plan.steps[other.steps[other.ended]]))
          ++other.ended;
        if (other.ended > 0)
          needed.push_back(other.steps[other.ended - 1]);
      }
    setWaits(plan, s, needed, clocks);
    for (PlanStream stream : step.streams)
      streams[stream].steps.push_back(s);
  }
  ArenaLayout layout = layoutArena(plan, dag);
  plan.placements = std::move(layout.placements);
  plan.arenaBytes = std::move(layout.arenaBytes);
}

/// Whether the plan's text reads back as the plan. It is looked at while the
/// DAG is small. (Whether the plan is safe is for verify(), whose answer is an
/// error of the program where a DAG from a file lacks edges.)
[[maybe_unused]] static bool readsBack(const Plan &plan, const Dag &dag) {
  if (plan.steps.size() > 256)
    return true;
  const std::string text = toText(plan, dag);
  Result<Plan> back = parsePlan(text, dag);
  return back && toText(*back, dag) == text;
}

static Result<Plan> planOf(std::vector<OrderedStep> order,
                           const ScheduleOptions &options, const Dag &dag,
                           const LatencyEstimator &latency) {
  if (order.size() != dag.nodes.size())
    return fail(ErrorKind::Internal,
                fmt::format("scheduler {} placed {} of {} nodes",
                            options.scheduler, order.size(), dag.nodes.size()));
  MGPU_TRY_ASSIGN(std::vector<double> durations, nodeDurations(dag, latency));
  Plan plan;
  plan.scheduler = options.scheduler;
  plan.model = latency.name();
  plan.numDevices = dag.numDevices;
  plan.streamsPerDevice = options.streamsPerDevice;
  plan.steps.reserve(order.size());
  for (OrderedStep &step : order) {
    plan.steps.emplace_back();
    plan.steps.back().node = step.node;
    plan.steps.back().streams = std::move(step.streams);
    plan.steps.back().durationUs = durations[step.node.value];
  }
  assignWaits(plan, options.scheduler == "serial", options.schedulePolicy.early,
              dag);
  predictTimes(plan, dag);
  if (!options.placesBuffers)
    return plan;
  ArenaLayout layout = layoutArena(plan, dag);
  plan.placements = std::move(layout.placements);
  plan.arenaBytes = std::move(layout.arenaBytes);
  for (size_t device = 0; device < plan.arenaBytes.size(); ++device)
    if (plan.arenaBytes[device] > options.limits.arenaBytes ||
        dag.residentBytes > options.limits.arenaBytes - plan.arenaBytes[device])
      return fail(
          ErrorKind::Invalid,
          fmt::format("device {} needs {} bytes and {} resident ones, but {} "
                      "are allowed; use more devices or smaller buffers",
                      device, plan.arenaBytes[device], dag.residentBytes,
                      options.limits.arenaBytes));
  MGPU_ASSERT(readsBack(plan, dag), "a plan's text reads back as the plan");
  return plan;
}

Result<Plan> schedule(const Dag &dag, const LatencyEstimator &latency,
                      const ScheduleOptions &options,
                      std::optional<std::vector<OrderedStep>> order) {
  if (order)
    return planOf(std::move(*order), options, dag, latency);
  MGPU_TRY(dag.check());
  ScheduleOptions used = options;
  if (used.scheduler == "serial")
    used.streamsPerDevice = 1;
  else if (used.scheduler == "shuffled")
    used.schedulePolicy = {};
  used.streamsPerDevice =
      std::min(used.streamsPerDevice, used.limits.streamsPerDevice);
  if (used.streamsPerDevice == 0)
    return fail(ErrorKind::Usage,
                "a plan needs at least one stream per device");
  MGPU_TRY_ASSIGN(order, orderOf(dag, latency, used));
  return planOf(std::move(*order), used, dag, latency);
}

} // namespace mgpu::planner
