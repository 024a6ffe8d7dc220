// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random instances, with a checker and an exhaustive optimum of the test's own.
#include "planner/schedule/exact/BidirectionalPass.h"
#include "planner/schedule/exact/Bounds.h"
#include "planner/schedule/exact/ConflictSearch.h"
#include "planner/schedule/exact/GeneticSearch.h"
#include "planner/schedule/exact/Patterson.h"
#include "planner/schedule/exact/Solver.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner::exact;
namespace rcpsp = mgpu::planner::exact;

static exact::Problem::Description randomDescription(uint64_t seed,
                                                     uint32_t n) {
  Random rng(seed);
  exact::Problem::Description d;
  uint32_t resources = 1 + rng.below(5); // past four: two words
  for (uint32_t r = 0; r < resources; ++r)
    d.capacities.push_back(int32_t(2 + rng.below(6)));
  for (uint32_t a = 0; a < n; ++a) {
    d.durations.push_back(Time(rng.below(5)));
    for (uint32_t r = 0; r < resources; ++r)
      d.demands.push_back(
          rng.below(3) ? int32_t(rng.below(uint32_t(d.capacities[r]) + 1)) : 0);
    for (uint32_t b = 0; b < a; ++b)
      if (rng.below(6) == 0)
        d.precedences.emplace_back(b, a);
  }
  return d;
}

/// Every unit of time, every precedence; knows nothing of Problem.
static bool isSchedule(const exact::Problem::Description &d,
                       const Starts &starts) {
  Time end = 0;
  for (size_t a = 0; a < starts.size(); ++a) {
    if (starts[a] < 0)
      return false;
    end = std::max(end, starts[a] + d.durations[a]);
  }
  for (auto [a, b] : d.precedences)
    if (starts[a] + d.durations[a] > starts[b])
      return false;
  for (Time t = 0; t < end; ++t)
    for (size_t r = 0; r < d.capacities.size(); ++r) {
      int32_t used = 0;
      for (size_t a = 0; a < starts.size(); ++a)
        if (starts[a] <= t && t < starts[a] + d.durations[a])
          used += d.demands[a * d.capacities.size() + r];
      if (used > d.capacities[r])
        return false;
    }
  return true;
}

/// The least makespan over all precedence-feasible lists: the serial scheme
/// reaches an optimum from one of them.
static Time exhaustive(const exact::Problem::Description &d,
                       const exact::Problem &problem) {
  ScheduleGenerator generator(problem);
  std::vector<uint32_t> list(problem.size());
  for (uint32_t a = 0; a < list.size(); ++a)
    list[a] = a;
  Time best = problem.horizon();
  do {
    std::vector<uint32_t> place(list.size());
    for (uint32_t k = 0; k < list.size(); ++k)
      place[list[k]] = k;
    bool legal =
        std::all_of(d.precedences.begin(), d.precedences.end(), [&](auto edge) {
          return place[edge.first] < place[edge.second];
        });
    Starts starts;
    if (legal)
      best = std::min(best, generator.serial(list, starts));
  } while (std::next_permutation(list.begin(), list.end()));
  return best;
}

TEST(Rcpsp, EveryScheduleKeepsTheConstraints) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    exact::Problem::Description d = randomDescription(seed, 25);
    exact::Problem problem = *exact::Problem::create(d);
    ScheduleGenerator generator(problem);
    Justifier justifier(problem);
    for (PriorityRule rule : allPriorityRules) {
      Keys keys = priorityKeys(problem, rule);
      Starts parallel, serial;
      std::vector<uint32_t> list;
      Time before = generator.parallel(keys, parallel);
      generator.orderByKeys(keys, list);
      generator.serial(list, serial);
      EXPECT_TRUE(isSchedule(d, parallel)) << seed;
      EXPECT_TRUE(isSchedule(d, serial)) << seed;
      Time late = justifier.right(parallel);
      EXPECT_TRUE(isSchedule(d, parallel)) << seed;
      Time early = justifier.left(parallel);
      EXPECT_TRUE(isSchedule(d, parallel)) << seed;
      EXPECT_LE(late, before);
      EXPECT_LE(early, late);
      EXPECT_EQ(early, problem.makespan(parallel));
    }
    EXPECT_TRUE(isSchedule(d, listPass(problem)));
  }
}

TEST(Rcpsp, CheckAgreesWithTheTest) {
  int legal = 0, illegal = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    exact::Problem::Description d = randomDescription(seed, 6);
    exact::Problem problem = *exact::Problem::create(d);
    Random rng(seed);
    Starts starts = listPass(problem);
    starts[rng.below(6)] += Time(rng.below(5)) - 2;
    bool expected = isSchedule(d, starts);
    EXPECT_EQ(problem.check(starts).has_value(), expected) << seed;
    (expected ? legal : illegal)++;
  }
  EXPECT_GT(legal, 30);
  EXPECT_GT(illegal, 30);
}

TEST(Rcpsp, ExactSearchProvesTheExhaustiveOptimum) {
  int searched = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    exact::Problem::Description d = randomDescription(seed, 7);
    exact::Problem problem = *exact::Problem::create(d);
    Time optimum = exhaustive(d, problem);
    EXPECT_LE(energeticPaths(problem).length, optimum) << seed;
    // From the worst schedule there is: one activity after the other.
    Starts starts(problem.size());
    Time time = 0;
    for (uint32_t a : problem.topological()) {
      starts[a] = time;
      time += problem.duration(a);
    }
    ConflictSearch exact(problem, starts);
    Budget budget(60, 100000);
    ConflictSearch::Outcome outcome;
    while ((outcome = exact.run(1000, budget)) !=
               ConflictSearch::Outcome::Proven &&
           !budget.exhausted())
      searched += outcome == ConflictSearch::Outcome::Improved;
    EXPECT_EQ(outcome, ConflictSearch::Outcome::Proven) << seed;
    EXPECT_EQ(exact.makespan(), optimum) << seed;
    EXPECT_TRUE(isSchedule(d, exact.best())) << seed;
  }
  EXPECT_GT(searched, 15); // the first schedules were not optimal
}

TEST(Rcpsp, TrailKnowsWhatItsBoundsMakeTrue) {
  Random rng(3);
  BoundTrail trail;
  std::vector<std::pair<Time, Time>> domains;
  for (Time x = 0; x < 5; ++x) {
    domains.emplace_back(x, x + Time(rng.below(9)) + 1);
    trail.addVariable(domains.back().first, domains.back().second);
  }
  uint32_t assigned = 0;
  for (int step = 0; step < 3000; ++step) {
    uint32_t x = uint32_t(rng.below(5));
    if (rng.below(3) == 0 && trail.size() > 0) {
      trail.undo();
    } else if (!trail.isFixed(x)) {
      Time low = trail.lower(x), high = trail.upper(x);
      Time room = Time(rng.below(uint64_t(high - low)));
      trail.assign(rng.below(2) ? trail.atLeast(x, high - room)
                                : trail.atMost(x, low + room),
                   BoundTrail::none, {});
      ++assigned;
    }
    for (uint32_t y = 0; y < 5; ++y)
      for (Time v = domains[y].first + 1; v <= domains[y].second; ++v) {
        Literal atLeast = trail.atLeast(y, v);
        ASSERT_EQ(trail.isTrue(atLeast), trail.lower(y) >= v);
        ASSERT_EQ(trail.isFalse(atLeast), trail.upper(y) < v);
        ASSERT_EQ(atLeast, negated(trail.atMost(y, v - 1)));
      }
  }
  EXPECT_GT(assigned, 500u);
}

// A wrong explanation ends in a proof of too much: something shorter exists.
TEST(Rcpsp, NothingFoundIsShorterThanWhatIsProven) {
  uint64_t conflicts = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    exact::Problem::Description d = randomDescription(seed, 18);
    for (Time &duration : d.durations)
      duration = 2 * duration + 1;
    for (int32_t &demand : d.demands)
      demand = demand / 2;
    std::erase_if(d.precedences,
                  [&](auto edge) { return (edge.first + edge.second) % 3; });
    exact::Problem problem = *exact::Problem::create(d);
    Starts starts(problem.size());
    Time time = 0;
    for (uint32_t a : problem.topological()) {
      starts[a] = time;
      time += problem.duration(a);
    }
    ConflictSearch exact(problem, starts);
    Budget budget(60, 20000);
    ConflictSearch::Outcome outcome = ConflictSearch::Outcome::Improved;
    while (outcome != ConflictSearch::Outcome::Proven && !budget.exhausted())
      outcome = exact.run(1000, budget);
    conflicts += budget.spentNodes();
    EXPECT_TRUE(isSchedule(d, exact.best())) << seed;
    if (outcome != ConflictSearch::Outcome::Proven)
      continue;
    GeneticSearch genetic(problem, seed);
    for (int k = 0; k < 800; ++k)
      genetic.step();
    EXPECT_GE(genetic.makespan(), exact.makespan()) << seed;
  }
  EXPECT_GT(conflicts, 1000u); // it did search
}

TEST(Rcpsp, SolveProvesWhatTwoSeedsAgreeOn) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    exact::Problem::Description d = randomDescription(seed, 22);
    exact::Problem problem = *exact::Problem::create(d);
    Solution one = solve(problem, Budget(120, 40000), 1);
    Solution two = solve(problem, Budget(120, 40000), 2);
    EXPECT_TRUE(isSchedule(d, one.starts)) << seed;
    ASSERT_TRUE(one.proven()) << seed;
    ASSERT_TRUE(two.proven()) << seed;
    EXPECT_EQ(one.makespan, two.makespan) << seed;
    EXPECT_EQ(one.makespan, problem.makespan(one.starts)) << seed;
  }
}

TEST(Rcpsp, NodesAndSeedDecideTheSolution) {
  exact::Problem problem = *exact::Problem::create(randomDescription(5, 60));
  GeneticSearch one(problem, 7), two(problem, 7), other(problem, 8);
  bool differs = false;
  for (int k = 0; k < 300; ++k) {
    one.step();
    two.step();
    other.step();
    ASSERT_EQ(one.best(), two.best());
    differs = differs || one.best() != other.best();
  }
  EXPECT_TRUE(differs);
  EXPECT_EQ(solve(problem, Budget(1e6, 500), 3).starts,
            solve(problem, Budget(1e6, 500), 3).starts);
}

// Past the end of the first populations, each of which begins anew.
TEST(Rcpsp, NewPopulationsKeepTheBestAndTheConstraints) {
  exact::Problem::Description d = randomDescription(9, 30);
  exact::Problem problem = *exact::Problem::create(d);
  GeneticSearch one(problem, 4), two(problem, 4);
  Time before = one.makespan();
  for (int k = 0; k < 25000; ++k) {
    bool improved = one.step();
    ASSERT_EQ(improved, one.makespan() < before);
    ASSERT_LE(one.makespan(), before);
    before = one.makespan();
    two.step();
  }
  EXPECT_TRUE(isSchedule(d, one.best()));
  EXPECT_EQ(one.best(), two.best());
}

// The work before and after an activity narrows its starts for good, so no
// schedule may break those limits.
TEST(Rcpsp, HeadsAndTailsHoldOfEverySchedule) {
  int beyondPaths = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    exact::Problem problem =
        *exact::Problem::create(randomDescription(seed, 20));
    Paths paths = energeticPaths(problem), plain = longestPaths(problem);
    GeneticSearch genetic(problem, seed);
    for (int k = 0; k < 100; ++k)
      genetic.step();
    const Starts &starts = genetic.best();
    for (uint32_t a = 0; a < problem.size(); ++a) {
      EXPECT_GE(starts[a], paths.heads[a]) << seed;
      EXPECT_LE(starts[a] + problem.duration(a) + paths.tails[a],
                genetic.makespan())
          << seed;
      EXPECT_GE(paths.heads[a], plain.heads[a]);
      beyondPaths += paths.heads[a] > plain.heads[a];
    }
  }
  EXPECT_GT(beyondPaths, 20);
}

TEST(Rcpsp, CreateRefusesWhatIsNoInstance) {
  auto refuse = [](exact::Problem::Description d, std::string_view word) {
    Result<exact::Problem> problem = exact::Problem::create(std::move(d));
    ASSERT_FALSE(problem) << word;
    EXPECT_NE(problem.error().message.find(word), std::string::npos)
        << problem.error().message;
  };
  refuse({{1}, {1, 1}, {1, 1}, {{0, 1}, {1, 0}}}, "cycle");
  refuse({{1}, {1}, {2}, {}}, "needs 2");
  refuse({{1}, {-1}, {1}, {}}, "negative duration");
  refuse({{1}, {1}, {}, {}}, "demands");
  refuse({{1}, {1}, {1}, {{0, 1}}}, "beyond");
  refuse({{1}, {exact::Problem::maxHorizon, 1}, {1, 1}, {}}, "coarser");
}

TEST(Rcpsp, ReadsPattersonAndNamesTheLineOfAFault) {
  Result<exact::Problem> problem =
      parsePatterson("3 1\n2\n0 0 2 2 3\n4 2 0\n3 1 0\n", "p");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->size(), 3u);
  EXPECT_EQ(problem->duration(1), 4);
  EXPECT_EQ(problem->demand(2, 0), 1);
  EXPECT_EQ(problem->predecessors(2).size(), 1u);
  EXPECT_EQ(solve(*problem, Budget(1)).makespan, 7);
  for (auto [text, words] :
       {std::pair("3 1\n2\n0 0 2 2 3\n4 x 0\n", "line 4"),
        std::pair("3 1\n2\n0 0 1 9\n", "line 3"),
        std::pair("1 0\n5 0\n7", "line 3"), std::pair("2 1\n1\n", "ends")}) {
    Result<exact::Problem> bad = parsePatterson(text, "p");
    ASSERT_FALSE(bad) << text;
    EXPECT_NE(bad.error().message.find(words), std::string::npos)
        << bad.error().message;
  }
  Result<SolutionList> list =
      parseSolutionList("Par Inst\n---\n1 1 43 0.3\n1\t2\t47\tTue\n", "s");
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(list->size(), 2u);
  EXPECT_EQ(list->at({1, 2}), 47);
  EXPECT_FALSE(parseSolutionList("words only\n", "s"));
  EXPECT_FALSE(parseSolutionList("1 1 4\n1 1 5\n", "s"));
}
