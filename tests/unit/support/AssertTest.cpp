// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Assert.h"
#include "support/Types.h"

#include <gtest/gtest.h>

namespace mgpu {
namespace {

TEST(Assert, SaysWhatWhereAndWhyAndAborts) {
  int two = 2;
  EXPECT_DEATH(MGPU_CHECK(two + two == 5, "two and two are four"),
               "^tests/unit/support/AssertTest.cpp:[0-9]+: `two \\+ two == 5` "
               "does not hold: two and two are four\\. This is a bug of mgpu");
}

TEST(Assert, IsSilentAndLooksOnce) {
  int looks = 0;
  MGPU_CHECK(++looks == 1, "a check looks once");
  EXPECT_EQ(looks, 1);
}

TEST(Assert, IsOffInReleaseBuilds) {
  int looks = 0;
  MGPU_ASSERT(++looks == 1, "an assertion looks once, or not at all");
#ifdef NDEBUG
  EXPECT_EQ(looks, 0);
#else
  EXPECT_EQ(looks, 1);
#endif
}

#ifndef NDEBUG
TEST(Assert, GuardsTheMembersOfBoxes) {
  Box crooked{0, {2, 3}, {4}, 4};
  ASSERT_FALSE(checkBox(crooked));
  EXPECT_DEATH((void)crooked.byteRange(), "a box has one stride for each size");
}
#endif

} // namespace
} // namespace mgpu
