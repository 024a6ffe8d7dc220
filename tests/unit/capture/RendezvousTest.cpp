// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RankMemory.h"

#include "tests/unit/device/RendezvousBody.h"

#include <thread>

namespace mgpu::capture {
namespace {

constexpr uint32_t numRanks = 3;

RankMemory makeMemory() {
  planner::Dag dag;
  dag.numDevices = numRanks;
  auto memory = RankMemory::make(dag, dag.numDevices);
  EXPECT_TRUE(memory) << memory.error().message;
  return std::move(*memory);
}

/// Calls `rank` in a thread for each rank.
void inRanks(const std::function<void(Rendezvous &)> &rank,
             std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
  const RankMemory memory = makeMemory();
  std::vector<std::thread> threads;
  for (uint32_t k = 0; k < numRanks; ++k)
    threads.emplace_back([&, k] { rank(*memory.rendezvous(k, deadline)); });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Rendezvous, AllGetWhatEachGaveRoundAfterRound) {
  inRanks([](Rendezvous &others) { device::checkExchange(others, 10); });
}

TEST(Rendezvous, TheLargestIsThatOfAll) { inRanks(device::checkLargest); }

TEST(Rendezvous, NobodyWaitsForARankThatGaveUp) { inRanks(device::checkAbort); }

TEST(Rendezvous, OneThatDoesNotComeIsNamed) {
  inRanks(device::checkLate, std::chrono::milliseconds(50));
}

TEST(Rendezvous, WhatIsTooLongIsAnErrorAndNotWritten) {
  const RankMemory memory = makeMemory();
  auto others = memory.rendezvous(1, std::chrono::milliseconds(1));
  auto all = others->exchange(Bytes(100'000));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::Internal);
}

} // namespace
} // namespace mgpu::capture
