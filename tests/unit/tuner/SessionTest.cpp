// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole sessions on a program whose kernel has ways to be built that crash,
// hang, write out of bounds or compute something else.
#include "tuner/session/TuningSession.h"

#include "support/Clock.h"
#include "tests/unit/db/TempFolder.h"
#include "tests/unit/tuner/ReductionProgram.h"
#include "tests/unit/tuner/WatchedDriver.h"
#include "tuner/space/PredictedOrder.h"

#include <csignal>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mgpu::tuner {
namespace {

using P = kernels::KernelParameter;

/// `unroll` says what is wrong with the kernel: 0 and 8 are sound, 1 to 7 the
/// faults of FaultyKernel.cpp, 9 is refused by the compiler, 10 crashes it.
struct FaultySubject : TestSubject {
  std::vector<kernels::KernelSpace> spaces;

  explicit FaultySubject(std::vector<uint32_t> unrolls) {
    kernels::KernelSpace &space = spaces.emplace_back();
    space.block = {4, 1, 1};
    space.maxGrid = {2, 1, 1};
    space.defaults[P::BlockX] = 4;
    space.offerDefaults("");
    space.choice(P::Unroll).values = std::move(unrolls);
  }

  TuningSubject subject() const {
    return {program.dag,
            *data,
            spaces,
            [](uint32_t, const kernels::KernelConfig &config,
               uint32_t) -> Result<Bytes> {
              uint32_t kind = config[P::Unroll];
              if (kind == 9)
                return fail(ErrorKind::Unsupported, "cannot build this");
              if (kind == 10)
                std::abort();
              return kernelWithFault(kind % 8);
            },
            [](uint32_t devices, uint32_t threads, std::span<const int> cpus) {
              // A sanitizer's report of a crash may take longer than a hang.
              std::signal(SIGSEGV, SIG_DFL);
              return open(devices, threads, cpus);
            },
            2};
  }
};

TuningOptions options(uint64_t evaluations) {
  TuningOptions options;
  options.budget.evaluations = evaluations;
  options.strategy = "exhaustive";
  options.version = "test";
  options.devices = 2;
  return options;
}

std::map<std::string, int> kindsOf(const TuningResult &result) {
  std::map<std::string, int> kinds;
  for (const FailedCandidate &failed : result.failed)
    ++kinds[std::string(toString(failed.fault.kind))];
  return kinds;
}

TEST(Session, EveryFaultIsNamedAndNoneWins) {
  FaultySubject faulty({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  auto result = tune(faulty.subject(), options(40), nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(kindsOf(*result),
            (std::map<std::string, int>{{"crash", 3}, // 1, 5 and 10
                                        {"hang", 1},
                                        {"out-of-bounds", 2},
                                        {"wrong-result", 2},
                                        {"refused", 1}}));
  uint32_t chosen = result->config.kernels.at(0)[P::Unroll];
  EXPECT_TRUE(chosen == 0 || chosen == 8) << chosen;
  EXPECT_GT(result->times.before.us, 0);
  EXPECT_FALSE(result->history.empty());
}

TEST(Session, WhatIsPredictedToBeFastestIsTriedFirst) {
  // In order, the strategy would try 4 first.
  FaultySubject faulty({0, 4, 8, 9});
  TuningSubject subject = faulty.subject();
  subject.predict = [](uint32_t,
                       std::span<const kernels::KernelConfig> configs) {
    std::vector<double> us;
    for (const kernels::KernelConfig &config : configs)
      us.push_back(10.0 - config[P::Unroll]);
    return Result<std::vector<double>>(us);
  };
  auto result = tune(subject, options(20), nullptr);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->failed.size(), 2u);
  EXPECT_EQ(toString(result->failed[0].fault.kind), "refused");
  // The rest is tried, too.
  EXPECT_NE(toString(result->failed[1].fault.kind), "refused");
  EXPECT_EQ(result->parts.at(0).tried, 4u);

  subject.predict = [](uint32_t, std::span<const kernels::KernelConfig>) {
    return Result<std::vector<double>>(fail(ErrorKind::Internal, "no model"));
  };
  auto failed = tune(subject, options(20), nullptr);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no model");
}

TEST(PredictedOrder, TakesTheNearestToTheDefaultOfWhatIsAlike) {
  auto config = [](uint32_t x, uint32_t items) {
    kernels::KernelConfig made;
    made[P::BlockX] = x;
    made[P::Items] = items;
    return made;
  };
  const std::vector<kernels::KernelConfig> configs = {
      config(32, 2), config(64, 1), config(32, 1), config(128, 4)};
  const std::vector<double> us = {1.999, 2.004, 2.001, 9};
  using Found = std::vector<size_t>;
  EXPECT_EQ(fastestPredicted(configs, us, config(64, 1), 9), (Found{1, 3}));
  EXPECT_EQ(fastestPredicted(configs, us, config(32, 1), 1), (Found{2}));
  EXPECT_EQ(fastestPredicted(configs, us, config(32, 1), 0), Found());
  EXPECT_EQ(fastestPredicted(configs, {}, config(32, 1), 4), Found());
}

TEST(Session, FailuresAreStoredAndNotTriedAgain) {
  db::TempFolder folder;
  FaultySubject faulty({0, 1, 3, 4, 8});
  auto store = db::TuningStore::open(folder / "t.db");
  ASSERT_TRUE(store) << store.error().message;
  auto first = tune(faulty.subject(), options(20), &*store);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->failed.size(), 3u);

  auto again = tune(faulty.subject(), options(40), &*store);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_GT(again->resumed, 10u);
  EXPECT_TRUE(again->failed.empty());

  // As `run` asks for it.
  std::vector<KernelObject> compiled = {
      std::make_shared<Bytes>(kernelWithFault(0))};
  bench::Environment environment = bench::readEnvironment();
  KeyInput keys{faulty.program.dag, compiled, environment, "test", 2, false};
  auto found = findDecision(keys, faulty.spaces, {}, *store);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->config, again->config);
  EXPECT_TRUE((*found)->complete);
  EXPECT_GE((*found)->evaluations, 20u);
  EXPECT_EQ((*found)->times, again->times);
  // Other kernels are another problem, however alike.
  compiled[0] = std::make_shared<Bytes>(kernelWithFault(4));
  found = findDecision(keys, faulty.spaces, {}, *store);
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

/// Each collective of a replay costs 100 us more, so that of two programs the
/// one with fewer is surely faster.
struct SlowReductions : ReductionSubject {
  static void wait(uint32_t collectives) {
    const Clock::time_point start = Clock::now();
    while (microsecondsSince(start) < 100.0 * collectives) {
    }
  }
  TuningSubject subject() const {
    TuningSubject slow = ReductionSubject::subject();
    slow.openDriver = [](uint32_t devices, uint32_t threads,
                         std::span<const int> workerCpus)
        -> Result<std::unique_ptr<device::Driver>> {
      MGPU_TRY_ASSIGN(auto inner,
                      device::createHostDriver(devices, threads, workerCpus));
      return std::unique_ptr<device::Driver>(
          std::make_unique<WatchedDriver>(std::move(inner), wait));
    };
    return slow;
  }
};

TEST(Session, ATransformThatGainsIsChosenStoredAndFoundAgain) {
  db::TempFolder folder;
  SlowReductions reductions;
  auto store = db::TuningStore::open(folder / "t.db");
  ASSERT_TRUE(store) << store.error().message;
  auto result = tune(reductions.subject(), options(24), &*store);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->failed.empty());
  EXPECT_EQ(result->numTransformLists, 4u);
  EXPECT_EQ(result->spaceSize, ProgramSpace::numPlans(4, {}, {2, 8}));
  EXPECT_EQ(toText(result->config.transforms), "bucket=on");
  EXPECT_FALSE(result->isDefault);
  EXPECT_NE(result->pinnedCpus, "");

  // As `run` asks for it, and with the program that was measured.
  std::vector<KernelObject> compiled = {
      std::make_shared<Bytes>(kernelWithFault(0))};
  bench::Environment environment = bench::readEnvironment();
  KeyInput keys{reductions.dag, compiled, environment, "test", 2, false};
  auto found = findDecision(keys, reductions.spaces, {}, *store);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->config, result->config);
  auto changed =
      tuner::transformed(reductions.dag, (*found)->config.transforms);
  ASSERT_TRUE(changed);
  auto plan = planOf(*changed, (*found)->config, planner::hostMachine());
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->transforms, (std::vector<std::string>{"bucket"}));
  EXPECT_EQ(plan->steps.size(), reductions.dag.nodes.size() - 1);

  // The timeline stored beside it is of the changed program too.
  auto trials = store->trials(decisionProblem(keys));
  ASSERT_TRUE(trials);
  auto about =
      nlohmann::json::parse(trials->trials.back().provenance.environment);
  auto facts = factsFromJson(about["program"]);
  ASSERT_TRUE(facts && facts->after);
  EXPECT_EQ(facts->after->steps.size(), changed->nodes.size());

  // A program in which the stored transform has nothing to do does not get it.
  db::Trial foreign = trials->trials.back();
  foreign.configuration = db::pairsText({{"scheduler", "list"},
                                         {"streams", "4"},
                                         {"threads", "1"},
                                         {"seed", "0"},
                                         {"chunks", "8"}});
  foreign.provenance.timeMs += 1000;
  ASSERT_TRUE(store->record(decisionProblem(keys), foreign));
  found = findDecision(keys, reductions.spaces, {}, *store);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->config, result->config);
}

TEST(Session, WhereTimeWasUpFirstItSaysSoAndWhatBudgetWouldDo) {
  db::TempFolder folder;
  FaultySubject faulty({0, 8});
  auto store = db::TuningStore::open(folder / "t.db");
  ASSERT_TRUE(store) << store.error().message;
  TuningOptions hasty = options(8);
  hasty.budget.seconds = 0.05;
  // Nothing is surely anything at this confidence.
  hasty.comparison.confidence = 1 - 1e-15;
  auto result = tune(faulty.subject(), hasty, &*store);
  ASSERT_TRUE(result) << result.error().message;
  const DecidedTimes &times = result->times;
  const bool names = times.sentence.find("--budget") != std::string::npos;
  EXPECT_EQ(names, times.isUndecided) << times.sentence;
  EXPECT_TRUE(!times.isUndecided || result->isDefault);
  if (times.isUndecided)
    EXPECT_EQ(times.sentence.find("nothing tried"), std::string::npos);
  if (result->isDefault)
    EXPECT_EQ(times.before, times.after);
}

/// Each way takes so long to compile as is said of it.
struct SlowSubject : FaultySubject {
  double defaultSeconds, otherSeconds;
  SlowSubject(double defaultSeconds, double otherSeconds)
      : FaultySubject({0, 8, 16, 24, 32, 40}), defaultSeconds(defaultSeconds),
        otherSeconds(otherSeconds) {}
  TuningSubject subject() const {
    TuningSubject out = FaultySubject::subject();
    out.build = [this](uint32_t, const kernels::KernelConfig &config,
                       uint32_t) -> Result<Bytes> {
      std::this_thread::sleep_for(std::chrono::duration<double>(
          config[P::Unroll] == 0 ? defaultSeconds : otherSeconds));
      return kernelWithFault(0);
    };
    return out;
  }
};

TEST(Session, TheBudgetIsOfWallTimeAndStopsACompilation) {
  SlowSubject slow(0.1, 30);
  TuningOptions short_ = options(1000);
  short_.budget.seconds = 3;
  const Clock::time_point start = Clock::now();
  short_.started = start - std::chrono::milliseconds(500); // the import
  auto result = tune(slow.subject(), short_, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(secondsSince(start), 1.1 * 3 - 0.5);
  EXPECT_EQ(result->config.kernels[0][P::Unroll], 0u); // it alone was built
  EXPECT_TRUE(result->failed.empty()); // it was not the candidate's fault
  EXPECT_FALSE(result->exhausted);
}

TEST(Session, ADefaultThatTakesTheWholeBudgetIsSaidBeforeMoreIsCompiled) {
  SlowSubject slow(1.5, 30);
  TuningOptions short_ = options(1000);
  short_.budget.seconds = 1;
  const Clock::time_point start = Clock::now();
  auto result = tune(slow.subject(), short_, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_LT(secondsSince(start), 5);
  EXPECT_EQ(result->evaluated, 0u);
  EXPECT_EQ(result->compiled, 1u);
  EXPECT_TRUE(result->isDefault && result->times.isUndecided);
  EXPECT_NE(result->times.sentence.find(
                "building and measuring the default alone took"),
            std::string::npos)
      << result->times.sentence;
  EXPECT_NE(result->times.sentence.find("give --budget 1"), std::string::npos);
}

TEST(Session, WhatWonBeforeIsKeptUntilItIsMetAgain) {
  db::TempFolder folder;
  SlowReductions reductions;
  auto store = db::TuningStore::open(folder / "t.db");
  ASSERT_TRUE(store) << store.error().message;
  auto won = tune(reductions.subject(), options(24), &*store);
  ASSERT_TRUE(won) << won.error().message;
  ASSERT_FALSE(won->isDefault);
  TuningOptions hasty = options(24);
  hasty.budget.seconds = 0.001;
  hasty.asked = 12;
  auto kept = tune(reductions.subject(), hasty, &*store);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->config, won->config);
  EXPECT_TRUE(kept->fromStore && kept->times.isUndecided);
  EXPECT_EQ(kept->times.after, won->times.after);
  const std::string &sentence = kept->times.sentence;
  EXPECT_NE(sentence.find("it is kept: nothing else was tried"),
            std::string::npos)
      << sentence;
  EXPECT_NE(sentence.find("a budget of 12.0 s"), std::string::npos) << sentence;
  // The budget is spent now, but there is something to be met.
  auto met = tune(reductions.subject(), hasty, &*store);
  ASSERT_TRUE(met) << met.error().message;
  EXPECT_EQ(met->times.sentence.find("nothing else was tried"),
            std::string::npos)
      << met->times.sentence;
}

TEST(Session, ACheckThatTimeCutsShortIsNoFaultOfTheProgram) {
  FaultySubject sound({0});
  auto evaluator = Evaluator::create(sound.subject(), {});
  ASSERT_TRUE(evaluator) << evaluator.error().message;
  (*evaluator)->limitTo(Clock::now());
  auto checked = (*evaluator)->checkFresh((*evaluator)->defaultCandidate());
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_FALSE(*checked);
}

TEST(CompilePool, WhatTimeCutShortIsCompiledWhenItIsAskedForAgain) {
  auto slowly = [](uint32_t, const kernels::KernelConfig &,
                   uint32_t) -> Result<Bytes> {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return Bytes(1);
  };
  auto pool = CompilePool::start(slowly, 1);
  ASSERT_TRUE(pool) << pool.error().message;
  TimeLimit limit{Clock::now() + std::chrono::milliseconds(50)};
  pool->setLimit(&limit);
  const std::vector<CompilePool::Job> jobs = {{0, {}}, {1, {}}};
  auto cut = pool->build(jobs);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_FALSE(cut->at(0) || cut->at(1));
  limit = {};
  auto built = pool->build(jobs);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_TRUE(built->at(0) && built->at(1));
}

TEST(Session, AStopKeepsWhatThereIs) {
  FaultySubject faulty({0, 8});
  std::atomic<bool> stop = false;
  TuningOptions stopping = options(1000);
  stopping.strategy = "random";
  stopping.stop = &stop;
  uint64_t seen = 0;
  stopping.progress = [&](const Progress &progress) {
    seen = progress.evaluated;
    stop = seen >= 3;
  };
  auto result = tune(faulty.subject(), stopping, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->interrupted);
  EXPECT_LT(result->evaluated, 10u);
}

TEST(Session, AProgramThatFailsByItselfIsAnError) {
  FaultySubject faulty({0});
  TuningSubject broken = faulty.subject();
  broken.build = [](uint32_t, const kernels::KernelConfig &,
                    uint32_t) -> Result<Bytes> { return kernelWithFault(1); };
  auto result = tune(broken, options(5), nullptr);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::Invalid);
  EXPECT_NE(result.error().message.find("cannot be tuned"), std::string::npos)
      << result.error().message;
}

TEST(Session, ResultsOfOneThatWasKilledAreThere) {
  db::TempFolder folder;
  const std::string path = folder / "t.db";
  uint64_t before = 0;
  for (int round = 0; round < 3; ++round) {
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FaultySubject faulty({0, 8});
      auto store = db::TuningStore::open(path);
      TuningOptions endless = options(100000);
      endless.strategy = "random";
      endless.seed = uint64_t(round) + 1;
      uint64_t seen = 0;
      endless.progress = [&](const Progress &progress) {
        // Somewhere between two results, for certain after some.
        if (progress.evaluated >= 3 + seen)
          kill(getpid(), SIGKILL);
      };
      (void)tune(faulty.subject(), endless, &*store);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    auto store = db::TuningStore::open(path);
    ASSERT_TRUE(store) << store.error().message;
    uint64_t rows = 0;
    auto problems = store->problems();
    ASSERT_TRUE(problems);
    for (const db::TuningProblem &problem : *problems)
      rows += store->trials(problem)->trials.size();
    EXPECT_GT(rows, before);
    before = rows;
  }
  // And it is gone on with.
  FaultySubject faulty({0, 8});
  auto store = db::TuningStore::open(path);
  auto result = tune(faulty.subject(), options(4), &*store);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->resumed, before);
}

} // namespace
} // namespace mgpu::tuner
