// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/MemoryBound.h"

#include "planner/schedule/search/LowerPeak.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::planner::search {

SequenceMemory::SequenceMemory(const Problem &problem,
                               std::vector<uint32_t> order)
    : problem(problem), places(problem.size()), first(problem.buffers.size()),
      last(problem.buffers.size()),
      levels(problem.devices.size(), std::vector<Level>(problem.size())) {
  sequence.resize(order.size());
  put(0, order);
  measure(0, uint32_t(order.size()));
}

std::vector<uint64_t> SequenceMemory::peaks() const {
  std::vector<uint64_t> most;
  for (size_t d = 0; d < levels.size(); ++d) {
    most.push_back(problem.devices[d].residentBytes);
    for (const Level &level : levels[d])
      most[d] = std::max(most[d], uint64_t(level.during));
  }
  return most;
}

void SequenceMemory::put(uint32_t begin, const std::vector<uint32_t> &part) {
  for (uint32_t k = 0; k < part.size(); ++k) {
    sequence[begin + k] = part[k];
    places[part[k]] = begin + k;
  }
  for (uint32_t node : part)
    for (uint32_t b : problem.touched[node]) {
      std::span<const uint32_t> users = problem.users[b];
      auto earlier = [&](uint32_t x, uint32_t y) {
        return places[x] < places[y];
      };
      first[b] = *std::min_element(users.begin(), users.end(), earlier);
      last[b] = *std::max_element(users.begin(), users.end(), earlier);
    }
}

void SequenceMemory::measure(uint32_t begin, uint32_t end) {
  std::vector<int64_t> now(levels.size());
  for (size_t d = 0; d < levels.size(); ++d)
    now[d] = begin > 0 ? levels[d][begin - 1].after
                       : int64_t(problem.devices[d].residentBytes);
  for (uint32_t k = begin; k < end; ++k) {
    const uint32_t node = sequence[k];
    for (uint32_t b : problem.touched[node])
      if (first[b] == node)
        now[problem.buffers[b].device] += int64_t(problem.buffers[b].bytes);
    for (size_t d = 0; d < levels.size(); ++d)
      levels[d][k].during = now[d];
    for (uint32_t b : problem.touched[node])
      if (last[b] == node && !problem.buffers[b].isKept)
        now[problem.buffers[b].device] -= int64_t(problem.buffers[b].bytes);
    for (size_t d = 0; d < levels.size(); ++d)
      levels[d][k].after = now[d];
  }
}

double SequenceMemory::excess(uint32_t begin, uint32_t end,
                              const std::vector<uint64_t> &targets) const {
  double sum = 0;
  for (size_t d = 0; d < levels.size(); ++d)
    for (uint32_t k = begin; k < end; ++k)
      sum += std::max(0.0, double(levels[d][k].during) - double(targets[d]));
  return sum;
}

double SequenceMemory::reorder(uint32_t begin,
                               const std::vector<uint32_t> &part,
                               const std::vector<uint64_t> &targets) {
  const uint32_t end = begin + uint32_t(part.size());
  const double was = excess(begin, end, targets);
  beforeBegin = begin;
  before.assign(sequence.begin() + begin, sequence.begin() + end);
  put(begin, part);
  measure(begin, end);
  return excess(begin, end, targets) - was;
}

void SequenceMemory::undo() {
  put(beforeBegin, before);
  measure(beforeBegin, beforeBegin + uint32_t(before.size()));
}

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

static constexpr uint32_t proofCandidates = 12;

Error frozenDoesNotFit(const Problem &problem, const Dag &dag,
                       const std::vector<uint32_t> &lowest) {
  const uint64_t limit = problem.devices[0].memoryBytes;
  MemoryBound proof = memoryBound(problem, 0, lowest, proofCandidates, limit);
  auto gb = [](uint64_t bytes) { return double(bytes) / 1e9; };
  const uint64_t least = sequencePeakBytes(problem, lowest)[0];
  if (proof.bytes <= limit)
    return {
        ErrorKind::Invalid,
        fmt::format("no plan was found that fits {:.3f} GB: the least "
                    "peak found is {:.3f} GB{}, and {:.3f} GB are proven "
                    "necessary; allow more memory",
                    gb(limit), gb(least),
                    least <= limit ? " with gaps in the arena beside it" : "",
                    gb(proof.bytes))};
  std::string largest;
  for (size_t k = 0; k < proof.live.size() && k < 5; ++k) {
    uint32_t node = problem.users[proof.live[k]].front();
    largest += fmt::format("{}{} \"{}\" ({:.3f} GB)", k ? ", " : "", node,
                           dag.nodes[node].name,
                           gb(problem.buffers[proof.live[k]].bytes));
  }
  return {ErrorKind::Invalid,
          fmt::format("no schedule fits {:.3f} GB: when node {} \"{}\" starts, "
                      "at least {:.3f} GB are live in every order (a minimum "
                      "cut: {:.3f} GB resident, its output and {} others, the "
                      "largest of nodes {}); {:.3f} GB are missing",
                      gb(limit), proof.node, dag.nodes[proof.node].name,
                      gb(proof.bytes), gb(problem.devices[0].residentBytes),
                      proof.live.size(), largest, gb(proof.bytes - limit))};
}

/// The buffers that are live where the plan's arena is fullest, on the device
/// that exceeds the limit most.
static Error arenaTooLarge(const Plan &plan, const Dag &dag, uint64_t limit) {
  size_t worst = 0;
  for (size_t d = 0; d < plan.arenaBytes.size(); ++d)
    if (plan.arenaBytes[d] > plan.arenaBytes[worst])
      worst = d;
  constexpr size_t never = SIZE_MAX;
  std::vector<size_t> first(dag.buffers.size(), never),
      last(dag.buffers.size(), 0);
  for (size_t s = 0; s < plan.steps.size(); ++s)
    for (const BufferUse &use : dag.node(plan.steps[s].node).uses) {
      first[use.buffer.value] = std::min(first[use.buffer.value], s);
      last[use.buffer.value] = s;
    }
  auto isLive = [&](size_t b, size_t s) {
    const Buffer &buffer = dag.buffers[b];
    if (!isInArena(buffer) || size_t(buffer.device.value) != worst)
      return false;
    return buffer.role == BufferRole::Resident || first[b] == never ||
           (first[b] <= s && s <= last[b]);
  };
  std::vector<int64_t> change(plan.steps.size() + 2, 0);
  for (size_t b = 0; b < dag.buffers.size(); ++b) {
    const Buffer &buffer = dag.buffers[b];
    if (!isInArena(buffer) || size_t(buffer.device.value) != worst)
      continue;
    bool always = buffer.role == BufferRole::Resident || first[b] == never;
    change[always ? 0 : first[b]] += int64_t(buffer.sizeBytes);
    change[always ? plan.steps.size() : last[b] + 1] -=
        int64_t(buffer.sizeBytes);
  }
  int64_t live = 0, most = 0;
  size_t at = 0;
  for (size_t s = 0; s < plan.steps.size(); ++s)
    if ((live += change[s]) > most) {
      most = live;
      at = s;
    }
  std::vector<size_t> buffers;
  for (size_t b = 0; b < dag.buffers.size(); ++b)
    if (isLive(b, at))
      buffers.push_back(b);
  std::sort(buffers.begin(), buffers.end(), [&](size_t a, size_t b) {
    return std::pair(dag.buffers[b].sizeBytes, a) <
           std::pair(dag.buffers[a].sizeBytes, b);
  });
  std::string largest;
  for (size_t k = 0; k < buffers.size() && k < 5; ++k)
    largest += fmt::format("{}\"{}\" ({} bytes)", k ? ", " : "",
                           dag.buffers[buffers[k]].name,
                           dag.buffers[buffers[k]].sizeBytes);
  const DagNode &node = dag.node(plan.steps[at].node);
  uint64_t needed = plan.arenaBytes[worst] + dag.residentBytes;
  return {ErrorKind::Invalid,
          fmt::format("no plan found fits {} bytes: the smallest arena of "
                      "device {} is {} bytes, {} are missing; most is live at "
                      "node {} \"{}\"{}{}: {} bytes in {} buffers, the largest "
                      "{}; use more devices or smaller buffers",
                      limit, worst, needed, needed - limit,
                      plan.steps[at].node.value, node.name,
                      node.location.empty() ? "" : " at ", node.location, most,
                      buffers.size(), largest)};
}

Error doesNotFit(std::span<const PhaseProblem> phases, const Plan &smallest,
                 const Dag &dag, uint64_t limit) {
  Error error = arenaTooLarge(smallest, dag, limit);
  for (const PhaseProblem &phase : phases)
    for (uint32_t d = 0; d < phase.problem.devices.size(); ++d) {
      const MemoryBound bound =
          memoryBound(phase.problem, d, lowMemoryOrder(phase.problem),
                      proofCandidates, limit);
      if (bound.bytes <= limit)
        continue;
      const DagNode &node = dag.node(phase.nodes[bound.node]);
      error.message = fmt::format(
          "no schedule fits {} bytes: when \"{}\"{}{} starts, {} bytes of "
          "device {} are live in every order; {}",
          limit, node.name, node.location.empty() ? "" : " at ", node.location,
          bound.bytes, d, error.message);
      return error;
    }
  return error;
}

} // namespace mgpu::planner::search
