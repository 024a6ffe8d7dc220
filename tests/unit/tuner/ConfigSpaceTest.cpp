// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/ConfigSpace.h"

#include "support/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace mgpu;
using namespace mgpu::tuner;

namespace {

Parameter numbers(std::string name, std::vector<double> values) {
  return {std::move(name), std::move(values), {}};
}

ConfigSpace tiles() {
  std::vector<Constraint> constraints{
      {"x * y <= 64", {0, 1}, [](auto v) { return v[0] * v[1] <= 64; }},
      {"tile divides x", {2, 0}, [](auto v) {
         return int(v[1]) % int(v[0]) == 0;
       }}};
  return *ConfigSpace::generate({numbers("x", {8, 16, 24, 32}),
                                 numbers("y", {1, 2, 4, 8}),
                                 numbers("tile", {1, 3, 8})},
                                constraints);
}

TEST(ConfigSpace, HoldsExactlyTheLegalPoints) {
  ConfigSpace space = tiles();
  std::set<std::vector<uint16_t>> expected;
  for (uint16_t x = 0; x < 4; ++x)
    for (uint16_t y = 0; y < 4; ++y)
      for (uint16_t t = 0; t < 3; ++t) {
        int xs[] = {8, 16, 24, 32}, ys[] = {1, 2, 4, 8}, ts[] = {1, 3, 8};
        if (xs[x] * ys[y] <= 64 && xs[x] % ts[t] == 0)
          expected.insert({x, y, t});
      }
  ASSERT_EQ(space.size(), expected.size());
  EXPECT_EQ(space.productSize(), 48);
  ConfigId id = 0;
  for (const auto &point : expected) { // lexicographic, as the ids are
    EXPECT_TRUE(std::ranges::equal(space.positions(id), point));
    EXPECT_EQ(space.find(point), id);
    ++id;
  }
  EXPECT_EQ(space.find(std::vector<uint16_t>{3, 3, 0}), std::nullopt);
}

TEST(ConfigSpace, NeighboursDifferInOneParameter) {
  ConfigSpace space = tiles();
  std::vector<ConfigId> found;
  for (ConfigId id = 0; id < space.size(); ++id)
    for (bool nearest : {false, true}) {
      space.neighbours(id, nearest, found);
      std::set<ConfigId> expected;
      for (ConfigId other = 0; other < space.size(); ++other) {
        int changed = 0, distance = 0;
        for (uint32_t p = 0; p < 3; ++p)
          if (int d = std::abs(int(space.positions(id)[p]) -
                               int(space.positions(other)[p]))) {
            ++changed;
            distance = d;
          }
        if (changed == 1 && (!nearest || distance == 1))
          expected.insert(other);
      }
      EXPECT_EQ(std::set<ConfigId>(found.begin(), found.end()), expected);
      EXPECT_EQ(found.size(), expected.size());
    }
}

TEST(ConfigSpace, ConstraintsPruneAsSoonAsTheyCan) {
  // 50^4 points in the product; a check of each would be 6,250,000.
  std::vector<double> values;
  for (int k = 0; k < 50; ++k)
    values.push_back(k);
  uint64_t asked = 0;
  std::vector<Constraint> constraints{{"a < 2",
                                       {0},
                                       [&](auto v) {
                                         ++asked;
                                         return v[0] < 2;
                                       }},
                                      {"b = a",
                                       {1, 0},
                                       [&](auto v) {
                                         ++asked;
                                         return v[0] == v[1];
                                       }},
                                      {"c = b",
                                       {2, 1},
                                       [&](auto v) {
                                         ++asked;
                                         return v[0] == v[1];
                                       }},
                                      {"d = c", {3, 2}, [&](auto v) {
                                         ++asked;
                                         return v[0] == v[1];
                                       }}};
  auto space =
      ConfigSpace::generate({numbers("a", values), numbers("b", values),
                             numbers("c", values), numbers("d", values)},
                            constraints);
  ASSERT_TRUE(space);
  EXPECT_EQ(space->size(), 2u);
  EXPECT_EQ(asked, 50u + 3 * 2 * 50u);
}

TEST(ConfigSpace, WrongInputIsNamed) {
  auto words = [](const Result<ConfigSpace> &space) {
    return space ? std::string() : space.error().message;
  };
  EXPECT_NE(words(ConfigSpace::generate({}, {})).find("needs a parameter"),
            std::string::npos);
  EXPECT_NE(words(ConfigSpace::generate({numbers("x", {2, 1})}, {}))
                .find("'x' must ascend"),
            std::string::npos);
  std::vector<Constraint> never{{"never", {0}, [](auto) { return false; }}};
  EXPECT_NE(words(ConfigSpace::generate({numbers("x", {1, 2})}, never))
                .find("meets its constraints"),
            std::string::npos);
  EXPECT_NE(words(ConfigSpace::generate({numbers("x", {1, 2, 3})}, {}, 2))
                .find("more than 2 legal points"),
            std::string::npos);
  EXPECT_NE(words(ConfigSpace::fromPoints({numbers("x", {1, 2})}, {0, 1, 0}))
                .find("given twice"),
            std::string::npos);
  EXPECT_NE(words(ConfigSpace::fromPoints({numbers("x", {1, 2})}, {2}))
                .find("no value number 2"),
            std::string::npos);
}

TEST(ConfigSpace, DescribesPoints) {
  auto space = ConfigSpace::generate(
      {numbers("block", {32, 64}), {"layout", {0, 1}, {"row", "column"}}}, {});
  EXPECT_EQ(space->describe(3), "block=64 layout=column");
}

} // namespace
