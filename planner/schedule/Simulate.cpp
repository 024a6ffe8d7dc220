// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Simulate.h"

#include "planner/schedule/list/Schedulers.h"
#include "support/Random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <queue>
#include <span>

namespace mgpu::planner {

namespace {

/// Knows what each step must see ended before it starts: a graph that does not
/// depend on durations, made once for many plays.
class Player {
public:
  Player(const Plan &plan, const Dag &dag, const Contention &contention)
      : dag(dag), contention(contention), count(plan.steps.size()),
        devicesOf(count), classOf(count), needs(count, 0) {
    std::vector<uint32_t> stepOf(dag.nodes.size(), 0);
    std::map<PlanStream, uint32_t> streams;
    std::vector<uint32_t> resources(numResources(dag), none), before;
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    for (uint32_t s = 0; s < count; ++s) {
      const PlanStep &step = plan.steps[s];
      const DagNode &node = dag.node(step.node);
      stepOf[step.node.value] = s;
      classOf[s] = workClass(node);
      devicesOf[s] = streamDevices(node);
      before.clear();
      for (NodeId wait : step.waits)
        before.push_back(stepOf[wait.value]);
      for (PlanStream stream : step.streams) {
        auto [it, fresh] = streams.try_emplace(stream, s);
        if (!fresh)
          before.push_back(std::exchange(it->second, s));
      }
      for (DeviceId device : streamDevices(node)) {
        if (smShare(node) < 1)
          break; // the plan's waits keep the shares
        uint32_t &holder = resources[resourceIndex(device, classOf[s])];
        if (holder != none)
          before.push_back(holder);
        holder = s;
      }
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      needs[s] = uint32_t(before.size());
      for (uint32_t earlier : before)
        edges.emplace_back(earlier, s);
      phases[size_t(node.phase)].push_back(s);
    }
    fillAfter(edges);
  }

  Simulation play(const std::vector<double> &durations) {
    Simulation result;
    result.startUs.assign(count, 0);
    result.endUs.assign(count, 0);
    out = &result;
    missing = needs;
    left = durations;
    rate.assign(count, 1);
    since.assign(count, 0);
    version.assign(count, 0);
    running.assign(size_t(dag.numDevices) + 1, {});
    PhaseTimes times{};
    for (size_t phase = 0; phase < allPhases.size(); ++phase) {
      current = phase;
      if (phase == 0 ||
          partOf(allPhases[phase]) != partOf(allPhases[phase - 1]))
        now = 0;
      const double begin = now;
      for (uint32_t s : phases[phase])
        if (missing[s] == 0)
          start(s);
      while (!ends.empty()) {
        End end = ends.top();
        ends.pop();
        if (end.version != version[end.step])
          continue;
        now = end.time;
        finish(end.step);
      }
      times[phase] = now - begin;
    }
    result.makespanUs = partUs(times, dag, PlanPart::Replay);
    return result;
  }

private:
  static constexpr uint32_t none = UINT32_MAX;
  struct End {
    double time;
    uint32_t step, version;
    bool operator<(const End &other) const { // the earliest on top
      return time != other.time ? time > other.time : step > other.step;
    }
  };

  /// `edges` are sorted by what they lead to.
  void fillAfter(const std::vector<std::pair<uint32_t, uint32_t>> &edges) {
    afterBegin.assign(count + 1, 0);
    for (auto [earlier, later] : edges)
      ++afterBegin[earlier + 1];
    std::partial_sum(afterBegin.begin(), afterBegin.end(), afterBegin.begin());
    after.resize(edges.size());
    std::vector<uint32_t> at(afterBegin.begin(), afterBegin.end() - 1);
    for (auto [earlier, later] : edges)
      after[at[earlier]++] = later;
  }
  std::span<const uint32_t> stepsAfter(uint32_t s) const {
    return std::span(after).subspan(afterBegin[s],
                                    afterBegin[s + 1] - afterBegin[s]);
  }
  /// The host is number -1.
  std::vector<uint32_t> &runningOn(DeviceId device) {
    return running[size_t(device.value + 1)];
  }
  bool inPhase(uint32_t s) const {
    return std::binary_search(phases[current].begin(), phases[current].end(),
                              s);
  }
  void start(uint32_t s) {
    out->startUs[s] = since[s] = now;
    for (DeviceId device : devicesOf[s])
      runningOn(device).push_back(s);
    setRate(s);
    for (DeviceId device : devicesOf[s])
      for (uint32_t other : runningOn(device))
        if (other != s)
          setRate(other);
  }
  void finish(uint32_t s) {
    out->endUs[s] = now;
    ++version[s];
    for (DeviceId device : devicesOf[s])
      std::erase(runningOn(device), s);
    for (DeviceId device : devicesOf[s])
      for (uint32_t other : runningOn(device))
        setRate(other);
    for (uint32_t next : stepsAfter(s))
      if (--missing[next] == 0 && inPhase(next))
        start(next);
  }
  /// Books the work done at the old rate and foretells the end anew.
  void setRate(uint32_t s) {
    double slowest = 1;
    for (DeviceId device : devicesOf[s]) {
      double factor = 1;
      for (uint32_t other : runningOn(device))
        if (other != s)
          factor *= contention.of(classOf[s], classOf[other]);
      slowest = std::max(slowest, factor);
    }
    left[s] -= (now - since[s]) * rate[s];
    since[s] = now;
    rate[s] = 1 / slowest;
    ends.push({now + std::max(left[s], 0.0) * slowest, s, ++version[s]});
  }

  const Dag &dag;
  const Contention &contention;
  size_t count;
  std::vector<std::span<const DeviceId>> devicesOf;
  std::vector<WorkClass> classOf;
  std::vector<uint32_t> afterBegin, after; ///< steps that wait for a step
  std::vector<uint32_t> needs;
  std::vector<uint32_t> phases[allPhases.size()]; ///< steps, ascending

  Simulation *out = nullptr;
  std::vector<uint32_t> missing, version;
  std::vector<double> left, rate, since;      ///< by step
  std::vector<std::vector<uint32_t>> running; ///< by device
  std::priority_queue<End> ends;
  size_t current = 0;
  double now = 0;
};

std::vector<double> durationsOf(const Plan &plan) {
  std::vector<double> durations;
  for (const PlanStep &step : plan.steps)
    durations.push_back(step.durationUs);
  return durations;
}

} // namespace

Simulation simulate(const Plan &plan, const Dag &dag,
                    const Contention &contention) {
  return Player(plan, dag, contention).play(durationsOf(plan));
}

std::vector<double> simulateNoise(const Plan &plan, const Dag &dag,
                                  const Contention &contention, double sigma,
                                  uint32_t samples, uint64_t seed) {
  Player player(plan, dag, contention);
  Random random(seed);
  std::vector<double> means = durationsOf(plan), makespans;
  for (uint32_t k = 0; k < samples; ++k) {
    std::vector<double> durations = means;
    for (double &duration : durations) {
      // Box and Muller 1958; 1 - u is never 0.
      double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      double normal =
          radius * std::cos(2 * std::numbers::pi * random.uniform());
      duration *= std::exp(sigma * normal);
    }
    makespans.push_back(player.play(durations).makespanUs);
  }
  std::sort(makespans.begin(), makespans.end());
  return makespans;
}

} // namespace mgpu::planner
