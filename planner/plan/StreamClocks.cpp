// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/StreamClocks.h"

#include "support/Assert.h"

#include <algorithm>
#include <set>

namespace mgpu::planner {

StreamClocks::StreamClocks(size_t numSteps, size_t maxStreams)
    : numStreams(maxStreams), clocks(numSteps * maxStreams, 0),
      homeStream(numSteps), homeCount(numSteps), lastOnStream(maxStreams, -1) {}

StreamClocks StreamClocks::of(const Plan &plan, const Dag &dag) {
  std::set<PlanStream> streams;
  std::vector<StepIndex> stepOf(dag.nodes.size(), 0);
  for (StepIndex s = 0; s < plan.steps.size(); ++s) {
    streams.insert(plan.steps[s].streams.begin(), plan.steps[s].streams.end());
    stepOf[plan.steps[s].node.value] = s;
  }
  StreamClocks result(plan.steps.size(), streams.size());
  for (const PlanStep &step : plan.steps) {
    result.begin(step.streams);
    for (NodeId wait : step.waits)
      result.join(stepOf[wait.value]);
    result.end();
  }
  return result;
}

void StreamClocks::begin(std::span<const PlanStream> streams) {
  streamsOfStep.clear();
  for (PlanStream stream : streams)
    streamsOfStep.push_back(
        streamIndex.try_emplace(stream, uint32_t(streamIndex.size()))
            .first->second);
  MGPU_ASSERT(streamIndex.size() <= numStreams,
              "streams are counted beforehand");
  for (uint32_t stream : streamsOfStep)
    if (lastOnStream[stream] >= 0)
      join(StepIndex(lastOnStream[stream]));
}

void StreamClocks::join(StepIndex earlier) {
  MGPU_ASSERT(earlier < numDone, "a step joins steps that have ended");
  uint32_t *mine = row(numDone);
  const uint32_t *theirs = row(earlier);
  for (size_t stream = 0; stream < numStreams; ++stream)
    mine[stream] = std::max(mine[stream], theirs[stream]);
}

void StreamClocks::end() {
  uint32_t *mine = row(numDone);
  for (uint32_t stream : streamsOfStep) {
    ++mine[stream];
    lastOnStream[stream] = numDone;
  }
  homeStream[numDone] = streamsOfStep.front();
  homeCount[numDone] = mine[streamsOfStep.front()];
  ++numDone;
}

} // namespace mgpu::planner
