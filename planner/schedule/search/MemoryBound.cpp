// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/MemoryBound.h"

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

MemoryBound memoryBoundAt(const OverlapModel &model, uint32_t node) {
  uint32_t n = model.size();
  // 1: has ended in every case; 2: cannot have started; 0: open.
  std::vector<uint8_t> fixed(n, 0);
  fixed[node] = 2;
  for (uint32_t i = node + 1; i < n; ++i)
    for (uint32_t before : model.predecessors(i))
      if (fixed[before] == 2)
        fixed[i] = 2;
  for (uint32_t before : model.predecessors(node))
    fixed[before] = 1;
  for (uint32_t i = node; i-- > 0;)
    if (fixed[i] == 1)
      for (uint32_t before : model.predecessors(i))
        fixed[before] = 1;

  // Vertices: source, sink, then nodes, then their outputs.
  FlowNetwork network(2 + 2 * n);
  auto vertex = [&](uint32_t i) {
    return fixed[i] == 1 ? 0 : fixed[i] == 2 ? 1 : 2 + i;
  };
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t before : model.predecessors(i))
      if (vertex(i) != 1 && vertex(before) != 0)
        network.addArc(vertex(i), vertex(before), unlimited);
    if (fixed[i] == 2 || model.outBytes[i] == 0)
      continue;
    uint32_t output = 2 + n + i;
    network.addArc(vertex(i), output, int64_t(model.outBytes[i]));
    for (uint32_t next : model.successors(i))
      network.addArc(output, vertex(next), unlimited);
    if (model.successors(i).empty())
      network.addArc(output, 1, unlimited);
  }
  MemoryBound bound;
  bound.node = node;
  bound.bytes = model.residentBytes + model.outBytes[node] +
                uint64_t(network.maxFlow(0, 1));
  for (uint32_t i = 0; i < n; ++i)
    if (fixed[i] != 2 && model.outBytes[i] > 0 &&
        network.onSourceSide(vertex(i)) && !network.onSourceSide(2 + n + i))
      bound.live.push_back(i);
  std::sort(bound.live.begin(), bound.live.end(), [&](uint32_t a, uint32_t b) {
    return model.outBytes[a] != model.outBytes[b]
               ? model.outBytes[a] > model.outBytes[b]
               : a < b;
  });
  return bound;
}

MemoryBound memoryBound(const OverlapModel &model,
                        const std::vector<uint32_t> &order, uint32_t candidates,
                        uint64_t enough) {
  std::vector<uint32_t> open(model.size());
  for (uint32_t i = 0; i < model.size(); ++i)
    open[i] = uint32_t(model.successors(i).size());
  std::vector<std::pair<uint64_t, uint32_t>> steps;
  uint64_t live = model.residentBytes;
  for (uint32_t node : order) {
    live += model.outBytes[node];
    steps.push_back({live, node});
    for (uint32_t before : model.predecessors(node))
      if (--open[before] == 0)
        live -= model.outBytes[before];
  }
  std::sort(steps.begin(), steps.end(), [](auto &a, auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  MemoryBound best;
  for (size_t k = 0; k < steps.size() && k < candidates; ++k) {
    // What a step needs is no more than what it takes in some order.
    if (steps[k].first <= best.bytes)
      break;
    MemoryBound bound = memoryBoundAt(model, steps[k].second);
    if (bound.bytes > best.bytes)
      best = std::move(bound);
    if (best.bytes > enough)
      break;
  }
  return best;
}

} // namespace mgpu::planner::search
