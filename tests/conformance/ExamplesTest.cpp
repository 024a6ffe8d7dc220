// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every example gives the same bits under every legal plan, on one thread and
// on two.
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/Execute.h"
#include "tests/unit/Sweep.h"

#include "pipeline/compiler/KernelBuild.h"
#include "planner/plan/Verify.h"

#include <gtest/gtest.h>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

constexpr uint32_t numShuffles = 200;

class ExamplePlans : public testing::TestWithParam<Example> {};

TEST_P(ExamplePlans, AllGiveTheSameBits) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_EQ(textFault({dag, outcome.arguments, outcome.results, {}, {}}), "");
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;

  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  // Two replays: the second starts from what the first left behind.
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  ASSERT_NE(difference(*inputs, *expected), "") << "it computes nothing";

  std::vector<std::string> schedulers{"serial", "list"};
  for (uint32_t seed = 0; seed < numShuffles; ++seed)
    schedulers.push_back(std::to_string(seed));
  for (const std::string &scheduler : schedulers) {
    auto plan = makePlan(dag, scheduler);
    ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
    for (uint32_t threads : {1, 2}) {
      auto got = execute(dag, *plan, *objects, *inputs, threads, 2);
      ASSERT_TRUE(got) << scheduler << ": " << got.error().message;
      ASSERT_EQ(difference(*expected, *got), "")
          << "scheduler " << scheduler << " on " << threads << " threads";
    }
  }
}

TEST_P(ExamplePlans, TransformsKeepEveryBit) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;
  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  auto all = transformed(dag);
  ASSERT_TRUE(all) << all.error().message;
  for (const Transformed &each : *all)
    for (const char *scheduler : {"serial", "list", "1", "2", "3", "4", "5"}) {
      auto plan = makePlan(each.dag, scheduler);
      ASSERT_TRUE(plan) << each.name << ": " << plan.error().message;
      auto got = execute(each.dag, *plan, *objects, *inputs, 2, 2);
      ASSERT_TRUE(got) << each.name << ": " << got.error().message;
      ASSERT_EQ(difference(*expected, *got), "")
          << each.name << ", scheduler " << scheduler;
    }
}

// Every kernel under random legal configurations.
TEST_P(ExamplePlans, KernelsOfAnyShapeGiveTheSameBits) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;
  auto plan = makePlan(dag, "list");
  ASSERT_TRUE(plan) << plan.error().message;
  auto expected = execute(dag, *plan, *objects, *inputs, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  std::vector<Dim3> grids = planner::largestGrids(dag);
  std::vector<std::vector<kernels::KernelConfig>> legal;
  std::vector<kernels::KernelSpace> spaces;
  for (size_t k = 0; k < grids.size(); ++k) {
    auto space = kernels::kernelSpaceOf(dag.kernels[k], grids[k],
                                        kernels::KernelTarget::Host);
    ASSERT_TRUE(space) << space.error().message;
    spaces.push_back(*space);
    legal.push_back(space->legal());
    EXPECT_GT(legal.back().size(), 1u) << dag.kernels[k].name;
  }
  std::mt19937 random(7);
  for (int round = 0; round < int(sweep(1, 3)); ++round) {
    std::string chosen;
    for (size_t k = 0; k < grids.size(); ++k) {
      const kernels::KernelConfig &config =
          legal[k][random() % legal[k].size()];
      auto build = kernels::buildHostKernel(dag.kernels[k], spaces[k], config);
      ASSERT_TRUE(build) << build.error().message;
      (*objects)[k] = std::move(build->object);
      chosen += dag.kernels[k].name + ": " + toText(config) + "\n";
    }
    auto got = execute(dag, *plan, *objects, *inputs, 2);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(difference(*expected, *got), "") << chosen;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExamplePlans, testing::ValuesIn(allExamples()),
                         exampleName);

} // namespace
