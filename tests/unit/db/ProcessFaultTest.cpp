// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Processes that are killed, and several at once.
#include "db/Maintenance.h"
#include "db/Statement.h"
#include "support/Random.h"
#include "tests/unit/db/Process.h"
#include "tests/unit/db/TempFolder.h"

#include <chrono>
#include <thread>

namespace mgpu::db {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

std::string configurationOf(uint64_t number) {
  return "k=" + std::to_string(number);
}

/// Time of configuration `number`: neither rising nor falling.
double timeOf(uint64_t number) { return 10 + double(number * 7919 % 1009); }

/// Records configurations first, first + step, ... and says each that is
/// stored, until `until`.
constexpr uint64_t fewest = 10;

int writeTrials(const std::string &path, uint64_t first, uint64_t step,
                steady_clock::time_point until, const Child::Say &say) {
  auto store = TuningStore::open(path);
  if (!store)
    return 1;
  // At least some, however long they take: no writer is locked out for good.
  uint64_t least = first + fewest * step;
  for (uint64_t k = first; k < least || steady_clock::now() < until;
       k += step) {
    if (!store->record(problemOf("n=1"),
                       okTrial(configurationOf(k), timeOf(k))))
      return 2;
    say(k);
  }
  return 0;
}

TEST(Kill, LosesNothingButTheTrialInFlight) {
  TempFolder folder;
  std::string path = folder / "a.db";
  Random random(1);
  uint64_t stored = 0, mostAtOnce = 0, killedInFlight = 0;
  // Long enough to store something and not much, whatever the disk.
  uint64_t longestUs = 20'000;
  for (int round = 0; round < 200; ++round) {
    // Some die before the file is made, some while it is opened.
    microseconds life(random.below(longestUs));
    uint64_t last = 0, said = 0;
    {
      Child child([&](const Child::Say &say) {
        return writeTrials(path, stored, 1, steady_clock::time_point::max(),
                           say);
      });
      std::this_thread::sleep_for(life);
      child.kill();
      said = child.drain(last);
    }
    auto store = TuningStore::open(path);
    ASSERT_TRUE(store) << round << ": " << store.error().message;
    auto found = store->trials(problemOf("n=1"));
    ASSERT_TRUE(found) << round << ": " << found.error().message;
    ASSERT_EQ(found->damaged, 0u);
    uint64_t now = found->trials.size();
    ASSERT_GE(now, stored + said) << round;
    ASSERT_LE(now, stored + said + 1) << round;
    killedInFlight += now - stored - said;
    double best = 1e9;
    for (uint64_t k = 0; k < now; ++k) {
      ASSERT_EQ(found->trials[k].configuration, configurationOf(k));
      best = std::min(best, timeOf(k));
    }
    auto winner = store->best(problemOf("n=1"));
    ASSERT_TRUE(winner);
    if (now > 0) {
      ASSERT_EQ((*winner)->medianUs, best);
    }
    mostAtOnce = std::max(mostAtOnce, said);
    if (said == 0)
      longestUs = std::min<uint64_t>(longestUs * 11 / 10, 300'000);
    else if (said > 4)
      longestUs = std::max<uint64_t>(longestUs * 9 / 10, 1'000);
    stored = now;
  }
  EXPECT_GT(mostAtOnce, 1u) << "no child lived long enough to test anything";
  auto report = verify(path);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->isSound());
  EXPECT_EQ(report->trials, stored);
  RecordProperty("trials", int(stored));
  RecordProperty("killed_in_flight", int(killedInFlight));
}

TEST(Concurrency, TwoWritersAndAReaderLoseNothing) {
  TempFolder folder;
  std::string path = folder / "a.db";
  auto until = steady_clock::now() + std::chrono::seconds(3);
  Child even([&](const Child::Say &say) {
    return writeTrials(path, 0, 2, until, say);
  });
  Child odd([&](const Child::Say &say) {
    return writeTrials(path, 1, 2, until, say);
  });
  {
    auto store = TuningStore::open(path);
    ASSERT_TRUE(store) << store.error().message;
    size_t before = 0;
    double best = 1e9;
    while (steady_clock::now() < until) {
      auto found = store->trials(problemOf("n=1"));
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_EQ(found->damaged, 0u);
      ASSERT_GE(found->trials.size(), before);
      before = found->trials.size();
      auto answer = store->lookUp(problemOf("n=1"));
      ASSERT_TRUE(answer) << answer.error().message;
      if (answer->match == Match::Exact) {
        ASSERT_LE(answer->trial.medianUs, best);
        best = answer->trial.medianUs;
      }
    }
  }
  // A writer with more to say than a pipe holds waits until it is heard.
  uint64_t last = 0, lastOdd = 0;
  uint64_t said = even.drain(last), saidOdd = odd.drain(lastOdd);
  EXPECT_EQ(even.wait(), 0);
  EXPECT_EQ(odd.wait(), 0);
  EXPECT_GE(said, fewest);
  EXPECT_GE(saidOdd, fewest);
  auto report = verify(path);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->isSound());
  EXPECT_EQ(report->trials, said + saidOdd);
}

void openTogether(Journal journal) {
  TempFolder folder;
  std::string path = folder / "a.db";
  std::vector<std::unique_ptr<Child>> children;
  auto start = steady_clock::now() + std::chrono::milliseconds(100);
  for (uint64_t k = 0; k < 8; ++k)
    children.push_back(std::make_unique<Child>([&, k](const Child::Say &) {
      std::this_thread::sleep_until(start);
      StoreOptions options;
      options.database.journal = journal;
      auto store = TuningStore::open(path, options);
      if (!store)
        return 1;
      for (int each = 0; each < 5; ++each)
        if (!store->record(problemOf("n=1"),
                           okTrial("k=" + std::to_string(10 * k + each), 5.0)))
          return 2;
      return 0;
    }));
  for (auto &child : children)
    EXPECT_EQ(child->wait(), 0);
  auto store = TuningStore::open(path);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(store->trials(problemOf("n=1"))->trials.size(), 40u);
}

TEST(Concurrency, ManyMayMakeTheFileAtOnce) { openTogether(Journal::Auto); }

TEST(Concurrency, ManyMayMakeAFileWithARollbackJournalAtOnce) {
  openTogether(Journal::Rollback);
}

} // namespace
} // namespace mgpu::db
