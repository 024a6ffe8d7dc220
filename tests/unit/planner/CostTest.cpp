// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/TargetMachine.h"

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

/// Ten operations, two bytes of memory and four of a link in a microsecond.
static Machine slowHost() {
  device::Topology host = hostMachine().topology();
  host.device.flopsPerSecond = 10e6;
  host.device.memoryBytesPerSecond = 2e6;
  host.link.bytesPerSecond = 4e6;
  return Machine(host);
}

TEST(Roofline, TakesTheSlowerOfArithmeticAndMemory) {
  const Machine model = slowHost();
  DagNode node;
  node.work = OpaqueCall{};
  node.flops = 100;
  node.bytesRead = 4;
  node.bytesWritten = 6;
  EXPECT_DOUBLE_EQ(model.durationUs(oneNode(node, 1), NodeId{0}), 10.1);
  node.bytesRead = 34;
  EXPECT_DOUBLE_EQ(model.durationUs(oneNode(node, 1), NodeId{0}), 20.1);
  node.durationUs = 7;
  EXPECT_DOUBLE_EQ(model.durationUs(oneNode(node, 1), NodeId{0}), 7);
}

TEST(Roofline, CollectivesFollowTheRing) {
  const Machine model = slowHost();
  auto us = [&](CollectiveKind kind, uint32_t ranks) {
    DagNode node;
    node.work = OpaqueCall{true, kind, 800};
    return model.durationUs(oneNode(node, ranks), NodeId{0});
  };
  EXPECT_DOUBLE_EQ(us(CollectiveKind::AllReduce, 4), 0.1 + 6 * 0.5 + 1.5 * 200);
  EXPECT_DOUBLE_EQ(us(CollectiveKind::AllGather, 4),
                   0.1 + 3 * 0.5 + 0.75 * 200);
  EXPECT_DOUBLE_EQ(us(CollectiveKind::SendRecv, 4), 0.1 + 0.5 + 200);
  EXPECT_DOUBLE_EQ(us(CollectiveKind::AllReduce, 1), 0.1 + 400);
}
