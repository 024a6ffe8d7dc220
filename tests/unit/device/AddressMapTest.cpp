// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/AddressMap.h"

#include <array>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::device;

TEST(AddressMap, ChecksViewsOfItsOwnBlocksAlone) {
  std::array<std::byte, 512> memory{};
  std::byte *block = memory.data() + 128, *behind = block + 256;
  AddressMap map;
  map.add(block, 256, {0});
  EXPECT_TRUE(map.check(block, Box::flat(0, 256)));
  EXPECT_TRUE(map.check(block + 255, Box::flat(0, 1)));
  EXPECT_FALSE(map.check(block, Box::flat(0, 257)));
  EXPECT_FALSE(map.check(block + 255, Box::flat(0, 2)));
  EXPECT_FALSE(map.check(block + 16, Box::flat(-17, 4)));
  // Memory of a caller's may begin where a block ends.
  EXPECT_TRUE(map.check(behind, Box::flat(0, 16)));
  EXPECT_TRUE(map.check(memory.data(), Box::flat(0, 16)));
  EXPECT_EQ(map.ownerOf(behind), nullptr);
  map.remove(block);
  EXPECT_TRUE(map.check(block, Box::flat(0, 257)));
}
