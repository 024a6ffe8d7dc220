// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Copies between boxes against the host target.

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
  const int rounds = areCasesFew() ? 100 : 400;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
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
  EXPECT_GT(copied, 25 * size_t(rounds));
}

} // namespace
