// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/SpaceText.h"

#include <gtest/gtest.h>

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

// A host's vector of 0 lanes is LLVM's choice, and an older bundle's space has
// no tiles.
TEST(SpaceText, ReadsTheHostsAndOlderOnes) {
  planner::KernelSpace space = smallSpace();
  space.target = planner::KernelTarget::Host;
  space.choices[size_t(P::Vector)].values = {0, 4};
  space.tiles.clear();
  EXPECT_EQ(spaceText(space).find("tiles"), std::string::npos);
  space.defaults[P::Vector] = 4;
  auto read = parseSpace(spaceText(space));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, space);
}

TEST(SpaceText, APartIsRefused) {
  const std::string text = spaceText(smallSpace());
  for (size_t at = 0; at < text.size(); ++at)
    if (text[at] == ' ')
      EXPECT_FALSE(parseSpace(text.substr(0, at))) << text.substr(0, at);
  EXPECT_FALSE(parseSpace(text + " 1"));
}

// A bundle may come from anyone: what its numbers are used for divides by
// some, enumerates others and indexes by the rest.
TEST(SpaceText, NumbersThatCannotBeAreRefused) {
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"block_x 3 32 64 128", "block_x 0 "},
           {"block_x 3 32 64 128", "block_x 3 64 32 128"},
           {"block_x 3 32 64 128", "block_x 3 0 64 128"},
           {"block_x 3 32 64 128", "block_x 3 32 64 1048577"},
           {"block_x 3 32 64 128", "block_x 65 32 64 128"},
           {"block_x 3 32 64 128", "block_x 2 32 128"}, // not the default's
           {"items 1 1", "items 1 0"},
           {"vector 1 1", "vector 1 0"},
           {"min_blocks 1 1", "min_blocks 1 0"},
           {"cluster_x 1 1", "cluster_x 1 0"},
           {"block 64 1 1", "block 64 0 1"},
           {"block 64 1 1", "block 4294967295 4294967295 1"},
           {"staged 0 1", "staged 4 2"}, // by a tunable that is not there
           {"tunables 1", "tunables 9"},
           {"\"DEPTH\" 2 8 16", "\"DEPTH\" 0 "},
           {"1 8", "0 "},
           {"tiles 1 4", "tiles 65 4"},
           {"tiles 1 4", "tiles 1 0"},
           {"tiles 1 4 1 2", "tiles 1 4 2 2"},
           {"tiles 1 4 1 2", "tiles 1 4 1 1025"},
           {"cuda", "card"}}) {
    const std::string text = changed(from, to);
    auto space = parseSpace(text);
    ASSERT_FALSE(space) << text;
    EXPECT_EQ(space.error().kind, ErrorKind::Invalid);
  }
}

} // namespace
} // namespace mgpu::kernels
