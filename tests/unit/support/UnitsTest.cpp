// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Units.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace mgpu;

TEST(Units, ByteSizes) {
  for (auto [text, bytes] : {std::pair<const char *, uint64_t>{"1", 1},
                             {"100GB", 100'000'000'000},
                             {"1.5MB", 1'500'000},
                             {"80GiB", uint64_t(80) << 30},
                             {"2TiB", uint64_t(2) << 40},
                             {"1e11", 100'000'000'000},
                             {"3kB", 3000},
                             {"3KB", 3000},
                             {"3KiB", 3072},
                             {"7B", 7}})
    EXPECT_EQ(parseByteSize(text, "--memory").value_or(0), bytes) << text;
  for (const char *text :
       {"", "GB", "0", "0.5", "-1GB", "1XB", "1 GB", "1e30", "nan", "inf"}) {
    auto size = parseByteSize(text, "--memory");
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().kind, ErrorKind::Usage);
    EXPECT_NE(size.error().message.find("--memory"), std::string::npos);
  }
}

TEST(Units, Budgets) {
  EXPECT_EQ(parseBudget("60s")->seconds, 60);
  EXPECT_EQ(parseBudget("0.5s")->seconds, 0.5);
  EXPECT_EQ(parseBudget("500ms")->seconds, 0.5);
  EXPECT_EQ(parseBudget("2m")->seconds, 120);
  EXPECT_EQ(parseBudget("1.5min")->seconds, 90);
  EXPECT_EQ(parseBudget("1h")->seconds, 3600);
  EXPECT_EQ(parseBudget("60s")->evaluations, UINT64_MAX);
  EXPECT_EQ(parseBudget("1000")->evaluations, 1000u);
  for (const char *text :
       {"", "s", "-1s", "1.5", "1d", "-3", "nans", "infs", "1 h"})
    EXPECT_FALSE(parseBudget(text)) << text;
}

TEST(Units, DurationsHaveFourDigitsInTheUnitOfTheirSize) {
  EXPECT_EQ(durationText(0), "0.000 ns");
  EXPECT_EQ(durationText(0.0749), "74.90 ns");
  EXPECT_EQ(durationText(0.9999), "999.9 ns");
  EXPECT_EQ(durationText(0.99999), "1.000 us");
  EXPECT_EQ(durationText(1.1184), "1.118 us");
  EXPECT_EQ(durationText(9.99949), "9.999 us");
  EXPECT_EQ(durationText(9.9996), "10.00 us");
  EXPECT_EQ(durationText(99.996), "100.0 us");
  EXPECT_EQ(durationText(743.92), "743.9 us");
  EXPECT_EQ(durationText(12345), "12.35 ms");
  EXPECT_EQ(durationText(3e6), "3.000 s");
  EXPECT_EQ(durationText(3600e6), "3600.0 s");
}

TEST(Units, DigitsFinerThanTheErrorAreNotTold) {
  EXPECT_EQ(withinError(44.436, 0), "44.436");
  EXPECT_EQ(withinError(133.214, 0.9), "130");
  EXPECT_EQ(withinError(44.436, 0.95), "40");
  EXPECT_EQ(withinError(44.436, 0.5), "44");
  EXPECT_EQ(withinError(18.6, 0.35), "19");
  EXPECT_EQ(withinError(4.941, 0.2), "4.9");
  EXPECT_EQ(withinError(34342.764, 0.9), "34000");
  EXPECT_EQ(withinError(0.0021, 0.01), "0.002"); // no finer than without error
  EXPECT_EQ(withinError(9.96, 0.2), "10.0");
  EXPECT_EQ(withinError(0, 0.9), "0.000");
  EXPECT_EQ(withinError(1e308, 0.9), fmt::format("{:.0f}", 1e308));
}
