// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/Paths.h"
#include "planner/schedule/list/PlanBuilder.h"

#include <algorithm>
#include <queue>

namespace mgpu::planner {

Paths longestPaths(const Dag &dag, const std::vector<double> &durations) {
  Paths paths{std::vector<double>(dag.nodes.size(), 0),
              std::vector<double>(dag.nodes.size(), 0)};
  auto samePhase = [&](const DepEdge &edge) {
    return dag.node(edge.from).phase == dag.node(edge.to).phase;
  };
  for (const DepEdge &edge : dag.edges)
    if (samePhase(edge)) {
      double &head = paths.head[edge.to.value];
      head = std::max(head,
                      paths.head[edge.from.value] + durations[edge.from.value]);
    }
  // Edges are sorted by target, so backwards every target is complete.
  for (auto edge = dag.edges.rbegin(); edge != dag.edges.rend(); ++edge)
    if (samePhase(*edge)) {
      double &tail = paths.tail[edge->from.value];
      tail = std::max(tail,
                      paths.tail[edge->to.value] + durations[edge->to.value]);
    }
  return paths;
}

// The shortest time in which one machine can run `jobs` if it may interrupt
// them: always go on with the started job of the longest tail. No schedule
// without interruption is shorter (Jackson 1955; Carlier 1982).
static double oneMachineBound(std::vector<uint32_t> &jobs, const Paths &paths,
                              const std::vector<double> &durations) {
  std::sort(jobs.begin(), jobs.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(paths.head[a], a) < std::pair(paths.head[b], b);
  });
  struct Job {
    double tail, left;
    bool operator<(const Job &other) const { return tail < other.tail; }
  };
  std::priority_queue<Job> open;
  double now = 0, bound = 0;
  size_t next = 0;
  while (next < jobs.size() || !open.empty()) {
    if (open.empty())
      now = std::max(now, paths.head[jobs[next]]);
    while (next < jobs.size() && paths.head[jobs[next]] <= now) {
      open.push({paths.tail[jobs[next]], durations[jobs[next]]});
      ++next;
    }
    Job job = open.top();
    open.pop();
    double arrival = next < jobs.size() ? paths.head[jobs[next]] : -1;
    if (arrival >= 0 && now + job.left > arrival) {
      job.left -= arrival - now;
      now = arrival;
      open.push(job);
      continue;
    }
    now += job.left;
    bound = std::max(bound, now + job.tail);
  }
  return bound;
}

double makespanLowerBound(const Dag &dag, const LatencyEstimator &latency) {
  Result<std::vector<double>> durations = nodeDurations(dag, latency);
  if (!durations)
    return 0;
  Paths paths = longestPaths(dag, *durations);
  double total = 0;
  for (Phase phase : allPhases) {
    double bound = 0;
    std::vector<std::vector<uint32_t>> byResource(numResources(dag));
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      const DagNode &node = dag.nodes[i];
      if (node.phase != phase)
        continue;
      bound = std::max(bound, paths.head[i] + (*durations)[i] + paths.tail[i]);
      for (DeviceId device : streamDevices(node))
        byResource[resourceIndex(device, workClass(node))].push_back(i);
    }
    for (std::vector<uint32_t> &jobs : byResource)
      bound = std::max(bound, oneMachineBound(jobs, paths, *durations));
    total += bound;
  }
  // Sums in another order may round to just above a schedule that meets the
  // bound; a part in 10^12 keeps the claim.
  return total * (1 - 1e-12);
}

} // namespace mgpu::planner
