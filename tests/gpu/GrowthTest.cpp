// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/gpu/Growth.h"

#include <gtest/gtest.h>

namespace {

using mgpu::gpu::Growth;

TEST(Growth, ALeakGoesOn) {
  EXPECT_TRUE((Growth{{0, 2 << 20, 4 << 20}}.goesOn(0)));
  EXPECT_TRUE((Growth{{1000, 201'000, 401'000}}.goesOn(128 << 10)));
  EXPECT_TRUE((Growth{{-900, -800, -700}}.goesOn(0))) << "of what is free";
}

TEST(Growth, WhatIsTakenOnceIsNone) {
  EXPECT_FALSE((Growth{{0, 0, 0}}.goesOn(0)));
  EXPECT_FALSE((Growth{{0, 2 << 20, 2 << 20}}.goesOn(0)));
  EXPECT_FALSE((Growth{{0, 0, 2 << 20}}.goesOn(0)));
  EXPECT_FALSE((Growth{{0, 4096, 8192}}.goesOn(128 << 10)));
  EXPECT_FALSE((Growth{{0, 1 << 20, 1 << 19}}.goesOn(0)));
}

} // namespace
