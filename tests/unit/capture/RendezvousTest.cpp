// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RankMemory.h"

#include <gtest/gtest.h>

#include <thread>

namespace mgpu::capture {
namespace {

constexpr uint32_t numRanks = 3;

RankMemory makeMemory() {
  planner::Dag dag;
  dag.numDevices = numRanks;
  auto memory = RankMemory::make(dag);
  EXPECT_TRUE(memory) << memory.error().message;
  return std::move(*memory);
}

/// Calls `rank` in a thread for each rank.
void inRanks(const RankMemory &memory,
             const std::function<void(uint32_t, Rendezvous &)> &rank) {
  std::vector<std::thread> threads;
  for (uint32_t k = 0; k < numRanks; ++k)
    threads.emplace_back([&, k] {
      auto others = memory.rendezvous(k, std::chrono::seconds(20));
      rank(k, *others);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Rendezvous, AllGetWhatEachGaveRoundAfterRound) {
  const RankMemory memory = makeMemory();
  inRanks(memory, [](uint32_t rank, Rendezvous &others) {
    for (uint32_t round = 0; round < 50; ++round) {
      auto given = [&](uint32_t of) { // of other lengths, and none at all
        return Bytes(of * (round % 4) * 10, std::byte(of + round));
      };
      auto all = others.exchange(given(rank));
      ASSERT_TRUE(all) << all.error().message;
      ASSERT_EQ(all->size(), numRanks);
      for (uint32_t of = 0; of < numRanks; ++of)
        EXPECT_EQ((*all)[of], given(of)) << "round " << round;
    }
  });
}

TEST(Rendezvous, WhatIsTooLongIsAnErrorAndNotWritten) {
  const RankMemory memory = makeMemory();
  auto others = memory.rendezvous(1, std::chrono::milliseconds(1));
  auto all = others->exchange(Bytes(100'000));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::Internal);
}

TEST(Rendezvous, NobodyWaitsForARankThatGaveUp) {
  const RankMemory memory = makeMemory();
  inRanks(memory, [](uint32_t rank, Rendezvous &others) {
    if (rank == 0)
      return others.abort();
    EXPECT_FALSE(others.meet());
    EXPECT_FALSE(others.watch());
    EXPECT_FALSE(others.exchange({}));
  });
}

TEST(Rendezvous, OneThatDoesNotComeIsNamed) {
  const RankMemory memory = makeMemory();
  auto late = memory.rendezvous(2, std::chrono::milliseconds(5))->meet();
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("rank 0"), std::string::npos)
      << late.error().message;
}

} // namespace
} // namespace mgpu::capture
