// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/FileSystem.h"
#include "db/Maintenance.h"
#include "tests/unit/db/TempFolder.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <map>

namespace mgpu::db {
namespace {

TuningStore openStore(const std::string &path, const std::string &site = "") {
  StoreOptions options;
  options.site = site;
  auto store = TuningStore::open(path, options);
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

void record(TuningStore &store, const TuningProblem &problem,
            const Trial &trial) {
  auto done = store.record(problem, trial);
  ASSERT_TRUE(done) << done.error().message;
}

std::string bestOf(TuningStore &store, const TuningProblem &problem) {
  auto best = store.best(problem);
  EXPECT_TRUE(best) << best.error().message;
  return best && *best ? (*best)->configuration : "none";
}

TEST(TuningStore, KeepsEveryTrialAcrossProcessesLives) {
  TempFolder folder;
  TuningProblem problem = problemOf("n=1024");
  std::vector<Trial> all{okTrial("tile=4", 10), okTrial("tile=8", 9),
                         okTrial("tile=4", 11), failedTrial("tile=16")};
  {
    TuningStore store = openStore(folder / "mgpu.db");
    for (const Trial &trial : all)
      record(store, problem, trial);
  }
  TuningStore store = openStore(folder / "mgpu.db");
  auto found = store.trials(problem);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->trials, all);
  EXPECT_EQ(found->damaged, 0u);
  EXPECT_TRUE(store.trials(problemOf("n=1"))->trials.empty());
}

TEST(TuningStore, AFolderIsMadeForTheDefaultFileAlone) {
  TempFolder folder;
  const std::string state = folder / "state";
  // An earlier version's file in the user's own cache would be found.
  std::map<const char *, std::string> before;
  for (const char *name : {"XDG_STATE_HOME", "XDG_CACHE_HOME"}) {
    if (const char *value = std::getenv(name))
      before[name] = value;
    ::setenv(name, state.c_str(), 1);
  }
  auto made = TuningStore::open(defaultDatabasePath());
  auto refused = TuningStore::open(folder / "other/mgpu.db");
  for (const char *name : {"XDG_STATE_HOME", "XDG_CACHE_HOME"}) {
    ::unsetenv(name);
    if (before.contains(name))
      ::setenv(name, before[name].c_str(), 1);
  }
  EXPECT_TRUE(made) << made.error().message;
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Usage);
  EXPECT_EQ(refused.error().message,
            "'" + (folder / "other/mgpu.db") +
                "' cannot be opened or created: No such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

TEST(TuningStore, AWorseResultNeverReplacesABetterOne) {
  TempFolder folder;
  TuningStore store = openStore(folder / "mgpu.db");
  TuningProblem problem = problemOf("n=1024");
  EXPECT_EQ(bestOf(store, problem), "none");
  record(store, problem, okTrial("tile=4", 10));
  EXPECT_EQ(bestOf(store, problem), "tile=4");
  record(store, problem, okTrial("tile=8", 11));
  EXPECT_EQ(bestOf(store, problem), "tile=4");
  record(store, problem, okTrial("tile=8", 10));
  EXPECT_EQ(bestOf(store, problem), "tile=4") << "of equals the first";
  record(store, problem, okTrial("tile=4", 12));
  EXPECT_EQ(bestOf(store, problem), "tile=4") << "no more samples than before";
  record(store, problem, okTrial("tile=2", 9));
  EXPECT_EQ(bestOf(store, problem), "tile=2");
}

TEST(TuningStore, MoreSamplesOfAConfigurationCorrectIt) {
  TempFolder folder;
  TuningStore store = openStore(folder / "mgpu.db");
  TuningProblem problem = problemOf("n=1024");
  record(store, problem, okTrial("tile=4", 8, 3));
  record(store, problem, okTrial("tile=8", 10, 3));
  record(store, problem, okTrial("tile=4", 12, 100));
  EXPECT_EQ(bestOf(store, problem), "tile=8");
  record(store, problem, okTrial("tile=8", 13, 100));
  EXPECT_EQ(bestOf(store, problem), "tile=4");
}

TEST(TuningStore, AFailureIsForGood) {
  TempFolder folder;
  TuningStore store = openStore(folder / "mgpu.db");
  TuningProblem problem = problemOf("n=1024");
  record(store, problem, okTrial("tile=4", 8));
  record(store, problem, okTrial("tile=8", 10));
  EXPECT_FALSE(*store.isQuarantined(problem, "tile=4"));
  record(store, problem, failedTrial("tile=4", TrialStatus::Wrong));
  EXPECT_EQ(bestOf(store, problem), "tile=8");
  record(store, problem, okTrial("tile=4", 1, 1000));
  EXPECT_EQ(bestOf(store, problem), "tile=8");
  EXPECT_TRUE(*store.isQuarantined(problem, "tile=4"));
  EXPECT_EQ((*store.quarantined(problem, "tile=4"))->status,
            TrialStatus::Wrong);
  EXPECT_FALSE(*store.isQuarantined(problemOf("n=1"), "tile=4"));
  record(store, problem, failedTrial("tile=8"));
  EXPECT_EQ(bestOf(store, problem), "none");
}

TEST(TuningStore, PruningChangesNoWinner) {
  TempFolder folder;
  TuningStore store = openStore(folder / "mgpu.db");
  TuningProblem problem = problemOf("n=1024");
  // Measured well long ago, and by chance lower since.
  Trial old = okTrial("tile=4", 12, 100), lucky = okTrial("tile=4", 8, 3);
  lucky.provenance.timeMs = 2'000'000'000'000;
  record(store, problem, old);
  record(store, problem, lucky);
  record(store, problem, okTrial("tile=8", 10));
  record(store, problem, okTrial("tile=16", 11));
  EXPECT_EQ(bestOf(store, problem), "tile=8");
  PruneOptions options;
  options.beforeMs = 1'900'000'000'000;
  auto done = prune(store, options);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->trials, 1u);
  EXPECT_EQ(bestOf(store, problem), "tile=8");
}

TEST(TuningStore, ImpossibleTrialsAreRefusedWhole) {
  TempFolder folder;
  TuningStore store = openStore(folder / "mgpu.db");
  TuningProblem problem = problemOf("n=1024");
  Trial silent = failedTrial("tile=4");
  silent.sentence.clear();
  Trial unmeasured = okTrial("tile=4", 1, 0);
  Trial infinite = okTrial("tile=4", 1);
  infinite.meanUs = std::numeric_limits<double>::quiet_NaN();
  Trial unsorted = okTrial("tile=4,block=3", 1);
  for (const Trial &trial : {silent, unmeasured, infinite, unsorted}) {
    std::vector<Trial> both{okTrial("tile=2", 5), trial};
    auto done = store.record(problem, both);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::Invalid);
  }
  EXPECT_TRUE(store.trials(problem)->trials.empty());
}

} // namespace
} // namespace mgpu::db
