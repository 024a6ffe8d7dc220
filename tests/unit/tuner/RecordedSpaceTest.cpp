// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/RecordedSpace.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::tuner;

namespace {

const std::string head =
    "b,kind,time_ms,sd_ms,compile_ms,benchmark_ms,framework_ms,status\n";

TEST(RecordedSpace, ReadsPointsFailuresAndCosts) {
  auto recorded = parseRecordedSpace(head + "16,fast,2.5,0.1,100,20,3,ok\r\n"
                                            "8,slow,,,50,,1,CompileFailed\n"
                                            "8,fast,1.25,0.1,10,2,0.5,ok\n",
                                     "t");
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(recorded->space.size(), 3u);
  EXPECT_EQ(recorded->space.describe(0), "b=8 kind=fast");
  EXPECT_EQ(recorded->space.describe(1), "b=8 kind=slow");
  EXPECT_EQ(recorded->timeMs[0], 1.25);
  EXPECT_EQ(recorded->timeMs[1], std::nullopt);
  EXPECT_EQ(recorded->timeMs[2], 2.5);
  EXPECT_EQ(recorded->costMs, (std::vector<double>{12.5, 51, 123}));
  EXPECT_TRUE(recorded->space.parameter(0).isOrdered());
  EXPECT_FALSE(recorded->space.parameter(1).isOrdered());
}

TEST(RecordedSpace, WrongTablesAreNamed) {
  auto words = [](const std::string &text) {
    auto recorded = parseRecordedSpace(text, "t");
    return recorded ? std::string() : recorded.error().message;
  };
  EXPECT_NE(words("a,b\n1,2\n").find("the header must name"),
            std::string::npos);
  EXPECT_NE(words(head).find("no points"), std::string::npos);
  EXPECT_NE(words(head + "1,x,2\n").find("line 2: 3 fields"),
            std::string::npos);
  EXPECT_NE(
      words(head + "1,x,no,0,1,1,1,ok\n").find("'no' is not a valid time_ms"),
      std::string::npos);
  EXPECT_NE(
      words(head + "1,x,-1,0,1,1,1,ok\n").find("'-1' is not a valid time_ms"),
      std::string::npos);
  EXPECT_NE(words(head + "1,x,1,0,-1,1,1,ok\n")
                .find("'-1' is not a valid compile_ms"),
            std::string::npos);
  EXPECT_NE(
      words(head + "1,x,1,0,1,1,1,ok\n1,x,1,0,1,1,1,ok\n").find("given twice"),
      std::string::npos);
  EXPECT_NE(words(head + "1,x,nan,0,1,1,1,ok\n").find("'nan'"),
            std::string::npos);
}

} // namespace
