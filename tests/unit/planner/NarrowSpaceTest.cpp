// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/KernelSpace.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace mgpu::planner {
namespace {

using P = kernels::KernelParameter;

/// A loop of a host's kernel in tiles, or as the emitter likes.
kernels::KernelSpace makeSpace() {
  kernels::KernelSpace space;
  space.block = {64, 4, 1};
  space.maxGrid = {8, 8, 1};
  space.reshapable = true;
  space.defaults[P::BlockX] = 64;
  space.defaults[P::BlockY] = 4;
  space.offerDefaults("one");
  space.offer(P::BlockX, {16, 32, 64});
  space.offer(P::Vector, {0, 1, 4, 8});
  space.offer(P::TileX, {0, 4, 8});
  space.offer(P::TileY, {0, 2, 4});
  const kernels::Formula row = kernels::Formula(P::BlockX) * P::Items;
  space.covers[0] = row;
  space.requireLaunch();
  space.require("two sizes", P::TileX, kernels::Relation::ZeroTogether,
                P::TileY, "");
  space.require("divide", row, kernels::Relation::MultipleOf, P::TileX, "");
  space.require("divide", P::BlockY, kernels::Relation::MultipleOf, P::TileY,
                "");
  return space;
}

TEST(NarrowSpace, IsAPartOfTheSpaceAround) {
  const kernels::KernelSpace whole = makeSpace();
  const std::vector<kernels::KernelConfig> all = whole.legal();
  ASSERT_GT(all.size(), 40u);
  for (const kernels::KernelConfig &around : all)
    for (uint64_t most : {1, 2, 5, 16, 1000}) {
      const kernels::KernelSpace part =
          kernels::narrowed(whole, around, most, "kept");
      const std::vector<kernels::KernelConfig> ways = part.legal();
      EXPECT_EQ(part.defaults, around);
      EXPECT_LE(ways.size(), most);
      if (most > 1)
        EXPECT_GE(ways.size(), std::min<size_t>(most, all.size()) / 2)
            << toText(around);
      EXPECT_TRUE(std::find(ways.begin(), ways.end(), around) != ways.end());
      for (const kernels::KernelConfig &way : ways)
        EXPECT_TRUE(whole.check(way)) << toText(way);
    }
}

TEST(NarrowSpace, WhatHasOneValueSaysWhy) {
  const kernels::KernelSpace whole = makeSpace();
  const kernels::KernelSpace one =
      kernels::narrowed(whole, whole.defaults, 1, "kept");
  EXPECT_EQ(one.productSize(), 1u);
  for (const kernels::KernelAxis &choice : one.axes)
    EXPECT_EQ(choice.reason, "kept");
  // Vectors first; then tiles, whose sizes are none or both.
  const kernels::KernelSpace two =
      kernels::narrowed(whole, whole.defaults, 2, "kept");
  EXPECT_EQ(two.choice(P::Vector).values, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(two.choice(P::Vector).reason, "");
  const kernels::KernelSpace four =
      kernels::narrowed(whole, whole.defaults, 4, "kept");
  EXPECT_EQ(four.choice(P::TileX).values, (std::vector<uint32_t>{0, 4}));
  EXPECT_EQ(four.choice(P::TileY).values, (std::vector<uint32_t>{0, 2}));
}

TEST(NarrowSpace, ASpaceTooLargeToCountHasAsManyAsFit) {
  kernels::KernelSpace space = makeSpace();
  for (kernels::KernelAxis &choice : space.axes)
    for (uint32_t value = 100; value < 300; ++value)
      choice.values.push_back(value);
  EXPECT_EQ(space.productSize(), UINT64_MAX);
}

} // namespace
} // namespace mgpu::planner
