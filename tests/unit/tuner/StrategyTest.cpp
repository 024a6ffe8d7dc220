// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/strategy/SearchStrategy.h"

#include "support/Random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace mgpu;
using namespace mgpu::tuner;

namespace {

/// 12 x 12 x 6 x 2 without a corner; a bowl with a ridge and failures.
ConfigSpace makeSpace() {
  auto upTo = [](int count) {
    std::vector<double> values;
    for (int k = 0; k < count; ++k)
      values.push_back(k + 1);
    return values;
  };
  std::vector<Constraint> constraints{
      {"a + b <= 20", {0, 1}, [](auto v) { return v[0] + v[1] <= 20; }}};
  return *ConfigSpace::generate({{"a", upTo(12), {}},
                                 {"b", upTo(12), {}},
                                 {"c", upTo(6), {}},
                                 {"d", {0, 1}, {"no", "yes"}}},
                                constraints);
}

std::optional<double> costOf(const ConfigSpace &space, ConfigId id) {
  double a = space.value(id, 0), b = space.value(id, 1), c = space.value(id, 2);
  if (a == 12 && b > 4)
    return std::nullopt;
  double cost = 1 + 0.1 * (a - 7) * (a - 7) + 0.2 * std::abs(b - 3) +
                0.3 * (c - 2) * (c - 2);
  return space.value(id, 3) == 0 ? cost : cost * 1.5;
}

class Strategies : public testing::TestWithParam<std::string_view> {
protected:
  ConfigSpace space = makeSpace();
  std::unique_ptr<SearchStrategy> make(uint64_t seed) {
    return *makeStrategy(GetParam(), space, seed);
  }
};

TEST_P(Strategies, ProposeEachPointOnceAndThenEnd) {
  auto search = make(3);
  std::set<ConfigId> proposed;
  while (auto id = search->propose()) {
    ASSERT_LT(*id, space.size());
    ASSERT_TRUE(proposed.insert(*id).second) << "point " << *id << " again";
    search->report(*id, costOf(space, *id));
  }
  EXPECT_EQ(proposed.size(), space.size());
  EXPECT_EQ(search->propose(), std::nullopt);
}

TEST_P(Strategies, SameSeedAndReportsGiveTheSameProposals) {
  auto one = make(5), two = make(5);
  for (int k = 0; k < 200; ++k) {
    auto id = one->propose();
    ASSERT_EQ(id, two->propose()) << "at evaluation " << k;
    one->report(*id, costOf(space, *id));
    two->report(*id, costOf(space, *id));
  }
}

TEST_P(Strategies, NeverRepeatWhatASessionBeforeReported) {
  auto search = make(7);
  std::set<ConfigId> old;
  Random random(11);
  for (int k = 0; k < 300; ++k)
    old.insert(ConfigId(random.below(space.size())));
  for (ConfigId id : old)
    search->report(id, costOf(space, id));
  for (int k = 0; k < 200; ++k) {
    auto id = search->propose();
    ASSERT_TRUE(id);
    EXPECT_FALSE(old.count(*id));
    search->report(*id, costOf(space, *id));
  }
}

TEST_P(Strategies, SurviveASpaceWhereEverythingFails) {
  auto search = make(9);
  for (int k = 0; k < 100; ++k) {
    auto id = search->propose();
    ASSERT_TRUE(id);
    search->report(*id, std::nullopt);
  }
}

TEST_P(Strategies, SurviveEqualCostsAndOnePoint) {
  auto search = make(1);
  for (int k = 0; k < 100; ++k)
    search->report(*search->propose(), 1.0);
  ConfigSpace one = *ConfigSpace::generate({{"x", {1}, {}}}, {});
  auto single = *makeStrategy(GetParam(), one, 1);
  EXPECT_EQ(single->propose(), 0u);
  single->report(0, 2.0);
  EXPECT_EQ(single->propose(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(All, Strategies,
                         testing::ValuesIn(strategyNames().begin(),
                                           strategyNames().end()),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

/// Mean of the best cost over seeds after `evaluations`.
double meanBest(const ConfigSpace &space, std::string_view name,
                int evaluations) {
  double sum = 0;
  constexpr int numSeeds = 20;
  for (int seed = 0; seed < numSeeds; ++seed) {
    auto search = *makeStrategy(name, space, uint64_t(seed));
    double best = 1e9;
    for (int k = 0; k < evaluations; ++k) {
      auto id = search->propose();
      auto cost = costOf(space, *id);
      best = std::min(best, cost.value_or(1e9));
      search->report(*id, cost);
    }
    sum += best;
  }
  return sum / numSeeds;
}

TEST(Strategy, GuidedSearchesBeatRandomOnes) {
  ConfigSpace space = makeSpace();
  double random = meanBest(space, "random", 60) - 1;
  EXPECT_LT(meanBest(space, "surrogate", 60) - 1, random / 5);
  for (auto name : {"annealing", "local", "genetic"})
    EXPECT_LT(meanBest(space, name, 60) - 1, random) << name;
}

TEST(Strategy, UnknownNamesAreUsageErrors) {
  ConfigSpace space = makeSpace();
  auto search = makeStrategy("best", space, 1);
  ASSERT_FALSE(search);
  EXPECT_EQ(search.error().kind, ErrorKind::Usage);
  EXPECT_NE(search.error().message.find("choose of surrogate"),
            std::string::npos);
}

} // namespace
