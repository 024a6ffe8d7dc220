// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/PlanProof.h"
#include "planner/schedule/Simulate.h"
#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/problem/FrozenProblem.h"
#include "planner/schedule/search/Decoders.h"
#include "planner/schedule/search/LowerPeak.h"
#include "planner/schedule/search/MemoryBound.h"
#include "planner/schedule/search/OverlapSearch.h"
#include "planner/schedule/search/WindowSearch.h"
#include "support/Random.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/planner/RandomProblem.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::search;
using namespace mgpu::planner::testing;

/// With `shares`, kernels take half of the SMs, a third, or some other share.
static Dag randomFile(uint64_t seed, uint32_t n, bool shares = false) {
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
        collective ? R"(,"bytes":8,"group":2)"
        : shares
            ? fmt::format(R"(,"sm_share":{})",
                          std::array{1.0, 0.5, 1. / 3, 0.3, 0.05}[rng.below(5)])
            : "");
  }
  Result<Dag> dag = parseDagJson(text + "]}", "r");
  EXPECT_TRUE(dag) << dag.error().message;
  return std::move(*dag);
}

/// Live bytes of the first device by definition, at each start in turn.
static uint64_t peakByDefinition(const Problem &problem,
                                 const Schedule &schedule) {
  uint64_t peak = 0;
  for (uint32_t at = 0; at < problem.size(); ++at) {
    uint64_t live = problem.devices[0].residentBytes;
    for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
      double first = schedule.makespan,
             last = problem.buffers[b].isKept ? schedule.makespan : 0;
      for (uint32_t user : problem.users[b]) {
        first = std::min(first, schedule.starts[user]);
        last = std::max(last, schedule.starts[user] + problem.durations[user]);
      }
      if (problem.buffers[b].device == 0 && first <= schedule.starts[at] &&
          last > schedule.starts[at])
        live += problem.buffers[b].bytes;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

static std::vector<double> timesOf(const std::vector<Claim> &claims) {
  std::vector<double> times;
  for (const Claim &claim : claims)
    times.push_back(claim.us);
  return times;
}

TEST(Overlap, WindowsGiveSchedulesOfEveryProblem) {
  int optimal = 0, problems = 0;
  for (RandomProblemOptions options : {RandomProblemOptions{7, 2, 1, false, 3},
                                       {7, 4, 3, false, 4},
                                       {7, 2, 2, true, 4}})
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Problem problem = randomProblem(seed, options);
      Certificate bound = makespanBound(problem);
      WindowSearch search(problem, seed);
      search.listPasses(timesOf(bound.heads), timesOf(bound.tails));
      double before = search.best().makespan;
      for (int k = 0; k < 100; ++k) {
        search.move();
        ASSERT_LE(search.best().makespan, before);
        before = search.best().makespan;
      }
      Result<void> legal = check(problem, search.best());
      ASSERT_TRUE(legal) << legal.error().message;
      const double least = leastMakespan(problem);
      EXPECT_GE(search.best().makespan, least - 1e-9);
      optimal += search.best().makespan < least + 1e-9;
      ++problems;
    }
  EXPECT_GT(optimal, problems * 9 / 10);
}

TEST(Overlap, SequencesThatFitAlwaysDecode) {
  int waits = 0;
  for (RandomProblemOptions options : {RandomProblemOptions{40, 2, 1, false, 9},
                                       {40, 4, 3, false, 9},
                                       {40, 3, 2, true, 9}})
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      Problem problem = randomProblem(seed, options);
      std::vector<uint32_t> order(problem.size());
      std::iota(order.begin(), order.end(), 0u);
      const std::vector<uint64_t> least = sequencePeakBytes(problem, order);
      SequenceDecoder decoder(problem);
      Schedule wide, narrow;
      ASSERT_TRUE(decoder.decode(
          order, std::vector<uint64_t>(least.size(), UINT64_MAX), wide.starts));
      wide.makespan = decoder.makespan();
      ASSERT_TRUE(decoder.decode(order, least, narrow.starts));
      narrow.makespan = decoder.makespan();
      for (const Schedule &schedule : {wide, narrow}) {
        Result<void> legal = check(problem, schedule);
        ASSERT_TRUE(legal) << legal.error().message;
        EXPECT_EQ(peakBytes(problem, schedule)[0],
                  peakByDefinition(problem, schedule));
      }
      for (size_t d = 0; d < least.size(); ++d)
        EXPECT_LE(peakBytes(problem, narrow)[d], least[d]);
      waits += narrow.makespan > wide.makespan;
    }
  EXPECT_GT(waits, 20); // the limits did bind
}

TEST(Overlap, ReorderedSequencesAreMeasuredAsNewOnes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Problem problem = randomProblem(seed, {30, 3, 2, false, 9});
    std::vector<uint32_t> order(problem.size());
    std::iota(order.begin(), order.end(), 0u);
    SequenceMemory memory(problem, order);
    const std::vector<uint64_t> none(problem.devices.size(), 0);
    Random random(seed);
    for (int k = 0; k < 40; ++k) {
      // Two neighbours without an edge change places.
      uint32_t at = uint32_t(random.below(problem.size() - 1));
      std::vector<uint32_t> part{memory.order()[at + 1], memory.order()[at]};
      auto needs = problem.before[part[0]];
      if (std::count(needs.begin(), needs.end(), part[1]))
        continue;
      memory.reorder(at, part, none);
      if (random.below(2))
        memory.undo();
      SequenceMemory fresh(problem, memory.order());
      for (uint32_t d = 0; d < none.size(); ++d)
        for (uint32_t place = 0; place < problem.size(); ++place)
          ASSERT_EQ(memory.live(d, place), fresh.live(d, place));
      EXPECT_EQ(memory.peaks(), sequencePeakBytes(problem, memory.order()));
    }
  }
}

struct Overlapped : OverlapOutcome {
  Plan plan;
};
/// The plan of a DAG whose times are all frozen, without transforms.
static Result<Overlapped> planOverlap(const Dag &dag, uint64_t limit,
                                      uint64_t seed, exact::Budget &budget,
                                      double scaleComm = 1) {
  PlanRequest request;
  request.memoryBytes = limit;
  request.seed = seed;
  request.scaleComm = scaleComm;
  MGPU_TRY_ASSIGN(TargetPlan made,
                  makePlan(dag, hostMachine(), request, &budget));
  return Overlapped{std::move(*made.overlap), std::move(made.plan)};
}

/// Plans under ever less memory: who finds one with less finds one with more.
TEST(Overlap, PlansKeepEveryLimit) {
  int lowered = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Dag dag = randomFile(seed, 60);
    bool isFound = true;
    uint64_t limit = uint64_t(1) << 40;
    for (int k = 0; k < 6; ++k) {
      exact::Budget budget(1e6, 60);
      Result<Overlapped> made = planOverlap(dag, limit, seed, budget);
      if (!made) {
        EXPECT_EQ(made.error().kind, ErrorKind::Invalid);
        ++refused;
        isFound = false;
        limit = limit * 97 / 100;
        continue;
      }
      EXPECT_TRUE(isFound) << "more memory was refused";
      EXPECT_LE(made->peakBytes, limit);
      EXPECT_LE(made->plan.arenaBytes[0] + dag.residentBytes, limit);
      EXPECT_TRUE(check(made->problem, made->schedule));
      EXPECT_TRUE(check(made->certificate, made->problem));
      EXPECT_TRUE(verify(made->plan, dag, {2, limit}));
      EXPECT_GE(made->plan.makespanUs, made->plan.lowerBoundUs * (1 - 1e-12));
      EXPECT_NE(made->plan.boundBy, BoundArgument::Unknown);
      lowered += k > 0; // the plan before took more
      limit = made->peakBytes * 99 / 100;
    }
  }
  EXPECT_GT(lowered, 4);
  EXPECT_GT(refused, 10);
}

/// Moves that lower the peak of so long a sequence would take minutes.
TEST(Overlap, LongProgramsThatFitInSomeOrderArePlanned) {
  std::string text = R"({"format":"mgpu-dag/2","name":"r","devices":1,)"
                     R"("spmd":true,"resident_bytes":0,"nodes":[)";
  for (uint32_t i = 0; i < 200'002; ++i)
    text += fmt::format(R"({}{{"id":{},"kind":"kernel","name":"n",)"
                        R"("out_bytes":{},"deps":[{}],"duration_us":1}})",
                        i ? "," : "", i, i % 2 ? 0 : 1'000'000,
                        i % 2 ? fmt::format("{}", i - 1) : "");
  Result<Dag> dag = parseDagJson(text + "]}", "r");
  ASSERT_TRUE(dag) << dag.error().message;
  constexpr uint64_t limit = 10'000'000;
  exact::Budget budget(1e9, 0);
  Result<Overlapped> made = planOverlap(*dag, limit, 1, budget);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_LE(made->peakBytes, limit);
  EXPECT_DOUBLE_EQ(made->plan.makespanUs, 200'002);
}

/// Limits from what every order takes up to what no plan exceeds.
static std::vector<uint64_t> limitsUpTo(uint64_t least, uint64_t most) {
  constexpr uint64_t count = 9;
  std::vector<uint64_t> limits;
  for (uint64_t k = 0; k <= count; ++k)
    limits.push_back(least + (most - least) * k / count);
  limits.push_back(INT64_MAX);
  return limits;
}

TEST(Overlap, PlansWithMoreMemoryAreNeverLonger) {
  int shorter = 0, refused = 0;
  for (uint32_t nodes : {9u, 30u, 60u, 120u})
    for (uint64_t seed = 1; seed <= sweep(6, 300); ++seed) {
      const Dag dag = randomFile(seed, nodes);
      exact::Budget none(1e9, 0);
      const uint64_t most = planOverlap(dag, INT64_MAX, seed, none)->peakBytes;
      double before = 0;
      for (uint64_t limit : limitsUpTo(most / 3, most + 512)) {
        exact::Budget budget(1e9, seed % 2 * 80);
        Result<Overlapped> made = planOverlap(dag, limit, seed, budget);
        if (!made) {
          ++refused;
          ASSERT_EQ(before, 0) << "more memory was refused: " << nodes << " "
                               << seed << " " << limit;
          continue;
        }
        const double makespan = made->plan.makespanUs;
        ASSERT_TRUE(before == 0 || makespan <= before)
            << nodes << " " << seed << " " << limit << ": " << makespan;
        shorter += before > 0 && makespan < before;
        before = makespan;
      }
      ASSERT_GT(before, 0);
    }
  EXPECT_GT(shorter, 10);
  EXPECT_GT(refused, 20);
}

/// What the search finds for problems of several devices with `limit` each.
static double searchedMakespan(Problem problem, uint64_t limit, uint64_t seed,
                               uint64_t moves) {
  for (ProblemDevice &device : problem.devices)
    device.memoryBytes = limit;
  Schedule best{{}, 1e9};
  OverlapSearch search(problem, seed, [&](const Schedule &schedule) {
    Result<void> legal = check(problem, schedule);
    EXPECT_TRUE(legal) << legal.error().message;
    if (!fits(problem, peakBytes(problem, schedule)))
      return 2.0;
    best = schedule;
    return 1.0;
  });
  exact::Budget budget(1e9, moves);
  if (search.first(budget))
    search.improve(makespanBound(problem), budget);
  return best.makespan;
}

TEST(Overlap, SearchesWithMoreMemoryAreNeverLonger) {
  int optimal = 0, problems = 0;
  for (RandomProblemOptions options : {RandomProblemOptions{6, 2, 1, false, 3},
                                       {6, 3, 3, false, 4},
                                       {6, 2, 2, true, 4},
                                       {50, 4, 2, false, 12},
                                       {50, 3, 2, true, 12}})
    for (uint64_t seed = 1; seed <= sweep(options.nodes > 6 ? 4 : 12, 300);
         ++seed) {
      Problem problem = randomProblem(seed, options);
      double before = 1e9;
      for (uint64_t limit : limitsUpTo(8000, 35000)) {
        const double found = searchedMakespan(problem, limit, seed, 100);
        ASSERT_LE(found, before) << seed << " " << limit;
        before = found;
        // What takes no time holds its memory for none, or for a moment.
        if (options.nodes > 6 || std::count(problem.durations.begin(),
                                            problem.durations.end(), 0) > 0)
          continue;
        for (ProblemDevice &device : problem.devices)
          device.memoryBytes = limit;
        const double least = leastMakespanWithin(problem);
        ASSERT_GE(found, least - 1e-9) << seed << " " << limit;
        optimal += least < 1e9 && found <= least + 1e-9;
        problems += least < 1e9;
      }
    }
  EXPECT_GT(problems, 50);
  EXPECT_GT(optimal, problems * 9 / 10);
}

/// The most that runs on a plan's streams at the start of any step, in shares
/// of the SMs, as an execution of its waits alone has it, with other durations
/// than planned.
static double mostShares(const Plan &plan, const Dag &dag, uint64_t seed) {
  Random random(seed);
  std::vector<double> begins(dag.nodes.size()), ends(dag.nodes.size());
  std::map<PlanStream, double> streams;
  for (const PlanStep &step : plan.steps) {
    double start = 0;
    for (NodeId wait : step.waits)
      start = std::max(start, ends[wait.value]);
    double &stream = streams[step.streams.front()];
    begins[step.node.value] = start = std::max(start, stream);
    stream = ends[step.node.value] =
        start + step.durationUs * (0.5 + random.uniform());
  }
  double most = 0;
  for (uint32_t at = 0; at < dag.nodes.size(); ++at) {
    double sum = 0;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i)
      if (workClass(dag.nodes[i]) == WorkClass::Kernel &&
          begins[i] <= begins[at] && begins[at] < ends[i])
        sum += smShare(dag.nodes[i]);
    most = std::max(most, sum);
  }
  return most;
}

TEST(Overlap, KernelsRunSideBySideAsTheirSharesAllow) {
  int optimal = 0, proven = 0, beside = 0, plans = 0;
  for (uint64_t seed = 1; seed <= sweep(40, 2000); ++seed) {
    const Dag dag = randomFile(seed, 7, true);
    exact::Budget budget(1e9, 4000);
    Result<Overlapped> made = planOverlap(dag, INT64_MAX, seed, budget);
    ASSERT_TRUE(made) << made.error().message;
    const Plan &plan = made->plan;
    const double least = leastMakespan(made->problem);
    ASSERT_LE(plan.lowerBoundUs, least + 1e-9) << seed;
    ASSERT_GE(plan.makespanUs, least - 1e-6) << seed;
    ASSERT_TRUE(check(made->certificate, made->problem)) << seed;
    Result<void> safe = verify(plan, dag);
    ASSERT_TRUE(safe) << seed << ": " << safe.error().message;
    // The plan's waits alone keep the shares and its times.
    EXPECT_LE(mostShares(plan, dag, seed), 1 + 1e-6) << seed;
    EXPECT_NEAR(simulate(plan, dag, {}).makespanUs, plan.makespanUs, 1e-6);
    Plan again = plan;
    predictTimes(again, dag);
    EXPECT_NEAR(again.makespanUs, plan.makespanUs, 1e-6) << seed;
    Result<PlanBound> proof = proofOf(plan, dag);
    ASSERT_TRUE(proof) << seed << ": " << proof.error().message;
    Result<double> checked = checkProof(plan, dag, proof->certificates);
    ASSERT_TRUE(checked) << seed << ": " << checked.error().message;
    // A share in the plan's problem is that of the file.
    Plan early = plan;
    for (PlanStep &step : early.steps)
      step.startUs = 0;
    EXPECT_FALSE(checkProof(early, dag, proof->certificates)) << seed;
    optimal += plan.makespanUs < least + 1e-6;
    proven += plan.makespanUs < plan.lowerBoundUs * (1 + 1e-9);
    beside += plan.streamsPerDevice > 2;
    ++plans;
  }
  EXPECT_GT(optimal, plans * 9 / 10);
  EXPECT_GT(proven, plans * 4 / 10); // by bounds alone
  EXPECT_GT(beside, plans / 3);
}

TEST(Overlap, CheckFindsWhatIsWrong) {
  Dag dag = randomFile(3, 60);
  exact::Budget budget(1e6, 20);
  OverlapOutcome made = *planOverlap(dag, UINT64_MAX, 1, budget);
  int found = 0;
  for (uint32_t i = 0; i < made.problem.size(); ++i) {
    Schedule bad = made.schedule;
    bad.starts[i] = std::max(0.0, bad.starts[i] - 0.5);
    found += !check(made.problem, bad);
  }
  EXPECT_GT(found, 40);
}

TEST(Overlap, SearchRepeats) {
  Dag dag = randomFile(11, 300);
  for (uint64_t limit : {uint64_t(1) << 40, uint64_t(500000)}) {
    auto run = [&] {
      exact::Budget budget(1e6, 150);
      auto made = planOverlap(dag, limit, 1, budget, 2);
      EXPECT_TRUE(made) << made.error().message;
      return made->schedule.starts;
    };
    EXPECT_EQ(run(), run());
  }
}

/// The least peak over all orders of a small problem on one device, by sets of
/// ended nodes.
static uint64_t leastPeakExhaustive(const Problem &problem) {
  uint32_t n = problem.size();
  std::vector<uint64_t> best(size_t(1) << n, UINT64_MAX);
  best[0] = 0;
  for (uint32_t set = 0; set < best.size(); ++set) {
    if (best[set] == UINT64_MAX)
      continue;
    for (uint32_t i = 0; i < n; ++i) {
      bool ready = !(set >> i & 1);
      for (uint32_t before : problem.before[i])
        ready = ready && (set >> before & 1);
      if (!ready)
        continue;
      // While node i runs.
      uint64_t live = problem.devices[0].residentBytes;
      for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
        bool begun = false, isOpen = problem.buffers[b].isKept;
        for (uint32_t user : problem.users[b]) {
          begun = begun || user == i || (set >> user & 1);
          isOpen = isOpen || !(set >> user & 1);
        }
        if (begun && isOpen)
          live += problem.buffers[b].bytes;
      }
      uint64_t &to = best[set | 1u << i];
      to = std::min(to, std::max(best[set], live));
    }
  }
  return best.back();
}

TEST(Overlap, MemoryBoundNeverExceedsTheLeastPeak) {
  int equal = 0, lowered = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Problem problem = *frozenProblem(randomFile(seed, 12));
    std::vector<uint32_t> order(problem.size());
    std::iota(order.begin(), order.end(), 0u);
    uint64_t least = leastPeakExhaustive(problem);
    MemoryBound bound = memoryBound(problem, 0, order, 12, UINT64_MAX);
    EXPECT_LE(bound.bytes, least) << seed;
    EXPECT_GE(sequencePeakBytes(problem, order)[0], least) << seed;
    equal += bound.bytes == least;
    // What it says is live is what it counts.
    uint64_t sum = problem.devices[0].residentBytes;
    for (uint32_t b = 0; b < problem.buffers.size(); ++b)
      if (problem.users[b].front() == bound.node)
        sum += problem.buffers[b].bytes;
    for (uint32_t b : bound.live)
      sum += problem.buffers[b].bytes;
    EXPECT_EQ(sum, bound.bytes) << seed;
    // Lowered as far as that can be.
    exact::Budget budget(1e6);
    lowered += lowerPeak(problem, {least}, seed, budget, order);
    EXPECT_FALSE(lowerPeak(problem, {least - 1}, seed, budget, order));
    EXPECT_GE(sequencePeakBytes(problem, order)[0], least) << seed;
  }
  EXPECT_GT(equal, 15); // and it is often tight
  EXPECT_GT(lowered, 30);
}
