// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Spelling.h"

#include <gtest/gtest.h>

using namespace mgpu;

TEST(Spelling, CountsEdits) {
  EXPECT_EQ(editDistance("", "abc"), 3u);
  EXPECT_EQ(editDistance("agr", "arg"), 1u); // a swap
  EXPECT_EQ(editDistance("all_reduce", "allreduce"), 1u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
}

TEST(Spelling, NamesTheNearestOrNone) {
  const std::string words[] = {"--arg", "--target", "--trace"};
  EXPECT_EQ(didYouMean("--agr", words), "; did you mean '--arg'?");
  EXPECT_EQ(didYouMean("--targt", words), "; did you mean '--target'?");
  EXPECT_EQ(didYouMean("--frobnicate", words), "");
  EXPECT_EQ(didYouMean("x", {}), "");
  EXPECT_EQ(didYouMean(std::string(100000, 'a'), words), "");
}
