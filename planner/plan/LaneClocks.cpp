// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/LaneClocks.h"

#include "support/Assert.h"

#include <algorithm>
#include <set>

namespace mgpu::planner {

LaneClocks::LaneClocks(size_t numSteps, size_t maxLanes)
    : numLanes(maxLanes), clocks(numSteps * maxLanes, 0), homeLane(numSteps),
      homeCount(numSteps), lastOnLane(maxLanes, -1) {}

LaneClocks LaneClocks::of(const Plan &plan, const Dag &dag) {
  std::set<Lane> lanes;
  std::vector<StepIndex> stepOf(dag.nodes.size(), 0);
  for (StepIndex s = 0; s < plan.steps.size(); ++s) {
    lanes.insert(plan.steps[s].lanes.begin(), plan.steps[s].lanes.end());
    stepOf[plan.steps[s].node.value] = s;
  }
  LaneClocks result(plan.steps.size(), lanes.size());
  for (const PlanStep &step : plan.steps) {
    result.begin(step.lanes);
    for (NodeId wait : step.waits)
      result.join(stepOf[wait.value]);
    result.end();
  }
  return result;
}

void LaneClocks::begin(std::span<const Lane> lanes) {
  lanesOfStep.clear();
  for (Lane lane : lanes)
    lanesOfStep.push_back(
        laneIndex.try_emplace(lane, uint32_t(laneIndex.size())).first->second);
  MGPU_ASSERT(laneIndex.size() <= numLanes, "lanes are counted beforehand");
  for (uint32_t lane : lanesOfStep)
    if (lastOnLane[lane] >= 0)
      join(StepIndex(lastOnLane[lane]));
}

void LaneClocks::join(StepIndex earlier) {
  MGPU_ASSERT(earlier < numDone, "a step joins steps that have ended");
  uint32_t *mine = row(numDone);
  const uint32_t *theirs = row(earlier);
  for (size_t lane = 0; lane < numLanes; ++lane)
    mine[lane] = std::max(mine[lane], theirs[lane]);
}

void LaneClocks::end() {
  uint32_t *mine = row(numDone);
  for (uint32_t lane : lanesOfStep) {
    ++mine[lane];
    lastOnLane[lane] = numDone;
  }
  homeLane[numDone] = lanesOfStep.front();
  homeCount[numDone] = mine[lanesOfStep.front()];
  ++numDone;
}

} // namespace mgpu::planner
