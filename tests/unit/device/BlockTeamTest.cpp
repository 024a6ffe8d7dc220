// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/BlockTeam.h"

#include <gtest/gtest.h>

namespace mgpu::device {

namespace {

std::atomic<uint32_t> *counter(const uint64_t *arguments) {
  return reinterpret_cast<std::atomic<uint32_t> *>(arguments[0]);
}

/// Each block adds its number plus one, and waits until all `arguments[1]`
/// blocks of this round have.
void meet(const uint64_t *arguments, const kernels::HostLaunch *launch) {
  std::atomic<uint32_t> *seen = counter(arguments);
  EXPECT_EQ(launch->lastBlock, launch->firstBlock + 1);
  seen->fetch_add(1);
  while (seen->load() % arguments[1] != 0)
    std::this_thread::yield();
  auto *numbers = reinterpret_cast<uint32_t *>(arguments[2]);
  ++numbers[launch->firstBlock];
  seen[1].fetch_add(1); // a block of the next round comes after all of this one
}

} // namespace

TEST(BlockTeam, BlocksWaitForEachOtherInEachRound) {
  constexpr uint32_t blocks = 7, rounds = 30;
  std::atomic<uint32_t> seen[2] = {0, 0};
  std::vector<uint32_t> numbers(blocks, 0);
  kernels::HostLaunch launch{{blocks, 1, 1}, 0,         0,
                             blocks,         {0, 0, 0}, {blocks, 1, 1}};
  auto team = BlockTeam::create(meet,
                                {reinterpret_cast<uint64_t>(&seen[0]), blocks,
                                 reinterpret_cast<uint64_t>(numbers.data())},
                                launch);
  ASSERT_TRUE(team);
  for (uint32_t round = 1; round <= rounds; ++round) {
    (*team)->run();
    EXPECT_EQ(seen[0].load(), round * blocks);
    EXPECT_EQ(seen[1].load(), round * blocks);
    for (uint32_t number : numbers)
      EXPECT_EQ(number, round);
  }
}

TEST(BlockTeam, NoRoundNeedsToRun) {
  kernels::HostLaunch launch{{3, 1, 1}, 0, 0, 3, {0, 0, 0}, {3, 1, 1}};
  std::atomic<uint32_t> seen[2] = {0, 0};
  auto team = BlockTeam::create(
      meet, {reinterpret_cast<uint64_t>(&seen[0]), 3, 0}, launch);
  ASSERT_TRUE(team);
  team->reset();
  EXPECT_EQ(seen[0].load(), 0u);
}

} // namespace mgpu::device
