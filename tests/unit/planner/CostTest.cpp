// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/LatencyEstimator.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;

static Dag oneNode(DagNode node, uint32_t devices) {
  Dag dag;
  dag.numDevices = devices;
  dag.spmd = true;
  node.devices = {{0}};
  dag.nodes.push_back(std::move(node));
  return dag;
}

TEST(Roofline, TakesTheSlowerOfArithmeticAndMemory) {
  RooflineRates rates{10, 2, 4, 0.5, 3};
  RooflineEstimator model(rates, "test");
  DagNode node;
  node.work = OpaqueCall{};
  node.flops = 100;
  node.bytesRead = 4;
  node.bytesWritten = 6;
  EXPECT_DOUBLE_EQ(model.durationUs(oneNode(node, 1), NodeId{0}), 10.5);
  node.bytesRead = 34;
  EXPECT_DOUBLE_EQ(model.durationUs(oneNode(node, 1), NodeId{0}), 20.5);
  node.durationUs = 7;
  EXPECT_DOUBLE_EQ(model.durationUs(oneNode(node, 1), NodeId{0}), 7);
}

TEST(Roofline, CollectivesFollowTheRing) {
  RooflineRates rates{10, 2, 4, 0.5, 3};
  RooflineEstimator model(rates, "test");
  auto us = [&](CollectiveKind kind, uint32_t ranks) {
    DagNode node;
    node.work = OpaqueCall{true, kind, 800};
    return model.durationUs(oneNode(node, ranks), NodeId{0});
  };
  EXPECT_DOUBLE_EQ(us(CollectiveKind::AllReduce, 4), 0.5 + 6 * 3 + 1.5 * 200);
  EXPECT_DOUBLE_EQ(us(CollectiveKind::AllGather, 4), 0.5 + 3 * 3 + 0.75 * 200);
  EXPECT_DOUBLE_EQ(us(CollectiveKind::SendRecv, 4), 0.5 + 3 + 200);
  EXPECT_DOUBLE_EQ(us(CollectiveKind::AllReduce, 1), 0.5 + 400);
}
