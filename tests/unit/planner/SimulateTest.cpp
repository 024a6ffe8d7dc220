// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/Simulate.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "tests/unit/planner/Machines.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

TEST(Simulate, WithoutContentionGivesThePlansOwnTimes) {
  Machine model = hostModel();
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Dag dag = randomDag(seed);
    Plan plan = seed % 2 ? *schedule(dag, model)
                         : *schedule(dag, model, {"shuffled", seed});
    Simulation played = simulate(plan, dag, {});
    EXPECT_NEAR(played.makespanUs, plan.makespanUs, 1e-6) << seed;
    for (size_t s = 0; s < plan.steps.size(); ++s)
      EXPECT_NEAR(played.startUs[s], plan.steps[s].startUs, 1e-6) << seed;
  }
}

/// A kernel of 10 us beside a collective of 6, then one of 4 alone.
static Dag kernelBesideCollective() {
  Dag dag;
  dag.numDevices = 1;
  for (double us : {10.0, 6.0, 4.0}) {
    DagNode node;
    node.name = "n" + std::to_string(int(us));
    node.devices = {{0}};
    node.durationUs = us;
    node.work = OpaqueCall{us == 6, CollectiveKind::AllReduce, 0, 1};
    dag.nodes.push_back(node);
  }
  return dag;
}

TEST(Simulate, SlowsWhatRunsTogetherOnlyWhileItDoes) {
  Dag dag = kernelBesideCollective();
  Machine model = hostModel();
  Plan plan = *schedule(dag, model);
  ASSERT_DOUBLE_EQ(plan.makespanUs, 14);
  Contention contention;
  contention.factor[size_t(WorkClass::Kernel)][size_t(WorkClass::Collective)] =
      2;
  // 6 us give the kernels 3 us of their 14.
  EXPECT_NEAR(simulate(plan, dag, contention).makespanUs, 17, 1e-9);
  contention.factor[size_t(WorkClass::Collective)][size_t(WorkClass::Kernel)] =
      1.5;
  // Now the collective takes 9, and gives them 4.5.
  EXPECT_NEAR(simulate(plan, dag, contention).makespanUs, 18.5, 1e-9);
}

TEST(Simulate, NoiseSpreadsAndRepeats) {
  Dag dag = kernelBesideCollective();
  Machine model = hostModel();
  Plan plan = *schedule(dag, model);
  std::vector<double> none = simulateNoise(plan, dag, {}, 0, 5, 1);
  EXPECT_NEAR(none.front(), 14, 1e-9);
  EXPECT_NEAR(none.back(), 14, 1e-9);
  std::vector<double> some = simulateNoise(plan, dag, {}, 0.1, 400, 1);
  EXPECT_EQ(some, simulateNoise(plan, dag, {}, 0.1, 400, 1));
  EXPECT_NEAR(some[200], 14, 0.3);
  EXPECT_GT(some[380], 15);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
}

TEST(TargetPlan, IsNeverWorseThanItsCandidatesAndRepeats) {
  Machine model = estimatorOf("dgx-h200");
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Dag dag = randomDag(seed);
    auto plan = [&] {
      exact::Budget budget(1e6, 40);
      PlanRequest options;
      options.seed = seed;
      options.transforms = {TransformKind::Algorithm};
      Result<TargetPlan> result = makePlan(dag, model, options, &budget);
      EXPECT_TRUE(result) << result.error().message;
      return *result;
    };
    TargetPlan made = plan();
    EXPECT_TRUE(verify(made.plan, dag));
    EXPECT_EQ(toText(made.plan, dag), toText(plan().plan, dag));
    EXPECT_LE(made.contendedUs, made.serialUs * (1 + 1e-9));
    Contention contention = contentionOf(model.topology());
    EXPECT_LE(made.contendedUs,
              simulate(*schedule(dag, model), dag, contention).makespanUs);
    EXPECT_GE(made.contendedUs, made.plan.lowerBoundUs * (1 - 1e-9));
  }
}

// Two kernels that could hide a collective each, on a machine on which running
// together costs more than it hides.
TEST(TargetPlan, DoesNotForkWhereContentionLoses) {
  auto topology = device::openTopology("sim:pcie-l40s-4");
  ASSERT_TRUE(topology);
  // A copy and a collective over one PCIe link each take twice as long: side by
  // side gains nothing.
  Dag dag;
  dag.numDevices = 2;
  for (int k = 0; k < 4; ++k) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(k);
    buffer.device = {k % 2};
    buffer.sizeBytes = 1024;
    dag.buffers.push_back(buffer);
  }
  DagNode copy;
  copy.name = "copy";
  copy.devices = {{0}, {1}};
  Box box = Box::flat(0, 1024);
  copy.work = CopyCall{BufferId{0}, BufferId{1}, box, box};
  copy.uses = {{BufferId{0}, box, true, false},
               {BufferId{1}, box, false, true}};
  copy.durationUs = 10;
  dag.nodes.push_back(copy);
  DagNode reduce;
  reduce.name = "reduce";
  reduce.devices = {{0}, {1}};
  reduce.work = OpaqueCall{true, CollectiveKind::AllReduce, 1024, 2};
  reduce.durationUs = 10;
  dag.nodes.push_back(reduce);
  exact::Budget budget(1e6, 10);
  Result<TargetPlan> made = makePlan(dag, Machine(*topology), {}, &budget);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_NEAR(made->contendedUs, 20, 1e-9);
  EXPECT_NEAR(made->serialUs, 20, 1e-9);
}

TEST(TargetPlan, SaysWhatDoesNotFit) {
  Machine model = estimatorOf("dgx-h200");
  Dag dag = randomDag(5);
  exact::Budget budget(1e6, 5);
  PlanRequest options;
  options.memoryBytes = 16;
  Result<TargetPlan> made = makePlan(dag, model, options, &budget);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("are missing; most is live at node"),
            std::string::npos)
      << made.error().message;
  Dag wide = dag;
  wide.numDevices = 9;
  ASSERT_FALSE(makePlan(wide, model, {}, &budget));
}
