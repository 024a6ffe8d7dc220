// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Copies between boxes, on the copy engine or by a kernel, against the host
// target.

#include "Twins.h"

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// A box of `sizes` within `bytes` bytes: any order of dimensions, gaps, and
/// directions.
Box randomBox(std::mt19937_64 &random, std::vector<int64_t> sizes,
              uint32_t width, size_t bytes) {
  Box box{0, sizes, std::vector<int64_t>(sizes.size()), width};
  std::vector<size_t> order(sizes.size());
  for (size_t k = 0; k < order.size(); ++k)
    order[k] = order.size() - 1 - k; // row-major, innermost first
  if (random() % 3 == 0)
    std::shuffle(order.begin(), order.end(), random);
  int64_t stride = width;
  for (size_t k : order) {
    if (random() % 4 == 0)
      stride += int64_t(random() % 3) * width;
    box.strides[k] = stride;
    stride *= std::max<int64_t>(sizes[k], 1);
  }
  for (size_t k = 0; k < sizes.size(); ++k)
    if (random() % 8 == 0) {
      box.offset += (sizes[k] - 1) * box.strides[k];
      box.strides[k] = -box.strides[k];
    }
  auto [low, high] = box.byteRange();
  if (high > int64_t(bytes) || low < 0)
    return {0, {0}, {int64_t(width)}, width}; // too large: nothing
  box.offset +=
      int64_t(random() % uint64_t(int64_t(bytes) - high + 1)) / width * width;
  return box;
}

TEST(Copies, RandomBoxes) {
  constexpr size_t bytes = 8192;
  std::mt19937_64 random(11);
  size_t copied = 0;
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    Twins twins(2, uint64_t(round));
    std::vector<size_t> memories{twins.allocate({0}, bytes),
                                 twins.allocate({1}, bytes),
                                 twins.allocate(DeviceId::host(), bytes),
                                 twins.allocate(DeviceId::host(), bytes)};
    // A chain of copies, each after the one before it.
    std::array<std::vector<GraphNodeId>, 2> last;
    for (int step = 0; step < 4; ++step) {
      constexpr uint32_t widths[] = {1, 2, 3, 4, 8, 12, 16};
      uint32_t width = widths[random() % 7];
      std::vector<int64_t> sizes;
      for (uint64_t rank = random() % 4; rank > 0; --rank)
        sizes.push_back(int64_t(random() % 7) + (random() % 8 != 0));
      Box from = randomBox(random, sizes, width, bytes);
      std::vector<int64_t> flat{from.numElements()};
      Box to =
          randomBox(random, random() % 4 ? from.sizes : flat, width, bytes);
      if (to.numElements() != from.numElements())
        continue;
      copied += size_t(to.numElements());
      size_t source = memories[random() % 4], target = memories[random() % 4];
      twins.addNodes([&](GraphDriver &graph, auto address) -> Result<void> {
        CopyNodeParams params{"copy",          {0}, address(target),
                              address(source), to,  from};
        auto &after = last[&graph == twins.graphs[0].get() ? 0 : 1];
        MGPU_TRY_ASSIGN(GraphNodeId node, graph.addCopy(params, after));
        after = {node};
        return {};
      });
    }
    twins.replay(1 + random() % 2, "round " + std::to_string(round));
    twins.close();
  }
  EXPECT_GT(copied, 10'000u);
}

/// What a copy became, by the type of its nodes.
std::vector<CUgraphNodeType> typesOf(const Box &to, bool toHost,
                                     const Box &from, bool fromHost) {
  FakeCuda &fake = freshMachine();
  fake.cardBytes = size_t(1) << 40;
  auto driver = openFake(fakeOptions(1));
  EXPECT_TRUE(driver);
  DeviceId card{0};
  auto target = (*driver)->allocate(toHost ? DeviceId::host() : card, 1 << 16);
  auto source =
      (*driver)->allocate(fromHost ? DeviceId::host() : card, 1 << 16);
  auto graph = (*driver)->createGraph();
  auto node = graph->addCopy({"copy", card, *target, *source, to, from}, {});
  EXPECT_TRUE(node) << node.error().message;
  auto exec = graph->instantiate();
  EXPECT_TRUE(exec) << exec.error().message;
  return fake.builtTypes();
}

TEST(Copies, TheEngineWhereItCanAndAKernelElsewhere) {
  constexpr auto memcpyNode = CU_GRAPH_NODE_TYPE_MEMCPY;
  constexpr auto kernelNode = CU_GRAPH_NODE_TYPE_KERNEL;
  Box flat{0, {64}, {4}, 4}, rows{0, {8, 8}, {64, 4}, 4},
      planes{0, {2, 4, 8}, {512, 64, 4}, 4}, columns{0, {8, 8}, {4, 64}, 4};
  using Types = std::vector<CUgraphNodeType>;
  EXPECT_EQ(typesOf(flat, false, flat, true), Types{memcpyNode});
  EXPECT_EQ(typesOf(flat, false, flat, false), Types{memcpyNode});
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

} // namespace
