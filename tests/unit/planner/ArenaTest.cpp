// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/DagBuilder.h"
#include "planner/plan/ArenaLayout.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

/// `length` kernels on device 0, each reading the output of the one before.
static Dag chain(int length, uint64_t bytes, BufferRole role) {
  Dag dag;
  dag.numDevices = 1;
  DependencyTracker tracker(dag);
  for (int i = 0; i < length; ++i) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(i);
    buffer.device = {0};
    buffer.role = role;
    buffer.sizeBytes = bytes;
    dag.buffers.push_back(buffer);
    DagNode node;
    node.name = "k" + std::to_string(i);
    node.devices = {{0}};
    node.work = OpaqueCall{};
    node.durationUs = 1;
    Box box = Box::flat(0, int64_t(bytes));
    if (i > 0)
      node.uses.push_back({BufferId{uint32_t(i - 1)}, box, true, false});
    node.uses.push_back({BufferId{uint32_t(i)}, box, false, true});
    tracker.append(node);
  }
  return dag;
}

TEST(Arena, AChainNeedsTwoBuffers) {
  Dag dag = chain(50, 1000, BufferRole::Temporary);
  Plan plan = *schedule(dag, hostModel());
  EXPECT_EQ(plan.arenaBytes[0], 2048u);
  ArenaLayout layout = layoutArena(plan, dag);
  EXPECT_EQ(layout.lowerBoundBytes[0], 2048u);
  EXPECT_DOUBLE_EQ(layout.worstRatio(), 1);
}

TEST(Arena, ResidentBuffersNeverShare) {
  Dag dag = chain(50, 1000, BufferRole::Resident);
  Plan plan = *schedule(dag, hostModel());
  EXPECT_EQ(plan.arenaBytes[0], 50u * 1024);
}

TEST(Arena, BuffersOfTheLoadPhaseNeverShare) {
  Dag dag = chain(6, 1000, BufferRole::Temporary);
  dag.nodes[0].phase = dag.nodes[1].phase = Phase::Load;
  Plan plan = *schedule(dag, hostModel());
  EXPECT_TRUE(verify(plan, dag));
  // b0 and b1 are touched at load; b2 .. b5 take turns.
  EXPECT_EQ(plan.arenaBytes[0], 4u * 1024);
}

// Two chains whose predicted times never meet, but which nothing orders.
TEST(Arena, PredictedTimesAreNotTrusted) {
  Dag dag = chain(2, 1000, BufferRole::Temporary);
  dag.edges.clear();
  dag.nodes[0].uses.resize(1);
  dag.nodes[1].uses.erase(dag.nodes[1].uses.begin());
  Plan plan = *schedule(dag, hostModel());
  ASSERT_EQ(plan.arenaBytes[0], 1024u) << "one stream orders them";
  plan.steps[1].streams[0].stream.value = 1;
  EXPECT_FALSE(verify(plan, dag));
  EXPECT_EQ(layoutArena(plan, dag).arenaBytes[0], 2048u);
}

TEST(Arena, RandomPlansStayAboveTheirBound) {
  double worst = 1;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Dag dag = randomDag(seed);
    Plan plan = *schedule(dag, hostModel(), {"shuffled", seed});
    ArenaLayout layout = layoutArena(plan, dag);
    for (size_t d = 0; d < layout.arenaBytes.size(); ++d)
      ASSERT_GE(layout.arenaBytes[d], layout.lowerBoundBytes[d]);
    worst = std::max(worst, layout.worstRatio());
  }
  EXPECT_LT(worst, 4);
}
