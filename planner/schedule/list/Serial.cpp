// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/list/PlanBuilder.h"

namespace mgpu::planner {

Result<Plan> scheduleSerial(const Dag &dag, const LatencyEstimator &latency,
                            const ScheduleOptions &options) {
  MGPU_TRY_ASSIGN(uint32_t streams, checkInput(dag, 1, options));
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
  return finishPlan("serial", std::move(order), streams, WaitPolicy::Everything,
                    dag, latency, options);
}

} // namespace mgpu::planner
