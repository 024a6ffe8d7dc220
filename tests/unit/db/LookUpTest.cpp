// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/LookUp.h"
#include "tests/unit/db/TempFolder.h"

#include <gtest/gtest.h>

namespace mgpu::db {
namespace {

class LookUpTest : public testing::Test {
protected:
  TuningStore &open(const std::string &site = "") {
    StoreOptions options;
    options.site = site;
    auto opened = TuningStore::open(folder / "a.db", options);
    EXPECT_TRUE(opened) << opened.error().message;
    store.emplace(std::move(*opened));
    return *store;
  }
  static void record(TuningStore &store, const TuningProblem &problem,
                     std::initializer_list<Trial> trials) {
    auto done = store.record(problem, std::vector<Trial>(trials));
    ASSERT_TRUE(done) << done.error().message;
  }
  static LookUp lookUp(TuningStore &store, const TuningProblem &problem) {
    auto found = store.lookUp(problem);
    EXPECT_TRUE(found) << found.error().message;
    return found ? std::move(*found) : LookUp();
  }

  TempFolder folder;
  std::optional<TuningStore> store;
};

TuningProblem with(TuningProblem problem, std::string TuningProblem::*field,
                   const char *value) {
  problem.*field = value;
  return problem;
}

TEST_F(LookUpTest, TakesTheNearestGrade) {
  TuningStore &store = open();
  TuningProblem asked = problemOf("m=64,n=1000");
  LookUp none = lookUp(store, asked);
  EXPECT_EQ(none.match, Match::None);
  EXPECT_EQ(none.reason,
            "no problem of this program was measured on architecture 'sm_90'");
  EXPECT_FALSE(none.regret);

  // From the farthest to the nearest.
  record(store, with(asked, &TuningProblem::program, "conv"),
         {okTrial("t=1", 1)});
  record(store, with(asked, &TuningProblem::architecture, "sm_80"),
         {okTrial("t=2", 1)});
  EXPECT_EQ(lookUp(store, asked).match, Match::None);

  TuningProblem h200 = with(asked, &TuningProblem::device, "H200");
  record(store, with(h200, &TuningProblem::shape, "m=64,n=1"),
         {okTrial("t=3", 1)});
  EXPECT_EQ(lookUp(store, asked).match, Match::OtherDevice);
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=3");
  record(store, h200, {okTrial("t=4", 1)});
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=4");
  EXPECT_NE(lookUp(store, asked).reason.find("device 'H200' instead of 'H100'"),
            std::string::npos);

  TuningProblem old = with(asked, &TuningProblem::driver, "570.1");
  record(store, with(old, &TuningProblem::shape, "m=64,n=10"),
         {okTrial("t=5", 1)});
  EXPECT_EQ(lookUp(store, asked).match, Match::OtherDriver);
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=5");
  record(store, with(asked, &TuningProblem::policy, "hot"),
         {okTrial("t=6", 1)});
  EXPECT_EQ(lookUp(store, asked).match, Match::OtherDriver);
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=6");
  EXPECT_NE(lookUp(store, asked)
                .reason.find("measuring policy 'hot' instead of 'cold, "
                             "median'"),
            std::string::npos);

  record(store, with(asked, &TuningProblem::shape, "m=64,n=9000"),
         {okTrial("t=7", 1)});
  EXPECT_EQ(lookUp(store, asked).match, Match::OtherShape);
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=7");
  record(store, with(asked, &TuningProblem::shape, "m=64,n=500"),
         {okTrial("t=8", 1)});
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=8");

  // Nearer, but of no use.
  record(store, with(asked, &TuningProblem::shape, "m=64,n=1001"),
         {failedTrial("t=9")});
  EXPECT_EQ(lookUp(store, asked).trial.configuration, "t=8");
  record(store, asked, {failedTrial("t=10")});
  EXPECT_EQ(lookUp(store, asked).match, Match::OtherShape);
  record(store, asked, {okTrial("t=11", 9)});
  LookUp exact = lookUp(store, asked);
  EXPECT_EQ(exact.match, Match::Exact);
  EXPECT_EQ(exact.trial, okTrial("t=11", 9));
  EXPECT_EQ(exact.problem, asked);
  EXPECT_FALSE(exact.regret);
}

TEST(ShapeDistance, IsInOctaves) {
  EXPECT_EQ(shapeDistance("n=8", "n=8"), 0);
  EXPECT_EQ(shapeDistance("n=8", "n=32"), 2);
  EXPECT_EQ(shapeDistance("n=32", "n=8"), 2);
  EXPECT_EQ(shapeDistance("m=4,n=8", "m=8,n=4"), 2);
  EXPECT_EQ(shapeDistance("n=8,type=f32", "n=16,type=f16"), 9);
  EXPECT_EQ(shapeDistance("n=8", "k=3,n=8"), 8);
  EXPECT_EQ(shapeDistance("n=0", "n=8"), 8);
  EXPECT_EQ(shapeDistance("nonsense", "n=8"), 8);
}

TEST_F(LookUpTest, RegretIsThatOfStoredPairs) {
  TuningStore &store = open();
  // Winners: a on the first, b on the second.
  record(store, problemOf("n=100"),
         {okTrial("c=a", 10), okTrial("c=b", 12), okTrial("c=c", 50)});
  record(store, problemOf("n=200"), {okTrial("c=a", 26), okTrial("c=b", 20)});
  LookUp found = lookUp(store, problemOf("n=400"));
  EXPECT_EQ(found.trial.configuration, "c=b");
  ASSERT_TRUE(found.regret);
  EXPECT_DOUBLE_EQ(found.regret->expected, (0.2 + 0.3) / 2);
  EXPECT_DOUBLE_EQ(found.regret->worst, 26. / 20 - 1);
  // A failure of a winner elsewhere says nothing of its time there.
  record(store, problemOf("n=200"), {failedTrial("c=a")});
  found = lookUp(store, problemOf("n=400"));
  EXPECT_DOUBLE_EQ(found.regret->expected, 12. / 10 - 1);
  // Pairs that differ in the shape say nothing of other drivers.
  found =
      lookUp(store, with(problemOf("n=100"), &TuningProblem::driver, "590"));
  ASSERT_TRUE(found.regret);
  EXPECT_NE(found.regret->basis.find("spread"), std::string::npos);
}

TEST_F(LookUpTest, WithoutPairsItIsThatOfTheSpread) {
  TuningStore &store = open();
  record(store, problemOf("n=100"), {okTrial("c=a", 10)});
  EXPECT_FALSE(lookUp(store, problemOf("n=200")).regret);
  record(store, problemOf("n=100"),
         {okTrial("c=b", 20), okTrial("c=c", 60), failedTrial("c=d")});
  LookUp found = lookUp(store, problemOf("n=200"));
  ASSERT_TRUE(found.regret);
  EXPECT_DOUBLE_EQ(found.regret->expected, 30. / 10 - 1);
  EXPECT_DOUBLE_EQ(found.regret->worst, 60. / 10 - 1);
}

TEST_F(LookUpTest, ASitesFileLiesUnderTheUsers) {
  TuningProblem problem = problemOf("n=100");
  {
    auto site = TuningStore::open(folder / "site.db");
    ASSERT_TRUE(site);
    record(*site, problem, {okTrial("c=a", 10), okTrial("c=b", 20)});
    record(*site, problemOf("n=300"), {okTrial("c=s", 10)});
  }
  TuningStore &store = open(folder / "site.db");
  EXPECT_TRUE(lookUp(store, problem).fromSite);
  EXPECT_EQ(lookUp(store, problem).trial.configuration, "c=a");
  // The better of the two.
  record(store, problem, {okTrial("c=b", 15)});
  EXPECT_EQ(lookUp(store, problem).trial.configuration, "c=a");
  record(store, problem, {okTrial("c=c", 9)});
  EXPECT_EQ(lookUp(store, problem).trial.configuration, "c=c");
  EXPECT_FALSE(lookUp(store, problem).fromSite);
  EXPECT_EQ(store.trials(problem)->trials.size(), 4u);
  EXPECT_EQ(store.summary(problem)->trials, 4u);
  EXPECT_EQ(store.problems()->size(), 2u);
  // What fails here is not a winner, whatever the site says.
  record(store, problem, {failedTrial("c=c"), failedTrial("c=a")});
  EXPECT_EQ(lookUp(store, problem).trial.configuration, "c=b");
  EXPECT_EQ(lookUp(store, problem).trial.medianUs, 15);
  EXPECT_TRUE(*store.isQuarantined(problem, "c=a"));
  // The nearest of both files.
  LookUp found = lookUp(store, problemOf("n=290"));
  EXPECT_EQ(found.trial.configuration, "c=s");
  EXPECT_TRUE(found.fromSite);

  auto unchanged = TuningStore::open(folder / "site.db");
  EXPECT_EQ(unchanged->trials(problem)->trials.size(), 2u);
}

TEST_F(LookUpTest, FailuresOfTheSiteAreFailures) {
  TuningProblem problem = problemOf("n=100");
  {
    auto site = TuningStore::open(folder / "site.db");
    ASSERT_TRUE(site);
    record(*site, problem, {failedTrial("c=a")});
  }
  TuningStore &store = open(folder / "site.db");
  record(store, problem, {okTrial("c=a", 1), okTrial("c=b", 2)});
  EXPECT_TRUE(*store.isQuarantined(problem, "c=a"));
  EXPECT_EQ((*store.best(problem))->configuration, "c=b");
}

} // namespace
} // namespace mgpu::db
