// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/PlanDiff.h"
#include "planner/schedule/list/Schedulers.h"
#include "tests/unit/planner/RandomDag.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

TEST(PlanDiff, ReadsAPlanWithoutItsProgram) {
  Machine model = hostModel();
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Dag dag = randomDag(seed);
    dag.nodes[0].name = "a \"quoted\\ \x01 name";
    Plan plan = *schedule(dag, model, {"shuffled", seed});
    plan.transforms = {"copies", "bucket"};
    std::string text = toText(plan, dag);
    Result<PlanAlone> alone = parsePlanAlone(text);
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(toText(alone->plan, alone->dag), text);
    EXPECT_EQ(*parsePlanTransforms(text), plan.transforms);
    PlanDiff same = diffPlans(*alone, *alone);
    EXPECT_TRUE(same.changes.empty());
    EXPECT_EQ(same.same, plan.steps.size());
  }
  EXPECT_FALSE(parsePlanAlone("mgpu-plan 1\nstep 99999999 \"x\" on 0.0\n"));
  EXPECT_FALSE(parsePlanAlone(""));
}

TEST(PlanDiff, SaysWhatMoved) {
  Dag dag;
  dag.numDevices = 1;
  for (const char *name : {"a", "b", "c"}) {
    DagNode node;
    node.name = name;
    node.devices = {{0}};
    node.work = OpaqueCall{};
    node.durationUs = 10;
    dag.nodes.push_back(node);
  }
  Machine model = hostModel();
  PlanAlone a{*schedule(dag, model, {"serial"}), dag}, b = a;
  std::swap(b.plan.steps[1], b.plan.steps[2]);
  std::swap(b.plan.steps[1].startUs, b.plan.steps[2].startUs);
  b.dag.nodes[0].name = "z";
  PlanDiff diff = diffPlans(a, b);
  EXPECT_EQ(diff.onlyInA, std::vector<std::string>{"a"});
  EXPECT_EQ(diff.onlyInB, std::vector<std::string>{"z"});
  ASSERT_EQ(diff.changes.size(), 2u);
  EXPECT_EQ(diff.changes[0].name, "b");
  EXPECT_DOUBLE_EQ(diff.changes[0].startUs, 10);
  EXPECT_DOUBLE_EQ(diff.changes[1].startUs, -10);
  EXPECT_NE(toText(diff).find("\"b\" starts at 20.000 instead of 10.000 us"),
            std::string::npos);
  b = a;
  b.plan.steps[2].durationUs = 12;
  diff = diffPlans(a, b);
  ASSERT_EQ(diff.changes.size(), 1u);
  EXPECT_EQ(diff.changes[0].durationUs, 2);
  EXPECT_EQ(diff.same, 2u);
}
