// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The planner as programs meet it: how far plans are from the best there is,
// and what proves it.
#include "planner/dag/DagBuilder.h"
#include "planner/plan/Verify.h"
#include "planner/schedule/MakePlan.h"
#include "planner/schedule/PlanProof.h"
#include "planner/schedule/search/OverlapSearch.h"
#include "planner/schedule/search/WindowSearch.h"
#include "tests/unit/planner/Machines.h"
#include "tests/unit/planner/RandomDag.h"
#include "tests/unit/planner/RandomProblem.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::planner;
using namespace mgpu::planner::testing;

/// One node after the other.
static Schedule sequence(const Problem &problem) {
  Schedule schedule;
  for (double us : problem.durations) {
    schedule.starts.push_back(schedule.makespan);
    schedule.makespan += us;
  }
  return schedule;
}

TEST(DisjunctiveSearch, FindsTheLeastMakespanAndProvesIt) {
  const RandomProblemOptions machines[] = {
      {6, 1, 1, false, 4}, {7, 2, 1, false, 3}, {7, 4, 3, false, 4}};
  for (const RandomProblemOptions &options : machines)
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Problem problem = randomProblem(seed, options);
      ASSERT_TRUE(DisjunctiveSearch::suits(problem));
      DisjunctiveSearch search(problem, sequence(problem));
      exact::Budget budget(1e9, 100'000);
      ASSERT_TRUE(search.run(UINT64_MAX, budget)) << seed;
      EXPECT_NEAR(search.best().makespan, leastMakespan(problem), 1e-9) << seed;
      Result<void> verdict = check(problem, search.best());
      EXPECT_TRUE(verdict) << verdict.error().message;
      // Its branches are the witness, of this bound and of none above it.
      Certificate proof = makespanBound(problem);
      proof.boundUs = search.best().makespan;
      proof.argument = search.proof();
      verdict = check(proof, problem);
      ASSERT_TRUE(verdict) << seed << ": " << verdict.error().message;
      proof.boundUs *= 1 + 1e-6;
      EXPECT_FALSE(check(proof, problem)) << seed;
      proof.boundUs = search.best().makespan;
      SearchArgument cut = search.proof();
      cut.branches.pop_back();
      proof.argument = cut;
      EXPECT_FALSE(check(proof, problem)) << seed;
    }
}

// Nodes that may run side by side have no order to decide on.
TEST(DisjunctiveSearch, DecidesOnStreamsAlone) {
  Problem problem = *Problem::create(
      {{2, 3}, {"a", "b"}, {{0, {0, 1}}, {1, {1, 1}}}, {}, {}, {}, {}});
  Certificate proof = makespanBound(problem);
  proof.boundUs = 5;
  proof.argument = SearchArgument{{{0, 1}, {}, {}}};
  Result<void> verdict = check(proof, problem);
  ASSERT_FALSE(verdict);
  EXPECT_NE(verdict.error().message.find("side by side"), std::string::npos);
  proof.argument = SearchArgument{{{}}};
  EXPECT_FALSE(check(proof, problem)) << "nothing refutes 5 us";
  proof.boundUs = 3;
  EXPECT_TRUE(check(proof, problem));
  proof.argument = SearchArgument{{{}, {}}};
  EXPECT_FALSE(check(proof, problem)) << "a leaf too many";
  proof.argument = SearchArgument{{{0, 7}, {}, {}}};
  EXPECT_FALSE(check(proof, problem)) << "there is no node 7";
}

// Twelve alike nodes, of which no two can run at once, before one that needs
// three of them: without their order there are 12! ways to fail.
TEST(DisjunctiveSearch, OrdersAlikeNodesOnce) {
  Problem::Description description;
  description.resources = {"a", "b"};
  for (uint32_t i = 0; i < 12; ++i) {
    description.durations.push_back(2);
    description.uses.push_back({i, {0, 1}});
  }
  for (uint32_t i = 12; i < 15; ++i) {
    description.durations.push_back(3);
    description.uses.push_back({i, {1, 1}});
    description.precedences.push_back({i - 12, i});
  }
  Problem problem = *Problem::create(std::move(description));
  DisjunctiveSearch search(problem, sequence(problem));
  exact::Budget budget(1e9, 200);
  EXPECT_TRUE(search.run(UINT64_MAX, budget));
  EXPECT_DOUBLE_EQ(search.best().makespan, 24);
}

TEST(DisjunctiveSearch, CountsWhatIsAroundAPart) {
  // Two nodes on one stream: the one that starts late has nothing behind it.
  Problem problem = *Problem::create(
      {{2, 3}, {"a"}, {{0, {0, 1}}, {1, {0, 1}}}, {}, {}, {}, {}});
  DisjunctiveSearch search(problem, {{10, 12}, 25}, {{10, 0}, {0, 10}});
  exact::Budget budget(1e9, 100);
  EXPECT_TRUE(search.run(UINT64_MAX, budget));
  EXPECT_DOUBLE_EQ(search.best().makespan, 13);
  EXPECT_DOUBLE_EQ(search.best().starts[0], 10);
  EXPECT_DOUBLE_EQ(search.best().starts[1], 0);
}

TEST(WindowRepair, ShortensWhatListPassesLeft) {
  int shorter = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Problem problem = randomProblem(seed, {200, 4, 2, false, 60});
    search::WindowSearch search(problem, seed);
    search.listPasses(problem.durations, problem.durations);
    const double before = search.best().makespan;
    exact::Budget budget(1e9);
    for (int k = 0; k < 100; ++k)
      search.repair(budget);
    Result<void> verdict = check(problem, search.best());
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_LE(search.best().makespan, before);
    shorter += search.best().makespan < before;
  }
  EXPECT_GE(shorter, 8);
}

// Kernels that share a device.
TEST(OverlapSearch, SharesOfResourcesAreFilled) {
  int shared = 0, least = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Problem problem = randomProblem(seed, {7, 3, 2, true, 4});
    if (std::ranges::count(problem.isUnit, false) == 0)
      continue;
    Schedule best;
    search::OverlapSearch search(problem, seed, [&](const Schedule &schedule) {
      best = schedule;
      return 0.0;
    });
    exact::Budget budget(1e9, 2'000);
    ASSERT_TRUE(search.first(budget));
    const Certificate bound = makespanBound(problem);
    search.improve(bound, budget);
    Result<void> verdict = check(problem, best);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_LE(bound.boundUs, best.makespan * (1 + 1e-9)) << seed;
    EXPECT_GE(best.makespan, leastMakespan(problem) * (1 - 1e-9)) << seed;
    ++shared;
    least += best.makespan <= leastMakespan(problem) * (1 + 1e-9);
  }
  EXPECT_GT(shared, 20);
  EXPECT_GE(least, shared * 9 / 10);
}

static RandomDagOptions smallPrograms() {
  RandomDagOptions options;
  options.maxDevices = 4;
  options.maxNodes = 59;
  return options;
}

TEST(ProgramSearch, PlansOfSmallProgramsAreProvenOptimal) {
  Machine model = hostModel();
  int optimal = 0, listOptimal = 0, bySearch = 0;
  constexpr int programs = 200;
  for (uint64_t seed = 0; seed < programs; ++seed) {
    Dag dag = randomDag(seed, smallPrograms());
    Result<Plan> plan = hostPlan(dag);
    ASSERT_TRUE(plan) << plan.error().message;
    Plan list = *schedule(dag, model);
    ASSERT_LE(plan->makespanUs, list.makespanUs) << seed;
    ASSERT_LE(plan->lowerBoundUs, plan->makespanUs) << seed;
    optimal += plan->boundVerdict() == "optimal" || plan->makespanUs == 0;
    listOptimal += list.makespanUs <= plan->lowerBoundUs * (1 + 1e-9);
    if (plan->boundBy == BoundArgument::Search) {
      // The whole bound has a witness, which comes back from its text.
      Result<PlanBound> proof = proofOf(*plan, dag);
      ASSERT_TRUE(proof) << seed << ": " << proof.error().message;
      const std::string text = toText(proof->certificates);
      Result<std::vector<Certificate>> back = parseCertificates(text);
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_EQ(toText(*back), text);
      Result<double> proven = checkProof(*plan, dag, *back);
      ASSERT_TRUE(proven) << seed << ": " << proven.error().message;
      EXPECT_NEAR(*proven, plan->lowerBoundUs, 1e-8 * plan->lowerBoundUs);
      Plan bad = *plan;
      bad.lowerBoundUs = bad.makespanUs = plan->makespanUs * (1 + 1e-6);
      EXPECT_FALSE(checkProof(bad, dag, *back));
      ++bySearch;
    }
    if (seed % 10 == 0) {
      ASSERT_EQ(bruteForceFault(*plan, dag), "") << seed;
      ASSERT_EQ(toText(*plan, dag), toText(*hostPlan(dag), dag));
    }
  }
  RecordProperty("optimal", optimal);
  RecordProperty("list_optimal", listOptimal);
  RecordProperty("by_search", bySearch);
  EXPECT_GT(bySearch, 3);
  EXPECT_GE(optimal, programs * 9 / 10);
  EXPECT_GT(optimal, listOptimal + 5);
}

TEST(ProgramSearch, BoundsNeverExceedTheLeastMakespan) {
  Machine model = hostModel();
  RandomDagOptions options;
  options.maxNodes = 8;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Dag dag = randomDag(seed, options);
    Result<Plan> plan = hostPlan(dag);
    ASSERT_TRUE(plan) << plan.error().message;
    Result<std::vector<PhaseProblem>> phases = problemsOf(*plan, dag);
    ASSERT_TRUE(phases);
    double least = 0;
    for (const PhaseProblem &phase : *phases)
      least += phase.times * leastMakespan(phase.problem);
    EXPECT_LE(plan->lowerBoundUs, least + 1e-9) << seed;
    EXPECT_NEAR(plan->makespanUs, least, 1e-9) << seed;
  }
}

constexpr uint64_t blockBytes = 1 << 12;

/// On each of two devices six kernels that make a block each, all before six
/// that use them up, and a collective at the end.
static Dag blocksOfTwoDevices() {
  Dag dag;
  dag.name = "blocks";
  dag.numDevices = 2;
  auto add = [&](std::string name, int device, uint64_t bytes) {
    Buffer buffer;
    buffer.name = std::move(name);
    buffer.device = {device};
    buffer.sizeBytes = bytes;
    dag.buffers.push_back(std::move(buffer));
    return BufferId{uint32_t(dag.buffers.size() - 1)};
  };
  constexpr int blocks = 6;
  BufferId block[2][blocks], sum[2][blocks];
  for (int d = 0; d < 2; ++d)
    for (int k = 0; k < blocks; ++k) {
      block[d][k] = add("b" + std::to_string(10 * d + k), d, blockBytes);
      sum[d][k] = add("s" + std::to_string(10 * d + k), d, 256);
    }
  const Box whole = Box::flat(0, blockBytes), small = Box::flat(0, 256);
  DependencyTracker tracker(dag);
  for (bool makes : {true, false})
    for (int k = 0; k < blocks; ++k)
      for (int d = 0; d < 2; ++d) {
        DagNode node;
        node.name = (makes ? "make" : "use") + std::to_string(10 * d + k);
        node.devices = {{d}};
        node.work = OpaqueCall{};
        node.durationUs = 3 + k % 2;
        node.uses = {{block[d][k], whole, !makes, makes}};
        if (!makes)
          node.uses.push_back({sum[d][k], small, false, true});
        tracker.append(std::move(node));
      }
  DagNode reduce;
  reduce.name = "reduce";
  reduce.devices = {{0}, {1}};
  reduce.work = OpaqueCall{true, CollectiveKind::AllReduce, 256, 2};
  reduce.durationUs = 5;
  for (int d = 0; d < 2; ++d)
    for (BufferId each : sum[d])
      reduce.uses.push_back({each, small, true, true});
  tracker.append(std::move(reduce));
  return dag;
}

TEST(ProgramSearch, KeepsAnyNumberOfDevicesWithinTheirMemory) {
  const Dag dag = blocksOfTwoDevices();
  Machine machine = estimatorOf("dgx-h200");
  ASSERT_GT(schedule(dag, machine)->arenaBytes[0], 5 * blockBytes);
  double before = 0;
  // With more memory no plan is longer.
  for (uint64_t blocks : {2, 3, 4, 8}) {
    PlanRequest options;
    options.memoryBytes = blocks * blockBytes + 2048;
    exact::Budget budget(1e9, 400);
    Result<TargetPlan> made = makePlan(dag, machine, options, &budget);
    ASSERT_TRUE(made) << made.error().message;
    PlanLimits limits;
    limits.arenaBytes = options.memoryBytes;
    EXPECT_TRUE(verify(made->plan, dag, limits));
    EXPECT_EQ(bruteForceFault(made->plan, dag), "");
    if (before > 0)
      EXPECT_LE(made->plan.makespanUs, before * (1 + 1e-9)) << blocks;
    before = made->plan.makespanUs;
  }
  PlanRequest options;
  options.memoryBytes = blockBytes;
  exact::Budget budget(1e9, 50);
  Result<TargetPlan> made = makePlan(dag, machine, options, &budget);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("no schedule fits 4096 bytes"),
            std::string::npos)
      << made.error().message;
}

TEST(PlanProof, OfPlansIsCheckedAndMutantsAreRejected) {
  Machine model = hostModel();
  size_t mutants = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Dag dag = randomDag(seed);
    Result<Plan> plan = hostPlan(dag);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto phases = *problemsOf(*plan, dag);
    const std::vector<Certificate> good = boundOf(phases)->certificates;
    Result<double> proven = checkProof(*plan, dag, good);
    ASSERT_TRUE(proven) << seed << ": " << proven.error().message;
    EXPECT_LE(*proven, plan->lowerBoundUs * (1 + 1e-9));
    for (size_t k = 0; k < good.size(); ++k) {
      std::vector<Certificate> bad = good;
      bad[k].boundUs += 0.5;
      EXPECT_FALSE(checkProof(*plan, dag, bad)) << seed;
      for (size_t i = 0; i < good[k].heads.size(); ++i, ++mutants) {
        bad = good;
        bad[k].heads[i].us += 0.5;
        EXPECT_FALSE(checkProof(*plan, dag, bad)) << seed;
        bad = good;
        bad[k].tails[i].us += 0.5;
        EXPECT_FALSE(checkProof(*plan, dag, bad)) << seed;
      }
    }
    if (!good.empty())
      EXPECT_FALSE(checkProof(*plan, dag, std::span(good).first(0)));
    if (plan->makespanUs == 0)
      continue;
    Plan bad = *plan;
    bad.makespanUs *= 0.9;
    EXPECT_FALSE(checkProof(bad, dag, good)) << seed;
    bad = *plan;
    bad.boundBy = BoundArgument::Work;
    bad.lowerBoundUs = *proven + 1;
    EXPECT_FALSE(checkProof(bad, dag, good)) << seed;
    // A step that ends last cannot end sooner.
    bad = *plan;
    auto last = std::max_element(
        bad.steps.begin(), bad.steps.end(), [](const auto &a, const auto &b) {
          return a.startUs + a.durationUs < b.startUs + b.durationUs;
        });
    last->startUs -= last->durationUs / 2 + plan->makespanUs;
    EXPECT_FALSE(checkProof(bad, dag, good)) << seed;
  }
  EXPECT_GT(mutants, 300u);
}
