// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole sessions on a program whose kernel has ways to be built that crash,
// hang, write out of bounds or compute something else.
#include "tuner/session/TuningSession.h"

#include "tests/unit/db/TempFolder.h"
#include "tests/unit/tuner/TestSubject.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace mgpu::tuner {
namespace {

using P = planner::KernelParameter;

/// `unroll` says what is wrong with the kernel: 0 and 8 are sound, 1 to 7 the
/// faults of FaultyKernel.cpp, 9 is refused by the compiler, 10 crashes it.
struct FaultySubject : TestSubject {
  std::vector<planner::KernelSpace> spaces;

  explicit FaultySubject(std::vector<uint32_t> unrolls) {
    planner::KernelSpace &space = spaces.emplace_back();
    space.block = {4, 1, 1};
    space.maxGrid = {2, 1, 1};
    space.defaults[P::BlockX] = 4;
    for (size_t k = 0; k < planner::numKernelParameters; ++k)
      space.choices.push_back({P(k), {space.defaults[P(k)]}, ""});
    space.choices[size_t(P::Unroll)].values = std::move(unrolls);
  }

  TuningSubject subject() const {
    return {program.dag,
            *data,
            spaces,
            [](uint32_t, const planner::KernelConfig &config) -> Result<Bytes> {
              uint32_t kind = config[P::Unroll];
              if (kind == 9)
                return fail(ErrorKind::Unsupported, "cannot build this");
              if (kind == 10)
                std::abort();
              return kernelWithFault(kind % 8);
            },
            open,
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
  EXPECT_GT(result->defaultUs, 0);
  EXPECT_FALSE(result->history.empty());
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
  auto found = findDecision(keys, faulty.spaces, *store);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->config, again->config);
  EXPECT_TRUE((*found)->complete);
  EXPECT_GE((*found)->evaluations, 20u);
  EXPECT_FALSE((*found)->sentence.empty());
  // Other kernels are another problem, however alike.
  compiled[0] = std::make_shared<Bytes>(kernelWithFault(4));
  found = findDecision(keys, faulty.spaces, *store);
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
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
  broken.build = [](uint32_t, const planner::KernelConfig &) -> Result<Bytes> {
    return kernelWithFault(1);
  };
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
    for (const db::Problem &problem : *problems)
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
