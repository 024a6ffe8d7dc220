// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/PlanBuilder.h"

#include <algorithm>

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

std::vector<OrderedStep> programOrder(const Dag &dag, uint32_t streams,
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

} // namespace mgpu::planner
