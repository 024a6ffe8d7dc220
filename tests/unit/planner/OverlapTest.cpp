// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/search/MemoryBound.h"
#include "planner/schedule/search/OverlapPlan.h"
#include "planner/schedule/search/OverlapSearch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::search;

static Dag randomDag(uint64_t seed, uint32_t n) {
  Random rng(seed);
  std::string text = R"({"format":"mgpu-dag/2","name":"r","devices":2,)"
                     R"("spmd":true,"resident_bytes":1000,"nodes":[)";
  for (uint32_t i = 0; i < n; ++i) {
    std::string deps;
    for (uint32_t d = i < 8 ? 0 : i - 8; d < i; ++d)
      if (rng.below(4) == 0)
        deps += fmt::format("{}{}", deps.empty() ? "" : ",", d);
    bool collective = rng.below(4) == 0;
    text += fmt::format(
        R"({}{{"id":{},"kind":"{}","name":"n","out_bytes":{},"deps":[{}],)"
        R"("duration_us":{}{}}})",
        i ? "," : "", i, collective ? "all_reduce" : "kernel",
        256 * rng.below(40), deps, 1 + rng.below(20),
        collective ? R"(,"bytes":8,"group":2)" : "");
  }
  Result<Dag> dag = parseDagJson(text + "]}", "r");
  EXPECT_TRUE(dag) << dag.error().message;
  return std::move(*dag);
}

/// Live bytes by definition, at each start in turn.
static uint64_t peakByDefinition(const OverlapModel &model,
                                 const OverlapSchedule &schedule) {
  uint64_t peak = 0;
  for (uint32_t at = 0; at < model.size(); ++at) {
    uint64_t live = model.residentBytes;
    for (uint32_t i = 0; i < model.size(); ++i) {
      double end = model.successors(i).empty() ? schedule.makespan : 0;
      for (uint32_t next : model.successors(i))
        end = std::max(end, schedule.starts[next] + model.durations[next]);
      if (schedule.starts[i] <= schedule.starts[at] &&
          end > schedule.starts[at])
        live += model.outBytes[i];
    }
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(Overlap, SchedulesAndPlansKeepEveryLimit) {
  int tight = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Dag dag = randomDag(seed, 90);
    OverlapModel model = *OverlapModel::create(dag);
    std::vector<double> keys(model.size());
    std::iota(keys.begin(), keys.end(), 0.0);
    std::vector<uint32_t> low = lowMemoryOrder(model, keys);
    uint64_t least = sequentialPeak(model, low);
    GuardedList list(model);
    OverlapBounds bounds = makespanBounds(model);
    double previous = 0;
    for (uint64_t limit : {uint64_t(1) << 40, least + 2000, least}) {
      OverlapSchedule schedule;
      ASSERT_TRUE(list.run(low, pathPriorities(model), limit, schedule));
      Result<void> legal = check(model, schedule);
      EXPECT_TRUE(legal) << legal.error().message;
      EXPECT_LE(peakMemory(model, schedule), limit);
      EXPECT_EQ(peakMemory(model, schedule), peakByDefinition(model, schedule));
      EXPECT_GE(schedule.makespan, bounds.makespan * (1 - 1e-12));
      tight += previous > 0 && schedule.makespan > previous;
      previous = schedule.makespan;
      Plan plan = makePlan(model, schedule, dag);
      Result<void> verdict = verify(plan, dag, {2, UINT64_MAX});
      EXPECT_TRUE(verdict) << verdict.error().message;
    }
    OverlapSchedule schedule;
    EXPECT_FALSE(list.run(low, pathPriorities(model), least - 1, schedule));
  }
  EXPECT_GT(tight, 5); // the limits did bind
}

TEST(Overlap, CheckFindsWhatIsWrong) {
  Dag dag = randomDag(3, 60);
  OverlapModel model = *OverlapModel::create(dag);
  OverlapSearch search(model, UINT64_MAX / 4, 1, {});
  ASSERT_TRUE(search.first());
  OverlapSchedule good = search.best();
  ASSERT_TRUE(check(model, good));
  int found = 0;
  for (uint32_t i = 0; i < model.size(); ++i) {
    OverlapSchedule bad = good;
    bad.starts[i] = std::max(0.0, bad.starts[i] - 0.5);
    found += !check(model, bad);
  }
  EXPECT_GT(found, 40);
}

TEST(Overlap, SearchImprovesAndRepeats) {
  Dag dag = randomDag(11, 300);
  OverlapModel model = *OverlapModel::create(dag, 2);
  OverlapBounds bounds = makespanBounds(model);
  auto run = [&](uint64_t seed) {
    OverlapSearch search(model, UINT64_MAX / 4, seed, {});
    EXPECT_TRUE(search.first());
    double first = search.best().makespan;
    search.setBound(bounds.makespan);
    rcpsp::Budget budget(1e6, 150);
    search.improve(budget);
    EXPECT_TRUE(check(model, search.best()));
    EXPECT_LE(search.best().makespan, first);
    return search.best().starts;
  };
  EXPECT_EQ(run(1), run(1));
}

/// The least peak over all orders of a small DAG, by sets of ended nodes.
static uint64_t leastPeakExhaustive(const OverlapModel &model) {
  uint32_t n = model.size();
  std::vector<uint64_t> best(size_t(1) << n, UINT64_MAX);
  best[0] = 0;
  for (uint32_t set = 0; set < best.size(); ++set) {
    if (best[set] == UINT64_MAX)
      continue;
    uint64_t live = model.residentBytes;
    for (uint32_t i = 0; i < n; ++i) {
      bool needed = model.successors(i).empty();
      for (uint32_t next : model.successors(i))
        needed = needed || !(set >> next & 1);
      if ((set >> i & 1) && needed)
        live += model.outBytes[i];
    }
    for (uint32_t i = 0; i < n; ++i) {
      bool ready = !(set >> i & 1);
      for (uint32_t before : model.predecessors(i))
        ready = ready && (set >> before & 1);
      if (ready) {
        uint64_t &to = best[set | 1u << i];
        to = std::min(to, std::max(best[set], live + model.outBytes[i]));
      }
    }
  }
  return best.back();
}

TEST(Overlap, MemoryBoundNeverExceedsTheLeastPeak) {
  int equal = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    OverlapModel model = *OverlapModel::create(randomDag(seed, 12));
    std::vector<uint32_t> order(model.size());
    std::iota(order.begin(), order.end(), 0u);
    uint64_t least = leastPeakExhaustive(model);
    MemoryBound bound = memoryBound(model, order, 12, UINT64_MAX);
    EXPECT_LE(bound.bytes, least) << seed;
    EXPECT_GE(sequentialPeak(model, order), least) << seed;
    equal += bound.bytes == least;
    // What it says is live is what it counts.
    uint64_t sum = model.residentBytes + model.outBytes[bound.node];
    for (uint32_t node : bound.live)
      sum += model.outBytes[node];
    EXPECT_EQ(sum, bound.bytes) << seed;
  }
  EXPECT_GT(equal, 15); // and it is often tight
}
