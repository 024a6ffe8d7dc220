// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Report.h"

#include <cmath>
#include <gtest/gtest.h>

namespace mgpu::tuner {
namespace {

double shareOf(const std::vector<ParameterImportance> &found,
               const std::string &name) {
  for (const ParameterImportance &each : found)
    if (each.parameter == name)
      return each.share;
  return -1;
}

TEST(Importance, IsOfTheParameterThatDecides) {
  std::vector<ImportanceSample> samples;
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b)
      samples.push_back({{{"a", std::to_string(a)}, {"b", std::to_string(b)}},
                         std::pow(2.0, a)});
  auto found = importanceOf(samples);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].parameter, "a");
  EXPECT_NEAR(found[0].share, 1, 1e-12);
  EXPECT_EQ(found[0].values, 4u);
  EXPECT_EQ(found[1].share, 0); // less than chance would give
}

// By hand: logarithms 0 and 1 six times each in two groups of six, where five
// of a group are alike. SSt = 12 / 4 = 3; within a group 5/36 * 6 = 5/6, so
// SSw = 5/3, SSb = 4/3; (SSb - SSw / 10) / SSt = (4/3 - 1/6) / 3.
TEST(Importance, IsKelleysEpsilonSquared) {
  std::vector<ImportanceSample> samples;
  for (int k = 0; k < 12; ++k) {
    const bool odd = k == 0 || k == 6;
    samples.push_back(
        {{{"p", k < 6 ? "x" : "y"}}, (k < 6) != odd ? 1.0 : std::exp(1.0)});
  }
  EXPECT_NEAR(shareOf(importanceOf(samples), "p"), (4.0 / 3 - 1.0 / 6) / 3,
              1e-12);
}

TEST(Importance, SaysNothingWhereNothingCanBeSaid) {
  std::vector<ImportanceSample> samples;
  for (size_t k = 0; k + 1 < fewestForImportance; ++k)
    samples.push_back({{{"p", k % 2 ? "x" : "y"}}, 1.0 + double(k)});
  EXPECT_TRUE(importanceOf(samples).empty()); // too few
  for (int k = 0; k < 10; ++k)
    samples.push_back({{{"p", "z"}, {"all", std::to_string(k)}}, 2.0});
  // "all" has a value for each of those, and none for the others.
  EXPECT_GE(shareOf(importanceOf(samples), "all"), 0);
  for (size_t k = 0; k < samples.size(); ++k)
    samples[k].pairs = {{"p", "one"}, {"q", std::to_string(k)}};
  EXPECT_TRUE(importanceOf(samples).empty()); // one value, or each tried once
}

} // namespace
} // namespace mgpu::tuner
