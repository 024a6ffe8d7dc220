// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The judge of plans. It shares nothing with the schedulers: it numbers
// streams, keeps vector clocks and places uses on its own.
//
// Cost, for n steps, e DAG edges and waits, L streams in use:
// clocks take O((n + e) * L) time and n * L words; VerifyMemory.cpp says what
// memory takes.

#include "planner/plan/Verify.h"

#include "planner/plan/VerifyMemory.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <unordered_map>

namespace mgpu::planner {

namespace {

// 16 GiB of clocks: a million steps on 4,096 streams.
constexpr uint64_t maxClockWords = uint64_t(1) << 32;

class Verifier {
public:
  Verifier(const Plan &plan, const Dag &dag, const PlanLimits &limits)
      : plan(plan), dag(dag), limits(limits) {}

  Result<void> run() {
    MGPU_TRY(checkHeader());
    MGPU_TRY(checkSteps());
    MGPU_TRY(buildClocks());
    MGPU_TRY(checkEdges());
    MGPU_TRY(checkCommunicators());
    MGPU_TRY(checkPlacements());
    return verifyMemory(plan, dag, order, base);
  }

private:
  static tl::unexpected<Error> bad(std::string message) {
    return badPlan(std::move(message));
  }
  std::string nodeText(NodeId id) const { return planner::nodeText(dag, id); }
  std::string stepText(uint32_t step) const {
    return nodeText(plan.steps[step].node);
  }

  Result<void> checkHeader() {
    if (plan.numDevices != dag.numDevices)
      return bad(fmt::format("it is for {} devices, the program has {}",
                             plan.numDevices, dag.numDevices));
    if (plan.streamsPerDevice == 0 ||
        plan.streamsPerDevice > limits.streamsPerDevice)
      return bad(fmt::format("it uses {} streams per device; from 1 to {} are "
                             "allowed",
                             plan.streamsPerDevice, limits.streamsPerDevice));
    for (double time :
         {plan.makespanUs, plan.lowerBoundUs, plan.loadUs, plan.fetchUs})
      if (!std::isfinite(time) || time < 0)
        return bad("its makespan, bound, load or fetch is not a finite time");
    return {};
  }

  Result<void> checkSteps() {
    constexpr uint32_t absent = UINT32_MAX;
    stepOf.assign(dag.nodes.size(), absent);
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const PlanStep &step = plan.steps[s];
      if (step.node.value >= dag.nodes.size())
        return bad(fmt::format("step {} names node {}, but the program has {} "
                               "nodes",
                               s, step.node.value, dag.nodes.size()));
      if (stepOf[step.node.value] != absent)
        return bad(fmt::format("{} has two steps", stepText(s)));
      MGPU_TRY(checkStreams(s));
      if (s > 0 &&
          dag.node(plan.steps[s - 1].node).phase > dag.node(step.node).phase)
        return bad(fmt::format("{} comes after {}, which belongs to a later "
                               "phase",
                               stepText(s), stepText(s - 1)));
      for (size_t k = 0; k < step.waits.size(); ++k) {
        NodeId wait = step.waits[k];
        if (wait.value >= dag.nodes.size())
          return bad(fmt::format("{} waits for node {}, which does not exist",
                                 stepText(s), wait.value));
        if (stepOf[wait.value] == absent)
          return bad(fmt::format("{} waits for {}, whose step does not come "
                                 "before it",
                                 stepText(s), nodeText(wait)));
        if (k > 0 && !(step.waits[k - 1] < wait))
          return bad(fmt::format("{} does not list its waits in ascending "
                                 "order, each once",
                                 stepText(s)));
      }
      for (double time : {step.startUs, step.durationUs})
        if (!std::isfinite(time) || time < 0)
          return bad(fmt::format(
              "{} has a start or duration that is not a finite time",
              stepText(s)));
      stepOf[step.node.value] = s;
    }
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      if (stepOf[i] == absent)
        return bad(fmt::format("{} has no step", nodeText(NodeId{i})));
    return {};
  }

  Result<void> checkStreams(uint32_t s) {
    const PlanStep &step = plan.steps[s];
    std::vector<DeviceId> devices = dag.node(step.node).devices;
    if (devices.empty())
      devices.push_back(DeviceId::host());
    if (step.streams.size() != devices.size())
      return bad(fmt::format("{} has {} streams for {} devices", stepText(s),
                             step.streams.size(), devices.size()));
    for (size_t k = 0; k < devices.size(); ++k) {
      if (step.streams[k].device != devices[k])
        return bad(fmt::format(
            "{} has a stream on device {} where its device {} "
            "belongs",
            stepText(s), step.streams[k].device.value, devices[k].value));
      if (step.streams[k].stream.value >= plan.streamsPerDevice)
        return bad(fmt::format("{} runs on stream {}, but the plan has {} per "
                               "device",
                               stepText(s), step.streams[k].stream.value,
                               plan.streamsPerDevice));
    }
    return {};
  }

  Result<void> buildClocks() {
    std::map<PlanStream, uint32_t> streamNumber;
    for (const PlanStep &step : plan.steps)
      for (PlanStream stream : step.streams)
        streamNumber.try_emplace(stream, uint32_t(streamNumber.size()));
    order.numStreams = streamNumber.size();
    if (plan.steps.size() * uint64_t(order.numStreams) > maxClockWords)
      return fail(
          ErrorKind::Unsupported,
          fmt::format("plan: {} steps on {} streams are more than verify "
                      "can hold; plan with fewer streams",
                      plan.steps.size(), order.numStreams));
    order.clock.assign(plan.steps.size() * order.numStreams, 0);
    order.home.resize(plan.steps.size());
    std::vector<uint32_t> tail(order.numStreams, UINT32_MAX);
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      uint32_t *mine = &order.clock[s * order.numStreams];
      auto include = [&](uint32_t earlier) {
        const uint32_t *theirs = &order.clock[earlier * order.numStreams];
        for (size_t stream = 0; stream < order.numStreams; ++stream)
          if (theirs[stream] > mine[stream])
            mine[stream] = theirs[stream];
      };
      const PlanStep &step = plan.steps[s];
      for (NodeId wait : step.waits)
        include(stepOf[wait.value]);
      for (PlanStream stream : step.streams) {
        uint32_t number = streamNumber[stream];
        if (tail[number] != UINT32_MAX)
          include(tail[number]);
      }
      for (PlanStream stream : step.streams) {
        order.home[s] = streamNumber[stream];
        tail[order.home[s]] = s;
        ++mine[order.home[s]];
      }
    }
    return {};
  }

  bool isBefore(uint32_t earlier, uint32_t later) const {
    return order.isBefore(earlier, later);
  }

  Result<void> checkEdges() {
    for (const DepEdge &edge : dag.edges)
      if (!isBefore(stepOf[edge.from.value], stepOf[edge.to.value]))
        return bad(fmt::format("{} must follow {} ({} dependence), but neither "
                               "stream order nor waits say so",
                               nodeText(edge.to), nodeText(edge.from),
                               toString(edge.kind)));
    return {};
  }

  // Two collectives that share two ranks could be issued in one order by one
  // rank and in the other by the next; each would wait for the other for ever.
  // That holds within a communicator and between two of them. Each collective
  // on some devices is ordered after the one before it there; so a new one is
  // compared with the last on each set of devices that meets its own twice.
  Result<void> checkCommunicators() {
    std::map<std::vector<DeviceId>, uint32_t> last;
    std::unordered_map<uint32_t, uint32_t> lastOnCommunicator;
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      const DagNode &node = dag.node(plan.steps[s].node);
      auto unordered = [&](uint32_t earlier) {
        return bad(fmt::format("{} and {} {} in no certain order, so their "
                               "ranks may deadlock",
                               stepText(earlier), stepText(s),
                               sharedText(earlier, s)));
      };
      if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
        auto [it, first] =
            lastOnCommunicator.try_emplace(call->communicator, s);
        if (!first && !isBefore(it->second, s))
          return unordered(it->second);
        it->second = s;
      }
      if (workClass(node) != WorkClass::Collective || node.devices.size() < 2)
        continue;
      for (auto &[devices, earlier] : last)
        if (shareTwo(devices, node.devices) && !isBefore(earlier, s))
          return unordered(earlier);
      last[node.devices] = s;
    }
    return {};
  }
  /// Both ascending.
  static bool shareTwo(const std::vector<DeviceId> &a,
                       const std::vector<DeviceId> &b) {
    std::vector<DeviceId> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                          std::back_inserter(both));
    return both.size() >= 2;
  }
  std::string sharedText(uint32_t a, uint32_t b) const {
    auto *x = std::get_if<CollectiveCall>(&dag.node(plan.steps[a].node).work);
    auto *y = std::get_if<CollectiveCall>(&dag.node(plan.steps[b].node).work);
    if (x && y && x->communicator == y->communicator)
      return fmt::format("use communicator {}", x->communicator);
    return "share two ranks";
  }

  Result<void> checkPlacements() {
    if (plan.arenaBytes.size() != dag.numDevices)
      return bad(fmt::format("it lists {} arenas for {} devices",
                             plan.arenaBytes.size(), dag.numDevices));
    for (size_t device = 0; device < plan.arenaBytes.size(); ++device) {
      uint64_t bytes = plan.arenaBytes[device];
      if (bytes > limits.arenaBytes ||
          dag.residentBytes > limits.arenaBytes - bytes)
        return bad(fmt::format("device {} needs {} bytes and {} resident ones, "
                               "but {} are allowed",
                               device, bytes, dag.residentBytes,
                               limits.arenaBytes));
    }
    base.assign(dag.buffers.size(), 0);
    size_t next = 0;
    for (uint32_t id = 0; id < dag.buffers.size(); ++id) {
      const Buffer &buffer = dag.buffers[id];
      if (!isInArena(buffer))
        continue;
      if (next >= plan.placements.size() ||
          plan.placements[next].buffer.value != id)
        return bad(fmt::format("buffer \"{}\" has no placement, or placements "
                               "are not in the order of buffers",
                               buffer.name));
      uint64_t offset = plan.placements[next++].offset;
      uint64_t arena = plan.arenaBytes[size_t(buffer.device.value)];
      if (offset % arenaAlignment != 0)
        return bad(
            fmt::format("buffer \"{}\" lies at offset {}, which is not a "
                        "multiple of {}",
                        buffer.name, offset, arenaAlignment));
      if (offset > arena || buffer.sizeBytes > arena - offset)
        return bad(fmt::format("buffer \"{}\" at offset {} ends outside the "
                               "arena of device {}, which has {} bytes",
                               buffer.name, offset, buffer.device.value,
                               arena));
      if (offset > uint64_t(INT64_MAX) / 2)
        return bad(fmt::format("buffer \"{}\" lies at offset {}, which cannot "
                               "be addressed",
                               buffer.name, offset));
      base[id] = int64_t(offset);
    }
    if (next != plan.placements.size())
      return bad(
          fmt::format("it places buffer {} which is not in an arena or is "
                      "placed twice",
                      plan.placements[next].buffer.value));
    return {};
  }

  const Plan &plan;
  const Dag &dag;
  const PlanLimits &limits;
  std::vector<uint32_t> stepOf; ///< by node
  StepOrder order;
  std::vector<int64_t> base; ///< arena offset of each buffer, 0 of others
};

} // namespace

Result<void> verify(const Plan &plan, const Dag &dag,
                    const PlanLimits &limits) {
  return Verifier(plan, dag, limits).run();
}

} // namespace mgpu::planner
