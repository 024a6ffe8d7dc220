// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/Schedulers.h"

#include "support/Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>

namespace mgpu::planner {

std::vector<std::vector<uint32_t>> placesOfCollectives(const Dag &dag) {
  std::vector<std::vector<uint32_t>> places(dag.nodes.size());
  // By phase and device: the last collective and all since. Phases follow each
  // other whole.
  std::vector<std::vector<uint32_t>> since(allPhases.size() *
                                           (size_t(dag.numDevices) + 1));
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    const DagNode &node = dag.nodes[i];
    for (DeviceId device : streamDevices(node)) {
      std::vector<uint32_t> &mine =
          since[size_t(node.phase) * (size_t(dag.numDevices) + 1) +
                size_t(device.value + 1)];
      if (workClass(node) == WorkClass::Collective) {
        places[i].insert(places[i].end(), mine.begin(), mine.end());
        mine.clear();
      }
      mine.push_back(i);
    }
    std::sort(places[i].begin(), places[i].end());
    places[i].erase(std::unique(places[i].begin(), places[i].end()),
                    places[i].end());
  }
  return places;
}

/// The program's own order, where the scheduler may not choose one.
static std::vector<OrderedStep> programOrder(const Dag &dag, uint32_t streams,
                                             bool early) {
  Successors successors(dag);
  Predecessors predecessors(dag);
  std::vector<uint32_t> missing(dag.nodes.size());
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    missing[i] = uint32_t(predecessors.of(NodeId{i}).size());
  std::vector<bool> done(dag.nodes.size(), false);
  std::vector<OrderedStep> order;
  order.reserve(dag.nodes.size());
  std::vector<uint32_t> ready; // collectives that wait for nothing any more
  auto append = [&](uint32_t i, Phase phase) {
    const DagNode &node = dag.nodes[i];
    const StreamId stream{
        std::min(streamOf(workClass(node)).value, streams - 1)};
    OrderedStep step{NodeId{i}, {}};
    for (DeviceId device : streamDevices(node))
      step.streams.push_back({device, stream});
    order.push_back(std::move(step));
    done[i] = true;
    for (NodeId next : successors.of(NodeId{i}))
      if (--missing[next.value] == 0 && early &&
          dag.node(next).phase == phase &&
          workClass(dag.node(next)) == WorkClass::Collective)
        ready.push_back(next.value);
  };
  for (Phase phase : allPhases) {
    for (uint32_t i = 0; early && i < dag.nodes.size(); ++i)
      if (dag.nodes[i].phase == phase && missing[i] == 0 &&
          workClass(dag.nodes[i]) == WorkClass::Collective)
        ready.push_back(i);
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      for (size_t k = 0; k < ready.size(); ++k) // it grows
        append(ready[k], phase);
      ready.clear();
      if (dag.nodes[i].phase == phase && !done[i])
        append(i, phase);
    }
    for (size_t k = 0; k < ready.size(); ++k)
      append(ready[k], phase);
    ready.clear();
  }
  return order;
}

namespace {

/// Walks simulated time from one end of a node to the next and starts, at each,
/// the ready nodes of the greatest priority that find their resources and
/// an idle stream on all their devices.
///
/// Ready nodes wait in one heap per footprint (class and devices): only the
/// head of a heap can be next, and only footprints on a device where something
/// ended are looked at. O((n + e) log n) for a fixed number of footprints.
class ListScheduler {
public:
  ListScheduler(const Dag &dag, const std::vector<double> &durations,
                const std::vector<double> &priorities, uint32_t streams,
                bool early)
      : dag(dag), durations(durations), priorities(priorities),
        streams(streams), predecessors(dag), successors(dag),
        missing(dag.nodes.size()), footprintOf(dag.nodes.size()),
        busy(numResources(dag), false),
        streamStates((size_t(dag.numDevices) + 1) * streams),
        footprintsOn(size_t(dag.numDevices) + 1) {
    if (early)
      return;
    behind.resize(dag.nodes.size());
    std::vector<std::vector<uint32_t>> places = placesOfCollectives(dag);
    for (uint32_t i = 0; i < places.size(); ++i)
      for (uint32_t before : places[i]) {
        behind[before].push_back(i);
        ++missing[i];
      }
  }

  std::vector<OrderedStep> run() {
    std::map<std::pair<WorkClass, std::vector<DeviceId>>, uint32_t> known;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      missing[i] += uint32_t(predecessors.of(NodeId{i}).size());
      auto devices = streamDevices(dag.nodes[i]);
      std::pair key(workClass(dag.nodes[i]),
                    std::vector<DeviceId>(devices.begin(), devices.end()));
      auto [it, fresh] =
          known.try_emplace(std::move(key), uint32_t(footprints.size()));
      footprintOf[i] = it->second;
      if (!fresh)
        continue;
      footprints.push_back({it->first.first, it->first.second, {}, false});
      for (DeviceId device : devices)
        footprintsOn[size_t(device.value + 1)].push_back(it->second);
    }
    for (Phase phase : allPhases)
      runPhase(phase);
    return std::move(order);
  }

private:
  /// The greatest priority first, then program order.
  struct Ready {
    double priority;
    uint32_t node;
    bool operator<(const Ready &other) const {
      return priority != other.priority ? priority < other.priority
                                        : node > other.node;
    }
  };
  struct Footprint {
    WorkClass work;
    std::vector<DeviceId> devices;
    std::priority_queue<Ready> ready;
    bool touched; ///< listed in `touchedFootprints`
  };
  struct StreamState {
    bool busy = false, used = false;
    NodeId last;
    uint32_t lastStep = 0;
  };
  struct End {
    double time;
    uint32_t node, step;
    bool operator>(const End &other) const {
      return time != other.time ? time > other.time : step > other.step;
    }
  };

  StreamState &stateOf(DeviceId device, uint32_t stream) {
    return streamStates[size_t(device.value + 1) * streams + stream];
  }
  void touch(uint32_t footprint) {
    if (!footprints[footprint].touched) {
      footprints[footprint].touched = true;
      touchedFootprints.push_back(footprint);
    }
  }
  void makeReady(uint32_t node) {
    footprints[footprintOf[node]].ready.push({priorities[node], node});
    touch(footprintOf[node]);
  }

  void runPhase(Phase phase) {
    now = 0; // no phase depends on how long the one before takes
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      if (dag.nodes[i].phase == phase && missing[i] == 0)
        makeReady(i);
    startTouched();
    while (!ends.empty()) {
      now = ends.top().time;
      while (!ends.empty() && ends.top().time <= now) {
        finish(ends.top(), phase);
        ends.pop();
      }
      startTouched();
    }
  }

  void finish(const End &end, Phase phase) {
    const Footprint &footprint = footprints[footprintOf[end.node]];
    for (size_t k = 0; k < footprint.devices.size(); ++k) {
      DeviceId device = footprint.devices[k];
      busy[resourceIndex(device, footprint.work)] = false;
      stateOf(device, order[end.step].streams[k].stream.value).busy = false;
      for (uint32_t neighbour : footprintsOn[size_t(device.value + 1)])
        touch(neighbour);
    }
    auto release = [&](uint32_t next) {
      if (--missing[next] == 0 && dag.nodes[next].phase == phase)
        makeReady(next);
    };
    for (NodeId next : successors.of(NodeId{end.node}))
      release(next.value);
    if (!behind.empty())
      for (uint32_t next : behind[end.node])
        release(next);
  }

  /// Resources only fill up here, so each footprint needs one look.
  void startTouched() {
    std::vector<Ready> heads;
    for (uint32_t index : touchedFootprints) {
      footprints[index].touched = false;
      if (!footprints[index].ready.empty())
        heads.push_back(footprints[index].ready.top());
    }
    touchedFootprints.clear();
    std::sort(heads.begin(), heads.end(),
              [](const Ready &a, const Ready &b) { return b < a; });
    for (const Ready &head : heads)
      if (canStart(footprints[footprintOf[head.node]])) {
        footprints[footprintOf[head.node]].ready.pop();
        start(head.node);
      }
  }

  bool canStart(const Footprint &footprint) {
    for (DeviceId device : footprint.devices) {
      if (busy[resourceIndex(device, footprint.work)])
        return false;
      bool idle = false;
      for (uint32_t stream = 0; stream < streams && !idle; ++stream)
        idle = !stateOf(device, stream).busy;
      if (!idle)
        return false;
    }
    return true;
  }

  /// Any idle stream lets the node start now. The class keeps to streams of its
  /// own while there are enough: then no kernel stands behind a collective that
  /// takes longer than predicted. Behind a predecessor no wait is needed.
  uint32_t pickStream(uint32_t node, DeviceId device, WorkClass work) {
    auto edges = predecessors.of(NodeId{node});
    uint32_t best = 0;
    std::tuple<int, uint32_t> bestRank(-1, 0);
    for (uint32_t stream = 0; stream < streams; ++stream) {
      const StreamState &state = stateOf(device, stream);
      if (state.busy)
        continue;
      int rank = 1;
      if (state.used) {
        bool sameClass = workClass(dag.node(state.last)) == work;
        auto it = std::lower_bound(
            edges.begin(), edges.end(), state.last,
            [](const DepEdge &edge, NodeId from) { return edge.from < from; });
        bool precedes = it != edges.end() && it->from == state.last;
        rank = sameClass ? (precedes ? 4 : 3) : (precedes ? 1 : 0);
      } else {
        rank = 2;
      }
      std::tuple key(rank, rank == 2 ? 0 : state.lastStep);
      if (key > bestRank) {
        bestRank = key;
        best = stream;
      }
    }
    return best;
  }

  void start(uint32_t node) {
    const Footprint &footprint = footprints[footprintOf[node]];
    uint32_t index = uint32_t(order.size());
    OrderedStep step{NodeId{node}, {}};
    for (DeviceId device : footprint.devices) {
      uint32_t stream = pickStream(node, device, footprint.work);
      stateOf(device, stream) = {true, true, NodeId{node}, index};
      busy[resourceIndex(device, footprint.work)] = true;
      step.streams.push_back({device, StreamId{stream}});
    }
    order.push_back(std::move(step));
    ends.push({now + durations[node], node, index});
  }

  const Dag &dag;
  const std::vector<double> &durations, &priorities;
  uint32_t streams;
  Predecessors predecessors;
  Successors successors;
  std::vector<uint32_t> missing; ///< predecessors not ended
  /// By node: collectives that keep their places behind it; empty where none
  /// must.
  std::vector<std::vector<uint32_t>> behind;
  std::vector<uint32_t> footprintOf;
  std::vector<Footprint> footprints;
  std::vector<bool> busy;
  std::vector<StreamState> streamStates;
  std::vector<std::vector<uint32_t>> footprintsOn; ///< by device, host first
  std::vector<uint32_t> touchedFootprints;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<OrderedStep> order;
  double now = 0;
};

} // namespace

std::vector<OrderedStep> listOrder(const Dag &dag,
                                   const std::vector<double> &durations,
                                   const std::vector<double> &priorities,
                                   uint32_t streams, bool early) {
  return ListScheduler(dag, durations, priorities, streams, early).run();
}

static std::vector<OrderedStep> serialOrder(const Dag &dag) {
  std::vector<OrderedStep> order;
  order.reserve(dag.nodes.size());
  for (Phase phase : allPhases)
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      if (dag.nodes[i].phase != phase)
        continue;
      OrderedStep step{NodeId{i}, {}};
      for (DeviceId device : streamDevices(dag.nodes[i]))
        step.streams.push_back({device, StreamId{0}});
      order.push_back(std::move(step));
    }
  return order;
}

static std::vector<OrderedStep> shuffledOrder(const Dag &dag, uint32_t streams,
                                              uint64_t seed) {
  Random random(seed);
  Predecessors predecessors(dag);
  Successors successors(dag);
  std::vector<uint32_t> missing(dag.nodes.size());
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    missing[i] = uint32_t(predecessors.of(NodeId{i}).size());

  std::vector<OrderedStep> order;
  order.reserve(dag.nodes.size());
  std::vector<uint32_t> ready;
  for (Phase phase : allPhases) {
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      if (dag.nodes[i].phase == phase && missing[i] == 0)
        ready.push_back(i);
    while (!ready.empty()) {
      size_t pick = random.below(ready.size());
      uint32_t node = ready[pick];
      ready[pick] = ready.back();
      ready.pop_back();
      OrderedStep step{NodeId{node}, {}};
      for (DeviceId device : streamDevices(dag.nodes[node]))
        step.streams.push_back(
            {device, StreamId{uint32_t(random.below(streams))}});
      order.push_back(std::move(step));
      for (NodeId next : successors.of(NodeId{node}))
        if (--missing[next.value] == 0 && dag.node(next).phase == phase)
          ready.push_back(next.value);
    }
  }
  return order;
}

Result<std::vector<OrderedStep>> orderOf(const Dag &dag,
                                         const LatencyEstimator &latency,
                                         const ScheduleOptions &options) {
  const uint32_t streams = options.streamsPerDevice;
  const auto [order, early, join] = options.schedulePolicy;
  if (options.scheduler == "serial")
    return serialOrder(dag);
  if (options.scheduler == "shuffled")
    return shuffledOrder(dag, streams, options.seed);
  if (!order)
    return programOrder(dag, streams, early);
  MGPU_TRY_ASSIGN(std::vector<double> durations, nodeDurations(dag, latency));
  std::vector<double> priorities = longestPaths(dag, durations).tail;
  for (size_t i = 0; i < priorities.size(); ++i)
    priorities[i] += durations[i];
  return listOrder(dag, durations, priorities, streams, early);
}

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

std::vector<AlgorithmChoice> chooseAlgorithms(const Dag &dag,
                                              const Machine &machine) {
  std::vector<AlgorithmChoice> choices;
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    if (workClass(dag.nodes[i]) != WorkClass::Collective)
      continue;
    std::vector<NcclTime> times = machine.algorithms(dag, NodeId{i});
    if (times.empty())
      continue;
    AlgorithmChoice choice{NodeId{i}, times[0], std::nullopt,
                           machine.estimate(dag, NodeId{i}).how};
    if (times.size() > 1)
      choice.next = times[1];
    choices.push_back(std::move(choice));
  }
  return choices;
}

void recordAlgorithms(Plan &plan, const std::vector<AlgorithmChoice> &choices) {
  std::map<NodeId, CollectiveAlgorithm> byNode;
  for (const AlgorithmChoice &choice : choices)
    byNode.emplace(choice.node, choice.best.algorithm);
  for (PlanStep &step : plan.steps)
    if (auto it = byNode.find(step.node); it != byNode.end())
      step.algorithm = it->second;
}

std::string explainAlgorithms(const std::vector<AlgorithmChoice> &choices,
                              const Dag &dag, const Machine &machine) {
  auto words = [](CollectiveAlgorithm algorithm) {
    return fmt::format("{} {}", toString(algorithm.shape),
                       toString(algorithm.protocol));
  };
  std::map<std::string, uint32_t> lines;
  for (const AlgorithmChoice &choice : choices) {
    auto call = machine.asked(dag, dag.node(choice.node));
    std::string line =
        fmt::format("{} of {} bytes over {}: {}, {:.3f} us by NCCL's estimate",
                    toString(call->kind), uint64_t(call->bytes), call->ranks,
                    words(choice.best.algorithm), choice.best.us);
    if (choice.next)
      line += fmt::format("; next {}, {:+.3f} us ({:+.1f} %)",
                          words(choice.next->algorithm),
                          choice.next->us - choice.best.us,
                          100 * (choice.next->us / choice.best.us - 1));
    ++lines[line + fmt::format("; its duration: {}", choice.durationFrom)];
  }
  std::vector<std::pair<uint32_t, std::string>> sorted;
  for (const auto &[line, count] : lines)
    sorted.emplace_back(count, line);
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  std::string out;
  for (const auto &[count, line] : sorted)
    out += fmt::format("algorithm of {} {}\n", count, line);
  return out;
}

} // namespace mgpu::planner
