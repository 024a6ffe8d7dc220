// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/GraphBuilder.h"

#include "TestProgram.h"
#include "device/host/HostDriver.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::capture;
using namespace mgpu::planner;

class GraphBuilding : public testing::Test {
protected:
  Result<ExecutableGraph> build(Phase phase = Phase::Replay) {
    BufferAddresses addresses;
    for (int32_t device : {0, 1})
      addresses.arenas.push_back(*driver->allocate({device}, 1024));
    for (const Buffer &buffer : program.dag.buffers)
      addresses.own.push_back(buffer.device.isHost()
                                  ? *driver->allocate({-1}, buffer.sizeBytes)
                                  : nullptr);
    std::vector<device::KernelHandle> kernels{
        *driver->loadKernel("axpy", program.kernels[0])};
    return buildGraph(program.plan, program.dag, phase, addresses, kernels,
                      *driver);
  }
  void expect(ErrorKind kind, const char *words) {
    auto graph = build();
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().kind, kind) << graph.error().message;
    EXPECT_NE(graph.error().message.find(words), std::string::npos)
        << graph.error().message;
  }
  TestProgram program = makeTestProgram(MGPU_TEST_KERNEL);
  std::unique_ptr<device::Driver> driver = *device::createHostDriver(2, 1);
};

TEST_F(GraphBuilding, KeepsStreamOrderAndWaits) {
  auto graph = build();
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->dagNodes.size(), 7u);
  EXPECT_EQ(graph->dagNodes[0].value, 2u);
  // Streams give 0-2-4-6 and 1-3-5; down_y1 (5) shares none with reduce (6).
  std::vector<GraphEdge> expected{{0, 2}, {1, 3}, {2, 4},
                                  {3, 5}, {4, 6}, {5, 6}};
  EXPECT_EQ(graph->edges, expected);
}

TEST_F(GraphBuilding, OpaqueWorkIsUnsupported) {
  program.dag.nodes[4].work = OpaqueCall{};
  expect(ErrorKind::Unsupported, "a.mlir:2:3: node 'axpy0'");
}
TEST_F(GraphBuilding, MissingWaitIsFound) {
  program.plan.steps[8].waits = {};
  expect(ErrorKind::Internal, "'reduce' does not wait for 'down_y1'");
}
TEST_F(GraphBuilding, MissingStepIsFound) {
  program.plan.steps.erase(program.plan.steps.begin() + 8);
  expect(ErrorKind::Internal, "node 'reduce' is missing");
}
TEST_F(GraphBuilding, DoubledStepIsFound) {
  program.plan.steps.push_back(program.plan.steps[2]);
  expect(ErrorKind::Invalid, "two steps");
}
TEST_F(GraphBuilding, WaitForALaterStepIsFound) {
  program.plan.steps[2].waits = {{7}};
  expect(ErrorKind::Invalid, "starts later");
}
TEST_F(GraphBuilding, UnplacedBufferIsFound) {
  program.plan.placements.erase(program.plan.placements.begin() + 2);
  expect(ErrorKind::Invalid, "'y0', which has no address");
}
TEST_F(GraphBuilding, PlacementOutsideTheArenaIsFound) {
  program.plan.placements[3].offset = 1024;
  expect(ErrorKind::Invalid, "no room");
}
TEST_F(GraphBuilding, ViewOutsideItsBufferIsFound) {
  std::get<CopyCall>(program.dag.nodes[2].work).sourceBox.offset = 40;
  expect(ErrorKind::Invalid, "of buffer 'y'");
}
TEST_F(GraphBuilding, WrongArgumentCountIsFound) {
  std::get<KernelCall>(program.dag.nodes[4].work).arguments.pop_back();
  expect(ErrorKind::Invalid, "kernel 'axpy' with 3 arguments");
}
TEST_F(GraphBuilding, UnknownIdsAreFound) {
  std::get<CopyCall>(program.dag.nodes[2].work).source = {99};
  expect(ErrorKind::Invalid, "buffer 99");
  program = makeTestProgram(MGPU_TEST_KERNEL);
  program.plan.steps[3].node = {99};
  expect(ErrorKind::Invalid, "runs node 99");
  program = makeTestProgram(MGPU_TEST_KERNEL);
  program.plan.steps[3].waits = {{99}};
  expect(ErrorKind::Invalid, "waits for node 99");
}

/// A chain of three calls of a kernel beside a copy; nodes 0, 1, 2 and 3.
struct Chain {
  Chain() {
    dag.numDevices = 1;
    dag.buffers.resize(2);
    dag.buffers[0].device = dag.buffers[1].device = {0};
    dag.kernels.resize(2);
    for (uint32_t k = 0; k < 4; ++k) {
      DagNode node;
      node.name = "n" + std::to_string(k);
      node.phase = Phase::Replay;
      node.devices = {{0}};
      if (k == 3)
        node.work = CopyCall{{0}, {1}, Box::flat(0, 64), Box::flat(0, 64)};
      else
        node.work = KernelCall{{k == 2 ? 1u : 0u}, {}, {}, {}};
      dag.nodes.push_back(node);
      PlanStep step;
      step.node = {k};
      step.streams = {{{0}, {k == 3 ? 1u : 0u}}};
      plan.steps.push_back(step);
      nodes.push_back({k});
    }
  }
  std::string prove(const std::vector<GraphEdge> &edges,
                    const std::vector<GraphEdge> &early,
                    const std::vector<bool> &awaits,
                    uint64_t copyBytes = 0) const {
    Result<void> ok =
        proveGraph(plan, dag, Phase::Replay, nodes, edges, GraphPart(dag, {}),
                   early, {awaits, copyBytes});
    return ok ? "" : ok.error().message;
  }
  Dag dag;
  Plan plan;
  std::vector<NodeId> nodes;
};

TEST(EarlyEdges, AreTheOnlyOnesOfKernelsThatWait) {
  Chain chain;
  const std::vector<GraphEdge> edges{{0, 1}, {1, 2}};
  EXPECT_EQ(chain.prove(edges, {{0, 1}, {1, 2}}, {true, true}), "");
  EXPECT_EQ(chain.prove(edges, {{0, 1}}, {true, false}), "");
  auto has = [](const std::string &text, const char *words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  has(chain.prove(edges, {{1, 2}}, {true, false}),
      "'n2' begins before 'n1' has ended, for which its kernel does not wait");
  has(chain.prove(edges, {{1, 2}}, {true}), "does not wait");
  has(chain.prove(edges, {{0, 2}}, {true, true}), "is not there");
  has(chain.prove(edges, {{7, 9}}, {true, true}), "is not there");
  has(chain.prove({{0, 1}, {0, 2}, {1, 2}}, {{1, 2}}, {true, true}),
      "'n2' begins early and has 2 edges");
  has(chain.prove({{0, 1}, {1, 2}, {2, 3}}, {{2, 3}}, {true, true}),
      "not both kernels");
  EXPECT_EQ(chain.prove({{0, 1}, {1, 2}, {2, 3}}, {{2, 3}}, {true, true}, 64),
            "");
  has(chain.prove({{0, 1}, {1, 2}, {2, 3}}, {{2, 3}}, {true, true}, 63),
      "not both kernels");
  chain.dag.buffers[1].device = DeviceId::host();
  has(chain.prove({{0, 1}, {1, 2}, {2, 3}}, {{2, 3}}, {true, true}, 64),
      "not both kernels");
}

TEST_F(GraphBuilding, ProofNeedsEveryEdge) {
  auto graph = build();
  ASSERT_TRUE(graph);
  auto prove = [&](const std::vector<GraphEdge> &edges) {
    return bool(proveGraph(program.plan, program.dag, Phase::Replay,
                           graph->dagNodes, edges, GraphPart(program.dag, {})));
  };
  EXPECT_TRUE(prove(graph->edges));
  for (size_t k = 0; k < graph->edges.size(); ++k) {
    auto fewer = graph->edges;
    fewer.erase(fewer.begin() + long(k));
    EXPECT_FALSE(prove(fewer)) << "without edge " << k;
  }
}

} // namespace
