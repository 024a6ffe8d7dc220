// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/MemoryBound.h"

#include "planner/schedule/search/SequenceMemory.h"

#include <algorithm>

namespace mgpu::planner::search {

namespace {

constexpr int64_t unlimited = INT64_MAX / 4;

/// Dinic's maximum flow (1970).
class FlowNetwork {
public:
  explicit FlowNetwork(uint32_t vertices) : heads(vertices, -1) {}

  void addArc(uint32_t from, uint32_t to, int64_t capacity) {
    arcs.push_back({to, heads[from], capacity});
    heads[from] = int32_t(arcs.size() - 1);
    arcs.push_back({from, heads[to], 0});
    heads[to] = int32_t(arcs.size() - 1);
  }
  int64_t maxFlow(uint32_t source, uint32_t sink) {
    int64_t flow = 0;
    while (layer(source, sink)) {
      at = heads;
      while (int64_t pushed = augment(source, sink))
        flow += pushed;
    }
    return flow;
  }
  /// After maxFlow(): whether the vertex is on the source's side of the cut.
  bool onSourceSide(uint32_t vertex) const { return depth[vertex] >= 0; }

private:
  struct Arc {
    uint32_t to;
    int32_t next;
    int64_t left;
  };

  bool layer(uint32_t source, uint32_t sink) {
    depth.assign(heads.size(), -1);
    depth[source] = 0;
    std::vector<uint32_t> queue{source};
    for (size_t k = 0; k < queue.size(); ++k)
      for (int32_t a = heads[queue[k]]; a >= 0; a = arcs[size_t(a)].next) {
        const Arc &arc = arcs[size_t(a)];
        if (arc.left > 0 && depth[arc.to] < 0) {
          depth[arc.to] = depth[queue[k]] + 1;
          queue.push_back(arc.to);
        }
      }
    return depth[sink] >= 0;
  }

  /// One augmenting path along the layers; depth-first with its own stack.
  int64_t augment(uint32_t source, uint32_t sink) {
    path.clear();
    uint32_t vertex = source;
    while (vertex != sink) {
      int32_t &a = at[vertex];
      while (a >= 0 && (arcs[size_t(a)].left == 0 ||
                        depth[arcs[size_t(a)].to] != depth[vertex] + 1))
        a = arcs[size_t(a)].next;
      if (a >= 0) {
        path.push_back(a);
        vertex = arcs[size_t(a)].to;
        continue;
      }
      if (path.empty())
        return 0;
      // A dead end: step back and never come here again in this phase.
      depth[vertex] = -1;
      vertex = arcs[size_t(path.back()) ^ 1].to;
      path.pop_back();
    }
    int64_t amount = unlimited;
    for (int32_t a : path)
      amount = std::min(amount, arcs[size_t(a)].left);
    for (int32_t a : path) {
      arcs[size_t(a)].left -= amount;
      arcs[size_t(a) ^ 1].left += amount;
    }
    return amount;
  }

  std::vector<int32_t> heads, at, depth, path;
  std::vector<Arc> arcs;
};

} // namespace

/// By node, when `node` starts: 1: has ended in every case; 2: cannot have
/// ended; 0: open.
static std::vector<uint8_t> fixedAt(const Problem &problem, uint32_t node) {
  std::vector<uint8_t> fixed(problem.size(), 0);
  fixed[node] = 2;
  for (uint32_t i = node + 1; i < problem.size(); ++i)
    for (uint32_t before : problem.before[i])
      if (fixed[before] == 2)
        fixed[i] = 2;
  for (uint32_t before : problem.before[node])
    fixed[before] = 1;
  for (uint32_t i = node; i-- > 0;)
    if (fixed[i] == 1)
      for (uint32_t before : problem.before[i])
        fixed[before] = 1;
  return fixed;
}

MemoryBound memoryBoundAt(const Problem &problem, uint32_t device,
                          uint32_t node) {
  const uint32_t n = problem.size(), buffers = uint32_t(problem.buffers.size());
  const std::vector<uint8_t> fixed = fixedAt(problem, node);
  // Vertices: source, sink, then nodes, then buffers.
  FlowNetwork network(2 + n + buffers);
  auto vertex = [&](uint32_t i) {
    return fixed[i] == 1 ? 0 : fixed[i] == 2 ? 1 : 2 + i;
  };
  for (uint32_t i = 0; i < n; ++i)
    for (uint32_t before : problem.before[i])
      if (vertex(i) != 1 && vertex(before) != 0)
        network.addArc(vertex(i), vertex(before), unlimited);
  MemoryBound bound;
  bound.node = node;
  bound.bytes = problem.devices[device].residentBytes;
  auto counts = [&](uint32_t b) {
    return problem.buffers[b].device == device && problem.buffers[b].bytes > 0;
  };
  for (uint32_t b = 0; b < buffers; ++b) {
    const uint32_t maker = problem.users[b].front();
    if (!counts(b))
      continue;
    if (maker == node)
      bound.bytes += problem.buffers[b].bytes;
    if (fixed[maker] == 2)
      continue;
    network.addArc(vertex(maker), 2 + n + b, int64_t(problem.buffers[b].bytes));
    for (uint32_t user : problem.users[b].subspan(1))
      network.addArc(2 + n + b, vertex(user), unlimited);
    if (problem.buffers[b].isKept)
      network.addArc(2 + n + b, 1, unlimited);
  }
  bound.bytes += uint64_t(network.maxFlow(0, 1));
  for (uint32_t b = 0; b < buffers; ++b)
    if (uint32_t maker = problem.users[b].front();
        counts(b) && fixed[maker] != 2 && network.onSourceSide(vertex(maker)) &&
        !network.onSourceSide(2 + n + b))
      bound.live.push_back(b);
  std::sort(bound.live.begin(), bound.live.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(problem.buffers[b].bytes, a) <
           std::pair(problem.buffers[a].bytes, b);
  });
  return bound;
}

MemoryBound memoryBound(const Problem &problem, uint32_t device,
                        const std::vector<uint32_t> &order, uint32_t candidates,
                        uint64_t enough) {
  const SequenceMemory memory(problem, order);
  std::vector<std::pair<uint64_t, uint32_t>> steps;
  for (uint32_t k = 0; k < order.size(); ++k)
    steps.push_back({uint64_t(memory.live(device, k)), order[k]});
  std::sort(steps.begin(), steps.end(), [](auto &a, auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  MemoryBound best;
  for (size_t k = 0; k < steps.size() && k < candidates; ++k) {
    // A step needs no more than it takes in some order.
    if (steps[k].first <= best.bytes)
      break;
    MemoryBound bound = memoryBoundAt(problem, device, steps[k].second);
    if (bound.bytes > best.bytes)
      best = std::move(bound);
    if (best.bytes > enough)
      break;
  }
  return best;
}

} // namespace mgpu::planner::search
