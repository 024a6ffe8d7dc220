// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/SpaceText.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mgpu::kernels {
namespace {

using P = KernelParameter;

// What a whole one reads back to is a matter of bundles, which keep them
// (tests/unit/capture/BundleTest.cpp).
KernelSpace smallSpace() {
  KernelSpace space;
  space.target = KernelTarget::Cuda;
  space.block = {64, 1, 1};
  space.maxGrid = {4, 1, 1};
  space.reshapable = true;
  space.defaults.values.fill(1);
  space.offerDefaults("");
  space.choice(P::BlockX).values = {32, 64, 128};
  space.choice(P::TileX).values = {0};
  space.choice(P::TileY).values = {0};
  space.choice(P::Unroll).values = {0};
  space.addTunable({"DEPTH", {8, 16}});
  space.sharedBytes = Formula::tunable(0).roundedUp(16);
  space.require("a rule", P::Items, Relation::AtMost, 7, "a reason");
  space.defaults.values = {64, 1, 1, 1, 1, 0, 1, 0, 0, 1};
  return space;
}

/// The text with the first `from` replaced.
std::string changed(const std::string &from, const std::string &to) {
  std::string text = spaceText(smallSpace());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return text.replace(at, from.size(), to);
}

TEST(SpaceText, ReadsBack) {
  auto space = parseSpace(spaceText(smallSpace()));
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_EQ(*space, smallSpace());
  // A tunable may be any number.
  KernelSpace large = smallSpace();
  large.axes.back() = {"N", {UINT32_MAX, 3}, ""};
  large.defaults.tunables = {UINT32_MAX};
  space = parseSpace(spaceText(large));
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_EQ(*space, large);
}

// A host's vector of 0 lanes is LLVM's choice.
TEST(SpaceText, ReadsTheHosts) {
  KernelSpace space = smallSpace();
  space.target = KernelTarget::Host;
  space.choice(P::Vector).values = {0, 4};
  space.defaults[P::Vector] = 4;
  auto read = parseSpace(spaceText(space));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, space);
}

TEST(SpaceText, APartIsRefused) {
  const std::string text = spaceText(smallSpace());
  for (size_t at = 0; at < text.size(); ++at)
    EXPECT_FALSE(parseSpace(text.substr(0, at))) << text.substr(0, at);
  EXPECT_FALSE(parseSpace(text + " 1"));
  // Nor one without a field.
  const auto whole = nlohmann::json::parse(text);
  for (const auto &[name, value] : whole.items()) {
    auto part = whole;
    part.erase(name);
    EXPECT_FALSE(parseSpace(part.dump())) << name;
  }
}

// A bundle may come from anyone: what its numbers are used for divides by
// some, enumerates others and indexes by the rest.
TEST(SpaceText, NumbersThatCannotBeAreRefused) {
  auto one = [](const std::string &name) {
    return "{\"name\":\"" + name + "\",\"reason\":\"\",\"values\":[1]}";
  };
  const std::string items = one("items"), vector = one("vector"),
                    minBlocks = one("min_blocks"), clusterX = one("cluster_x");
  std::string many,
      tunables = "{\"name\":\"T\",\"reason\":\"\",\"values\":[8]}";
  for (int k = 0; k < 64; ++k)
    many += "64,";
  for (int k = 0; k < 8; ++k)
    tunables += ",{\"name\":\"T\",\"reason\":\"\",\"values\":[8]}";
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[32,64,128]", "[0]"},
           {"[32,64,128]", "[]"},
           {"[32,64,128]", "[64,32,128]"},
           {"[32,64,128]", "[0,64,128]"},
           {"[32,64,128]", "[32,64,1048577]"},
           {"[32,64,128]", "[" + many + "64]"},
           {"[32,64,128]", "[32,128]"}, // not the default's
           {items, "{\"name\":\"items\",\"reason\":\"\",\"values\":[0]}"},
           {vector, "{\"name\":\"vector\",\"reason\":\"\",\"values\":[0]}"},
           {minBlocks,
            "{\"name\":\"min_blocks\",\"reason\":\"\",\"values\":[0]}"},
           {clusterX,
            "{\"name\":\"cluster_x\",\"reason\":\"\",\"values\":[0]}"},
           {"\"block\":[64,1,1]", "\"block\":[64,0,1]"},
           {"\"block\":[64,1,1]", "\"block\":[4294967295,4294967295,1]"},
           {"\"relation\":0", "\"relation\":4"},
           {"{\"name\":\"DEPTH\",\"reason\":\"\",\"values\":[8,16]}", tunables},
           {"[8,16]", "[]"},
           {"\"tunables\":[8]", "\"tunables\":[]"},
           {"\"tunables\":[8]", "\"tunables\":[9]"},
           {"\"cuda\"", "\"GPU\""}}) {
    const std::string text = changed(from, to);
    auto space = parseSpace(text);
    ASSERT_FALSE(space) << text;
    EXPECT_EQ(space.error().kind, ErrorKind::Invalid);
  }
}

// A formula that takes more values than it has, that reads an axis or has an
// operation that is not there, or a unit of none, asks for more than there is.
TEST(SpaceText, FormulasThatCannotBeWorkedOutAreTooLarge) {
  const std::string steps = "[[1,10],[0,16],[4,0]]";
  for (const char *to : {"[]", "[[0,16],[4,0]]", "[[1,18],[0,16],[4,0]]",
                         "[[1,-1],[0,16],[4,0]]", "[[1,10],[0,0],[4,0]]",
                         "[[0,4611686018427387904],[0,4],[3,0]]", "[[3,0]]"}) {
    auto space = parseSpace(changed(steps, to));
    ASSERT_TRUE(space) << to << ": " << space.error().message;
    EXPECT_EQ(space->sharedBytesOf(space->defaults), uint64_t(INT64_MAX)) << to;
  }
  auto whole = parseSpace(changed(steps, steps));
  EXPECT_EQ(whole->sharedBytesOf(whole->defaults), 16u);
}

} // namespace
} // namespace mgpu::kernels
