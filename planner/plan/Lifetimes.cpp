// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/Lifetimes.h"

#include <algorithm>

namespace mgpu::planner {

Floors::Floors(const StreamClocks &clocks, size_t steps)
    : streams(clocks.streamCount()),
      floors((steps / apart + 1) * streams, UINT32_MAX) {
  std::vector<uint32_t> least(streams, UINT32_MAX);
  for (size_t s = steps; s-- > 0;) {
    std::span<const uint32_t> clock = clocks.of(s);
    for (size_t stream = 0; stream < streams; ++stream)
      // The step itself is not before the step.
      least[stream] = std::min(
          least[stream], clock[stream] - (stream == clocks.home(s) ? 1 : 0));
    if (s % apart == 0)
      std::copy(least.begin(), least.end(),
                floors.begin() + long(s / apart * streams));
  }
}

Lifetimes::Lifetimes(const Plan &plan, const Dag &dag)
    : clocks(StreamClocks::of(plan, dag)), floors(clocks, plan.steps.size()),
      exclusive(dag.buffers.size()) {
  for (uint32_t id = 0; id < dag.buffers.size(); ++id)
    exclusive[id] = dag.buffers[id].role != BufferRole::Temporary;
  std::vector<Rows<uint32_t>::Entry> entries;
  for (uint32_t s = 0; s < plan.steps.size(); ++s) {
    const DagNode &node = dag.node(plan.steps[s].node);
    for (const BufferUse &use : node.uses) {
      entries.emplace_back(use.buffer.value, s);
      if (node.phase != Phase::Replay)
        exclusive[use.buffer.value] = true;
    }
  }
  stepsOf = Rows<uint32_t>(uint32_t(dag.buffers.size()), entries);
  // A buffer nothing uses has no lifetime to reason about.
  for (uint32_t id = 0; id < dag.buffers.size(); ++id)
    if (stepsOf[id].empty())
      exclusive[id] = true;
}

} // namespace mgpu::planner
