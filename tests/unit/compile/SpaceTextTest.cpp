// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/SpaceText.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mgpu::kernels {
namespace {

using P = planner::KernelParameter;

// What a whole one reads back to is a matter of bundles, which keep them
// (tests/unit/capture/BundleTest.cpp).
planner::KernelSpace smallSpace() {
  planner::KernelSpace space;
  space.target = planner::KernelTarget::Cuda;
  space.block = {64, 1, 1};
  space.maxGrid = {4, 1, 1};
  space.reshapable = true;
  for (size_t p = 0; p < planner::numKernelParameters; ++p)
    space.choices.push_back({P(p), {1}, ""});
  space.choices[size_t(P::BlockX)].values = {32, 64, 128};
  space.choices[size_t(P::TileX)].values = {0};
  space.choices[size_t(P::TileY)].values = {0};
  space.choices[size_t(P::Unroll)].values = {0};
  space.tunables = {{"DEPTH", {8, 16}}};
  space.tiles = {{4, {true, false, false}, {2, 0, 0}}};
  space.defaults.values = {64, 1, 1, 1, 1, 0, 1, 0, 0, 1};
  space.defaults.numTunables = 1;
  space.defaults.tunables = {8};
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
  planner::KernelSpace large = smallSpace();
  large.tunables = {{"N", {UINT32_MAX, 3}}};
  large.defaults.tunables = {UINT32_MAX};
  large.tiles.clear();
  space = parseSpace(spaceText(large));
  ASSERT_TRUE(space) << space.error().message;
  EXPECT_EQ(*space, large);
}

// A host's vector of 0 lanes is LLVM's choice.
TEST(SpaceText, ReadsTheHosts) {
  planner::KernelSpace space = smallSpace();
  space.target = planner::KernelTarget::Host;
  space.choices[size_t(P::Vector)].values = {0, 4};
  space.tiles.clear();
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
    return "\"" + name + "\":{\"reason\":\"\",\"values\":[1]}";
  };
  const std::string items = one("items"), vector = one("vector"),
                    minBlocks = one("min_blocks"), clusterX = one("cluster_x");
  std::string many, tunables = "{\"name\":\"T\",\"values\":[8]}";
  for (int k = 0; k < 64; ++k)
    many += "64,";
  for (int k = 0; k < 8; ++k)
    tunables += ",{\"name\":\"T\",\"values\":[8]}";
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[32,64,128]", "[0]"},
           {"[32,64,128]", "[]"},
           {"[32,64,128]", "[64,32,128]"},
           {"[32,64,128]", "[0,64,128]"},
           {"[32,64,128]", "[32,64,1048577]"},
           {"[32,64,128]", "[" + many + "64]"},
           {"[32,64,128]", "[32,128]"}, // not the default's
           {items, "\"items\":{\"reason\":\"\",\"values\":[0]}"},
           {vector, "\"vector\":{\"reason\":\"\",\"values\":[0]}"},
           {minBlocks, "\"min_blocks\":{\"reason\":\"\",\"values\":[0]}"},
           {clusterX, "\"cluster_x\":{\"reason\":\"\",\"values\":[0]}"},
           {"\"block\":[64,1,1]", "\"block\":[64,0,1]"},
           {"\"block\":[64,1,1]", "\"block\":[4294967295,4294967295,1]"},
           // By a tunable that is not there.
           {"\"staged_bytes\":0,\"staged_padding\":1,\"staged_tunables\":1",
            "\"staged_bytes\":4,\"staged_padding\":1,\"staged_tunables\":2"},
           {"[{\"name\":\"DEPTH\",\"values\":[8,16]}]", "[" + tunables + "]"},
           {"[8,16]", "[]"},
           {"\"tunables\":[8]", "\"tunables\":[]"},
           {"\"tunables\":[8]", "\"tunables\":[9]"},
           {"[true,false,false]", "[2,false,false]"},
           {"[2,0,0]", "[1025,0,0]"},
           {"\"element_bytes\":4", "\"element_bytes\":0"},
           {"\"element_bytes\":4", "\"element_bytes\":17"},
           {"\"cuda\"", "\"GPU\""}}) {
    const std::string text = changed(from, to);
    auto space = parseSpace(text);
    ASSERT_FALSE(space) << text;
    EXPECT_EQ(space.error().kind, ErrorKind::Invalid);
  }
}

} // namespace
} // namespace mgpu::kernels
