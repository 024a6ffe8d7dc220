// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "tests/unit/report/TestReport.h"

namespace mgpu::tuner {
namespace {

using planner::PlanStream;
using planner::WorkClass;

TEST(Exposed, IsCommunicationWithNoKernelOnItsDevice) {
  // Device 0 computes to 4, device 1 from 6 to 7; the sum runs from 2 to 10.
  std::vector<Exposed> found = exposedStretches(*testFacts().before);
  EXPECT_EQ(found,
            (std::vector<Exposed>{{1, 0, 4, 10}, {1, 1, 2, 6}, {1, 1, 7, 10}}));
}

TEST(Exposed, CountsOverlappingKernelsOnce) {
  Timeline timeline;
  auto kernel = [&](double from, double to) {
    timeline.steps.push_back(
        {0, "k", "", WorkClass::Kernel, {PlanStream{{0}, {0}}}, from, to});
  };
  kernel(5, 6);
  kernel(1, 4);
  kernel(2, 3);
  kernel(4, 5);
  timeline.steps.push_back(
      {1, "c", "", WorkClass::Copy, {PlanStream{{0}, {1}}}, 0, 7});
  timeline.steps.push_back(
      {2, "h", "", WorkClass::Copy, {PlanStream{DeviceId::host(), {0}}}, 0, 7});
  EXPECT_EQ(exposedStretches(timeline),
            (std::vector<Exposed>{{4, 0, 0, 1}, {4, 0, 6, 7}}));
}

planner::Dag twoNodes() {
  planner::Dag dag;
  dag.numDevices = 1;
  for (int k = 0; k < 2; ++k) {
    planner::DagNode &node = dag.nodes.emplace_back();
    node.name = "n" + std::to_string(k);
    node.devices = {DeviceId{0}};
    node.work = planner::KernelCall{{0}, {1, 1, 1}, {}};
  }
  return dag;
}

TEST(DescribeReplay, TakesMeasuredTimesAndDoubtsThem) {
  planner::Dag dag = twoNodes();
  dag.kernels.emplace_back().name = "k";
  planner::Plan plan;
  plan.steps = {{{0}, {PlanStream{{0}, {0}}}, {}, 10, 5},
                {{1}, {PlanStream{{0}, {1}}}, {}, 15, 5}};
  plan.lowerBoundUs = 9;
  Timeline predicted = describeReplay(dag, plan, {});
  EXPECT_FALSE(predicted.isMeasured);
  EXPECT_EQ(predicted.plan, plan.verdictLine());
  EXPECT_EQ(predicted.boundUs, 9);
  ProgramFacts facts;
  facts.before = predicted;
  EXPECT_EQ(factsFromJson(toJson(facts)), facts);
  EXPECT_EQ(predicted.steps.at(1).startUs, 5); // from the first step on
  const capture::NodeSpan spans[] = {
      {{1}, 0, 2, 3}, {{9}, 0, 0, 1}, {{0}, 0, 5, 4}};
  Timeline measured = describeReplay(dag, plan, spans);
  EXPECT_TRUE(measured.isMeasured);
  ASSERT_EQ(measured.steps.size(),
            1u); // no node 9; node 0 ends before it began
  EXPECT_EQ(measured.steps[0].name, "n1");
  EXPECT_EQ(measured.steps[0].endUs, 1);
  EXPECT_TRUE(measured.hasPlanned);
  EXPECT_EQ(measured.steps[0].plannedEndUs, 5);
}

TEST(DescribeProgram, CountsWhatAReplayDoes) {
  planner::Dag dag = twoNodes();
  dag.kernels.resize(1);
  dag.loop.trips = 3;
  dag.nodes[0].flops = 10;
  dag.nodes[0].bytesRead = 100;
  dag.nodes[1].phase = planner::Phase::Epilogue;
  dag.nodes[1].flops = 7;
  dag.nodes[1].bytesWritten = 200;
  const KernelFacts kernel = describeProgram(dag, {}).kernels.at(0);
  EXPECT_EQ(kernel.launches, 3u); // the epilogue's is not timed
  EXPECT_EQ(kernel.flops, 30);
  EXPECT_EQ(kernel.bytes, 300);
  EXPECT_EQ(kernel.bytesTouched, 100);
}

} // namespace
} // namespace mgpu::tuner
