// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Environment.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <set>
#include <thread>

namespace mgpu::bench {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set))
      cpus.push_back(cpu);
  return cpus;
}

TEST(Pinning, TheOrderIsOfAllAllowedCpusEachOnce) {
  const std::vector<int> order = cpusInOrder(), all = allowed();
  EXPECT_TRUE(
      std::is_permutation(order.begin(), order.end(), all.begin(), all.end()));
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(cpusFor(order, 1), std::vector<int>{order[0]});
  EXPECT_EQ(cpusFor(order, uint32_t(order.size())), order);
  EXPECT_TRUE(cpusFor(order, uint32_t(order.size()) + 1).empty());
}

TEST(Pinning, AThreadStaysAndIsGivenBack) {
  const std::vector<int> before = allowed();
  for (int cpu : before) {
    {
      PinnedThread pinned(cpu);
      EXPECT_TRUE(pinned.isPinned());
      EXPECT_EQ(allowed(), std::vector<int>{cpu});
      EXPECT_EQ(sched_getcpu(), cpu);
      // What it is pinned to is all there is to pin to.
      EXPECT_EQ(cpusInOrder(), std::vector<int>{cpu});
    }
    EXPECT_EQ(allowed(), before);
  }
}

TEST(Pinning, ACpuThatMayNotBeUsedIsNot) {
  const std::vector<int> before = allowed();
  std::thread([&] {
    PinnedThread outer(before.back()); // as `taskset` would
    EXPECT_EQ(allowed(), std::vector<int>{before.back()});
    for (int cpu : {before.front() == before.back() ? 1 << 20 : before.front(),
                    -1, CPU_SETSIZE}) {
      PinnedThread none(cpu);
      EXPECT_FALSE(none.isPinned());
      EXPECT_EQ(allowed(), std::vector<int>{before.back()});
    }
  }).join();
  EXPECT_EQ(allowed(), before);
}

TEST(Pinning, WhoAsksForItGetsACpuForEachThreadOrASentence) {
  const auto all = uint32_t(allowed().size());
  auto cpus = cpusToPin(all);
  ASSERT_TRUE(cpus) << cpus.error().message;
  EXPECT_EQ(cpus->size(), all);
  auto refused = cpusToPin(all + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Usage);
  EXPECT_NE(refused.error().message.find(fmt::format(
                "replays with {} threads and this process may use {} CPU",
                all + 1, all)),
            std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(pinForGood(CPU_SETSIZE));
}

TEST(Pinning, SaysWhichCpus) {
  EXPECT_EQ(cpusText({}), "none");
  EXPECT_EQ(cpusText({3, 0}), "3,0");
}

} // namespace
} // namespace mgpu::bench
