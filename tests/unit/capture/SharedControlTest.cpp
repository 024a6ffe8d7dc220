// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RankMemory.h"

#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace mgpu;
using capture::SharedControl;

TEST(SharedControl, AllHearTheLargestOfTheSameRound) {
  constexpr uint32_t ranks = 4;
  constexpr int rounds = 500;
  const auto deadline = std::chrono::seconds(20);
  auto control = std::make_unique<SharedControl>();
  std::vector<int> wrong(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      for (int round = 0; round < rounds; ++round) {
        // By turns another rank has most; less than in the round before.
        const uint32_t most = uint32_t(round) % ranks;
        const double mine = rounds - round + (rank == most ? 0.5 : 0);
        auto heard = control->largest(rank, ranks, mine, deadline);
        wrong[rank] += !heard || *heard != rounds - round + 0.5;
        if (round % 3 == 0)
          wrong[rank] += !control->meet(rank, ranks, deadline);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(ranks));
}

TEST(SharedControl, NobodyWaitsForOneThatGaveUp) {
  auto control = std::make_unique<SharedControl>();
  auto late = control->largest(0, 2, 1, std::chrono::milliseconds(20));
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("waited 20 ms for rank 1"),
            std::string::npos);
  EXPECT_EQ(late.error().cause, ErrorCause::Own);
  control->abort();
  auto given = control->largest(1, 2, 1, std::chrono::seconds(20));
  ASSERT_FALSE(given);
  EXPECT_NE(given.error().message.find("another GPU failed"),
            std::string::npos);
  EXPECT_EQ(given.error().cause, ErrorCause::OtherRank);
}

} // namespace
