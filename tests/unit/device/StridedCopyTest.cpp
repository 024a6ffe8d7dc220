// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/CopyNest.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace mgpu;
using namespace mgpu::device;

/// Byte offsets of a box's elements, in row-major order.
std::vector<int64_t> elementOffsets(const Box &box) {
  std::vector<int64_t> offsets{box.offset};
  for (size_t k = 0; k < box.sizes.size(); ++k) {
    std::vector<int64_t> next;
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < box.sizes[k]; ++i)
        next.push_back(offset + i * box.strides[k]);
    offsets = std::move(next);
  }
  return offsets;
}

/// A box of those sizes inside [0, bytes), strides of either sign, gaps, and
/// dimensions in any memory order, without two elements on one byte.
Box randomBox(std::mt19937 &random, std::vector<int64_t> sizes,
              uint32_t elementBytes, int64_t &bytes) {
  std::vector<size_t> order(sizes.size());
  for (size_t k = 0; k < order.size(); ++k)
    order[k] = k;
  if (random() % 2)
    std::shuffle(order.begin(), order.end(), random);
  Box box{0, sizes, std::vector<int64_t>(sizes.size()), elementBytes};
  int64_t stride = elementBytes;
  for (size_t k = order.size(); k-- > 0;) {
    size_t dim = order[k];
    if (random() % 3 == 0)
      stride += random() % 5;
    bool negative = random() % 4 == 0;
    box.strides[dim] = negative ? -stride : stride;
    if (negative)
      box.offset += stride * std::max<int64_t>(sizes[dim] - 1, 0);
    stride *= std::max<int64_t>(sizes[dim], 1);
  }
  box.offset += random() % 7;
  bytes = stride + 16;
  return box;
}

std::vector<int64_t> randomSizes(std::mt19937 &random) {
  std::vector<int64_t> sizes(random() % 5);
  for (int64_t &size : sizes)
    size = random() % 20 == 0 ? 0 : 1 + random() % 6;
  return sizes;
}

std::vector<std::byte> noise(std::mt19937 &random, int64_t bytes) {
  std::vector<std::byte> out(static_cast<size_t>(bytes));
  for (std::byte &byte : out)
    byte = std::byte(random());
  return out;
}

TEST(StridedCopy, MatchesElementwiseCopy) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    constexpr uint32_t widths[] = {1, 2, 3, 4, 8, 16};
    uint32_t width = widths[random() % 6];
    auto sizes = randomSizes(random);
    auto toSizes = sizes;
    if (random() % 3 == 0) { // the same count in another shape
      int64_t count = 1;
      for (int64_t size : sizes)
        count *= size;
      toSizes = {count};
      if (random() % 2 && count % 2 == 0)
        toSizes = {count / 2, 2};
    }
    int64_t fromBytes, toBytes;
    Box from = randomBox(random, sizes, width, fromBytes);
    Box to = randomBox(random, toSizes, width, toBytes);
    auto source = noise(random, fromBytes), target = noise(random, toBytes);
    auto expected = target;
    auto fromOffsets = elementOffsets(from), toOffsets = elementOffsets(to);
    for (size_t k = 0; k < fromOffsets.size(); ++k)
      std::memcpy(expected.data() + toOffsets[k],
                  source.data() + fromOffsets[k], width);
    auto copy = StridedCopy::create(target.data(), to, source.data(), from);
    ASSERT_TRUE(copy) << copy.error().message;
    copy->run();
    ASSERT_EQ(target, expected) << "round " << round;
  }
}

TEST(StridedCopy, OverlapReadsEverythingFirst) {
  std::mt19937 random(8);
  for (int round = 0; round < 500; ++round) {
    auto sizes = randomSizes(random);
    int64_t fromBytes, toBytes;
    Box from = randomBox(random, sizes, 4, fromBytes);
    Box to = randomBox(random, sizes, 4, toBytes);
    auto memory = noise(random, std::max(fromBytes, toBytes));
    auto before = memory, expected = memory;
    auto fromOffsets = elementOffsets(from), toOffsets = elementOffsets(to);
    for (size_t k = 0; k < fromOffsets.size(); ++k)
      std::memcpy(expected.data() + toOffsets[k],
                  before.data() + fromOffsets[k], 4);
    auto copy = StridedCopy::create(memory.data(), to, memory.data(), from);
    ASSERT_TRUE(copy) << copy.error().message;
    copy->run();
    ASSERT_EQ(memory, expected) << "round " << round;
  }
}

TEST(StridedCopy, BroadcastsAStrideOfZero) {
  uint32_t source[2] = {5, 6}, target[6] = {};
  auto copy = StridedCopy::create(
      reinterpret_cast<std::byte *>(target), Box{0, {3, 2}, {8, 4}, 4},
      reinterpret_cast<std::byte *>(source), Box{0, {3, 2}, {0, 4}, 4});
  ASSERT_TRUE(copy);
  copy->run();
  for (int k = 0; k < 6; ++k)
    EXPECT_EQ(target[k], source[k % 2]);
}

TEST(StridedCopy, SlicesTileTheBox) {
  std::mt19937 random(9);
  int sliced = 0;
  for (int round = 0; round < 1000; ++round) {
    int64_t bytes;
    Box box = randomBox(random, randomSizes(random), 2, bytes);
    uint32_t count = 1 + random() % 6;
    std::vector<int64_t> together;
    bool whole = true;
    for (uint32_t k = 0; k < count && whole; ++k) {
      auto slice = sliceBox(box, k, count);
      whole = bool(slice);
      if (whole)
        for (int64_t offset : elementOffsets(*slice))
          together.push_back(offset);
    }
    if (!whole)
      continue;
    ++sliced;
    ASSERT_EQ(together, elementOffsets(box)) << "round " << round;
  }
  EXPECT_GT(sliced, 300);
}

TEST(StridedCopy, RejectsNonsense) {
  std::byte memory[64];
  auto reject = [&](Box to, Box from, std::byte *base) {
    auto copy = StridedCopy::create(base, to, memory, from);
    EXPECT_FALSE(copy);
    return copy ? "" : copy.error().message;
  };
  Box four = Box::flat(0, 4);
  EXPECT_NE(reject({0, {4}, {}, 1}, four, memory), "");
  EXPECT_NE(reject({0, {-4}, {1}, 1}, four, memory), "");
  EXPECT_NE(reject({0, {4}, {1}, 0}, four, memory), "");
  EXPECT_NE(reject(Box::flat(0, 5), four, memory), "");
  EXPECT_NE(reject({0, {1}, {4}, 4}, four, memory), "");
  EXPECT_NE(reject(four, four, nullptr), "");
  EXPECT_NE(reject({0, {INT64_MAX, INT64_MAX}, {1, 1}, 1}, four, memory), "");
  EXPECT_NE(reject({0, {INT64_MAX}, {INT64_MAX}, 1}, four, memory), "");
  Box none = Box::flat(0, 0);
  EXPECT_TRUE(StridedCopy::create(nullptr, none, nullptr, none));
}

} // namespace
