// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/PlanBuilder.h"

#include "support/Random.h"

namespace mgpu::planner {

Result<Plan> scheduleShuffled(const Dag &dag, const LatencyEstimator &latency,
                              uint64_t seed, const ScheduleOptions &options) {
  MGPU_TRY_ASSIGN(uint32_t streams,
                  checkInput(dag, options.streamsPerDevice, options));
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
  ScheduleOptions free = options;
  free.schedulePolicy = {};
  return finishPlan("shuffled", std::move(order), streams,
                    WaitPolicy::Dependences, dag, latency, free);
}

} // namespace mgpu::planner
