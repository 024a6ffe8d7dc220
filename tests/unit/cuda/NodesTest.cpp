// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What copies and collectives become: how many nodes, of which kind.

#include "FakeTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// What a copy became, by the type of its nodes.
std::vector<CUgraphNodeType> typesOf(const Box &to, bool toHost,
                                     const Box &from, bool fromHost) {
  FakeCuda &fake = freshMachine();
  fake.gpuBytes = size_t(1) << 40;
  auto driver = openFake(fakeOptions(1));
  EXPECT_TRUE(driver);
  DeviceId gpu{0};
  auto target = (*driver)->allocate(toHost ? DeviceId::host() : gpu, 1 << 21);
  auto source = (*driver)->allocate(fromHost ? DeviceId::host() : gpu, 1 << 21);
  auto graph = (*driver)->createGraph();
  auto node = graph->addCopy({"copy", gpu, *target, *source, to, from}, {});
  EXPECT_TRUE(node) << node.error().message;
  auto exec = graph->instantiate();
  EXPECT_TRUE(exec) << exec.error().message;
  return fake.builtTypes();
}

TEST(Copies, TheEngineWhereItCanAndAKernelElsewhere) {
  constexpr auto memcpyNode = CU_GRAPH_NODE_TYPE_MEMCPY;
  constexpr auto kernelNode = CU_GRAPH_NODE_TYPE_KERNEL;
  Box flat{0, {64}, {4}, 4}, large = Box::flat(0, (1 << 20) + 1);
  Box rows{0, {8, 8}, {64, 4}, 4}, planes{0, {2, 4, 8}, {512, 64, 4}, 4},
      columns{0, {8, 8}, {4, 64}, 4};
  using Types = std::vector<CUgraphNodeType>;
  EXPECT_EQ(typesOf(flat, false, flat, true), Types{memcpyNode});
  EXPECT_EQ(typesOf(large, false, large, false), Types{memcpyNode});
  EXPECT_EQ(typesOf(flat, false, flat, false), Types{kernelNode});
  EXPECT_EQ(typesOf(rows, false, flat, true), Types{memcpyNode});
  EXPECT_EQ(typesOf(planes, true, planes, false), Types{memcpyNode});
  EXPECT_EQ(typesOf(rows, false, rows, false), Types{kernelNode});
  EXPECT_EQ(typesOf(columns, false, flat, true), Types{kernelNode});
}

TEST(Copies, LongOnesKeepBelowTheLargestPitch) {
  // 5 GiB and 3 bytes: as rows of 1 GiB, and what is left.
  FakeCuda &fake = freshMachine();
  auto driver = openFake(fakeOptions(1));
  ASSERT_TRUE(driver);
  auto memory = (*driver)->allocate({0}, 256);
  ASSERT_TRUE(memory);
  // No memory of that size is there; the node is refused when it is made, and
  // what was asked for is seen.
  auto graph = (*driver)->createGraph();
  std::byte *far = *memory + (int64_t(1) << 40);
  int64_t bytes = (int64_t(5) << 30) + 3;
  auto node = graph->addCopy({"long",
                              {0},
                              far,
                              far + (bytes + 64),
                              Box::flat(0, bytes),
                              Box::flat(0, bytes)},
                             {});
  ASSERT_TRUE(node) << node.error().message;
  auto exec = graph->instantiate();
  ASSERT_FALSE(exec);
  const CUDA_MEMCPY3D &copy = fake.lastCopy;
  EXPECT_EQ(copy.WidthInBytes, size_t(1) << 30);
  EXPECT_EQ(copy.Height, 5u);
  EXPECT_EQ(copy.srcPitch, copy.WidthInBytes);
}

TEST(Copies, AreRefusedWithAReason) {
  freshMachine();
  auto driver = openFake(fakeOptions(2));
  ASSERT_TRUE(driver);
  auto a = (*driver)->allocate({0}, 64), b = (*driver)->allocate({1}, 64);
  auto graph = (*driver)->createGraph();
  auto messageOf = [&](CopyNodeParams params) {
    params.name = "it";
    params.destination = *a;
    params.source = *b;
    auto node = graph->addCopy(params, {});
    return node ? std::string("fine") : node.error().message;
  };
  Box eight = Box::flat(0, 8);
  EXPECT_NE(messageOf({"", {2}, nullptr, nullptr, eight, eight})
                .find("devices are 0 to 1"),
            std::string::npos);
  EXPECT_NE(messageOf({"", {0}, nullptr, nullptr, eight, Box::flat(60, 8)})
                .find("leaves its allocation of 64 bytes"),
            std::string::npos);
  EXPECT_NE(messageOf({"", {0}, nullptr, nullptr, eight, Box::flat(0, 9)})
                .find("same number and width"),
            std::string::npos);
  // Reversed in nine dimensions: more than the kernel has loops.
  Box many{0, {}, {}, 1}, few{0, {}, {}, 1};
  for (int k = 0; k < 9; ++k) {
    many.sizes.push_back(1);
    many.strides.push_back(1);
  }
  EXPECT_EQ(messageOf({"", {0}, nullptr, nullptr, many, many}), "fine");
  auto dependent =
      graph->addCopy({"it", {0}, *a, *b, eight, eight}, {{GraphNodeId{99}}});
  ASSERT_FALSE(dependent);
  EXPECT_NE(dependent.error().message.find("does not exist yet"),
            std::string::npos);
}

TEST(Collectives, AreOneKernelWhereTheLayoutAllows) {
  FakeCuda &fake = freshMachine();
  auto driver = openFake(fakeOptions(4));
  ASSERT_TRUE(driver);
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather, CollectiveKind::AllToAll,
        CollectiveKind::Broadcast, CollectiveKind::Permute}) {
    auto graph = (*driver)->createGraph();
    CollectiveNodeParams params;
    params.kind = kind;
    if (kind == CollectiveKind::Permute)
      params.pairs = {{0, 1}, {2, 2}}; // and zeros
    for (int32_t r = 0; r < 4; ++r) {
      auto send = (*driver)->allocate({r}, 4096);
      auto recv = (*driver)->allocate({r}, 4096);
      ASSERT_TRUE(send && recv);
      Box small{0, {64}, {4}, 4}, large{0, {256}, {4}, 4};
      params.members.push_back(
          {{r},
           *send,
           *recv,
           kind == CollectiveKind::AllGather ? small : large,
           kind == CollectiveKind::ReduceScatter ? small : large});
    }
    auto node = graph->addCollective(params, {});
    ASSERT_TRUE(node) << node.error().message;
    ASSERT_TRUE(graph->instantiate());
    EXPECT_EQ(fake.builtTypes(),
              std::vector<CUgraphNodeType>{CU_GRAPH_NODE_TYPE_KERNEL})
        << toString(kind);
    // Others wait for it: it goes before the kernels of the program.
    EXPECT_EQ(fake.graphs.youngest()->nodes[0]->priority, -5);
  }
}

} // namespace
