// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/problem/FrozenProblem.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace mgpu::planner {

static Result<double> frozenDuration(const Dag &dag, uint32_t node,
                                     const LatencyEstimator *latency) {
  const DagNode &of = dag.nodes[node];
  if (of.durationUs)
    return *of.durationUs;
  if (latency)
    return latency->durationUs(dag, NodeId{node});
  return fail(ErrorKind::Invalid,
              fmt::format("node {} \"{}\" has no duration_us; the frozen model "
                          "needs one for every node",
                          node, of.name));
}

/// Each collective behind the collective and the kernels before it.
static void addPlaces(const Dag &dag, Problem::Description &description) {
  std::vector<uint32_t> waiting;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    if (workClass(dag.nodes[i]) == WorkClass::Collective) {
      for (uint32_t before : waiting)
        description.precedences.push_back({before, i});
      waiting.clear();
    }
    waiting.push_back(i);
  }
}

Result<Problem> frozenProblem(const Dag &dag, const FrozenOptions &options) {
  if (!dag.spmd)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("DAG \"{}\" is not spmd; the frozen model plans one "
                    "device that stands for all",
                    dag.name));
  if (!(options.scaleComm >= 0) || !std::isfinite(options.scaleComm))
    return fail(ErrorKind::Usage, "the scale of communication must be a "
                                  "number from 0 on");
  Problem::Description description;
  description.resources = {"kernels", "collectives"};
  description.devices = {{dag.residentBytes, options.memoryBytes}};
  std::vector<bool> hasUser(dag.nodes.size());
  for (const DepEdge &edge : dag.edges) {
    description.precedences.push_back({edge.from.value, edge.to.value});
    description.users.push_back({edge.from.value, edge.to.value});
    hasUser[edge.from.value] = true;
  }
  if (options.keepsPlaces)
    addPlaces(dag, description);
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode &node = dag.nodes[i];
    MGPU_TRY_ASSIGN(double duration, frozenDuration(dag, i, options.latency));
    const bool isScaled = workClass(node) == WorkClass::Collective;
    description.durations.push_back(duration *
                                    (isScaled ? options.scaleComm : 1));
    FrozenResource resource =
        isScaled ? FrozenResource::Collectives : FrozenResource::Kernels;
    description.uses.push_back(
        {i, {uint32_t(resource), std::max(smShare(node), 1.0 / mostKernels)}});
    description.buffers.push_back({0, node.outBytes, !hasUser[i]});
    description.users.push_back({i, i});
  }
  return Problem::create(std::move(description));
}

bool hasOwnOutputs(const Dag &dag) {
  constexpr uint32_t none = UINT32_MAX;
  std::vector<uint32_t> writer(dag.buffers.size(), none),
      output(dag.nodes.size(), none);
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode &node = dag.nodes[i];
    for (const BufferUse &use : node.uses)
      if (const uint32_t buffer = use.buffer.value; use.writes) {
        if ((output[i] != none && output[i] != buffer) ||
            (writer[buffer] != none && writer[buffer] != i))
          return false;
        output[i] = buffer;
        writer[buffer] = i;
      }
    if (node.outBytes > 0 &&
        (output[i] == none || dag.buffers[output[i]].sizeBytes < node.outBytes))
      return false;
  }
  for (const DepEdge &edge : dag.edges) {
    const auto &uses = dag.node(edge.to).uses;
    if (dag.node(edge.from).outBytes > 0 &&
        std::none_of(uses.begin(), uses.end(), [&](const BufferUse &use) {
          return use.buffer.value == output[edge.from.value];
        }))
      return false;
  }
  return true;
}

double workOf(const Problem &problem, FrozenResource resource) {
  double sum = 0;
  for (uint32_t i = 0; i < problem.size(); ++i)
    if (problem.uses[i].front().resource == uint32_t(resource))
      sum += problem.work(i, problem.uses[i].front());
  return sum;
}

std::optional<double> hiddenShare(const Problem &problem, double boundUs,
                                  double makespan) {
  const double kernels = workOf(problem, FrozenResource::Kernels),
               collectives = workOf(problem, FrozenResource::Collectives),
               least = boundUs - kernels;
  if (collectives <= least)
    return std::nullopt;
  return 1 - (makespan - kernels - least) / (collectives - least);
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

} // namespace mgpu::planner
