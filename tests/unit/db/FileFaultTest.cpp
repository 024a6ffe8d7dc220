// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Disks that are full, files that cannot be written, pages that changed.
#include "db/Maintenance.h"
#include "db/SqliteBlobCache.h"
#include "db/Statement.h"
#include "support/FileIO.h"
#include "support/Random.h"
#include "support/Sha256.h"
#include "tests/unit/db/Process.h"
#include "tests/unit/db/TempFolder.h"

#include <sys/resource.h>
#include <sys/stat.h>

namespace mgpu::db {
namespace {

TEST(FullDisk, KeepsWhatWasStoredAndGoesOnWhenThereIsRoom) {
  TempFolder folder;
  auto store = TuningStore::open(folder / "a.db");
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->database().execute("PRAGMA max_page_count=24"));
  uint64_t stored = 0;
  for (;; ++stored) {
    ASSERT_LT(stored, 10'000u);
    auto done = store->record(problemOf("n=1"),
                              okTrial("k=" + std::to_string(stored), 5.0));
    if (done)
      continue;
    EXPECT_EQ(done.error().kind, ErrorKind::Invalid);
    EXPECT_NE(done.error().message.find("disk is full"), std::string::npos)
        << done.error().message;
    break;
  }
  EXPECT_GT(stored, 10u);
  EXPECT_EQ(store->trials(problemOf("n=1"))->trials.size(), stored);
  ASSERT_TRUE(store->database().execute("PRAGMA max_page_count=1000"));
  ASSERT_TRUE(store->record(problemOf("n=1"), okTrial("k=last", 1.0)));
  EXPECT_EQ((*store->best(problemOf("n=1")))->configuration, "k=last");
  EXPECT_TRUE(verify(folder / "a.db")->isSound());
}

TEST(FullDisk, NothingIsLeftOfAFileThatCouldNotBeMade) {
  for (rlim_t bytes : {0, 100, 5000, 9000, 20'000}) {
    TempFolder folder;
    Child child([&](const Child::Say &) {
      std::signal(SIGXFSZ, SIG_IGN);
      rlimit limit{bytes, bytes};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
      return TuningStore::open(folder / "a.db") ? 2 : 0;
    });
    EXPECT_EQ(child.wait(), 0) << bytes;
    EXPECT_TRUE(std::filesystem::is_empty(folder / ".")) << bytes;
    // One that was there before stays, and is as one just made.
    ASSERT_TRUE(writeFileAtomic(folder / "b.db", ""));
    DatabaseOptions options;
    options.access = Access::ReadOnly;
    auto empty = TuningStore::open(folder / "b.db", {options, ""});
    ASSERT_TRUE(empty) << empty.error().message;
    EXPECT_TRUE(empty->problems()->empty());
    EXPECT_TRUE(TuningStore::open(folder / "b.db"));
  }
}

TEST(FullDisk, AWriteThatFailsLosesNothing) {
  TempFolder folder;
  std::string path = folder / "a.db";
  uint64_t last = 0;
  Child child([&](const Child::Say &say) {
    // What the system does at this size is what it does on a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{600'000, 600'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0)
      return 1;
    auto store = TuningStore::open(path);
    if (!store)
      return 2;
    for (uint64_t k = 0; k < 10'000; ++k) {
      auto done = store->record(problemOf("n=1"),
                                okTrial("k=" + std::to_string(k), 5.0));
      if (!done)
        return done.error().kind == ErrorKind::Invalid &&
                       done.error().message.find("full") != std::string::npos
                   ? 0
                   : 3;
      say(k);
    }
    return 4;
  });
  EXPECT_EQ(child.wait(), 0);
  uint64_t said = child.drain(last);
  EXPECT_GT(said, 5u);
  auto store = TuningStore::open(path);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(store->trials(problemOf("n=1"))->trials.size(), said);
  EXPECT_TRUE(verify(path)->isSound());
}

TEST(ReadOnlyFile, IsReadAndSaysWhyItIsNotWritten) {
  TempFolder folder;
  std::string path = folder / "a.db";
  {
    auto store = TuningStore::open(path);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->record(problemOf("n=1"), okTrial("k=1", 5.0)));
  }
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(folder.path.c_str(), 0555), 0);
  Child child([&](const Child::Say &) {
    // Root may write anywhere.
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0))
      return 1;
    StoreOptions options;
    options.database.access = Access::ReadOnly;
    auto reader = TuningStore::open(path, options);
    if (!reader || reader->trials(problemOf("n=1"))->trials.size() != 1)
      return 2;
    auto refused = reader->record(problemOf("n=1"), okTrial("k=2", 5.0));
    if (refused ||
        refused.error().message.find("read-only") == std::string::npos)
      return 3;
    auto writer = TuningStore::open(path);
    auto done = writer ? writer->record(problemOf("n=1"), okTrial("k=2", 5.0))
                       : Result<void>(tl::unexpected(writer.error()));
    if (done || done.error().kind == ErrorKind::Internal)
      return 4;
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  ::chmod(folder.path.c_str(), 0755);
}

TEST(FileKinds, WhatIsNoDatabaseIsRefusedAndNotTouched) {
  TempFolder folder;
  auto kindOf = [&](const std::string &path) {
    auto store = TuningStore::open(path);
    return store ? std::optional<ErrorKind>() : store.error().kind;
  };
  EXPECT_EQ(kindOf(folder.path), ErrorKind::Usage);
  EXPECT_EQ(kindOf("/dev/null/a.db"), ErrorKind::Usage);
  std::string text =
      "not a database, but longer than a header: " + std::string(200, 'x');
  ASSERT_TRUE(writeFileAtomic(folder / "text", text));
  EXPECT_EQ(kindOf(folder / "text"), ErrorKind::Invalid);
  EXPECT_EQ(*readText(folder / "text", 1 << 20), text);
  // Names that SQLite would read otherwise are names of files.
  auto odd = TuningStore::open(folder / "file:a?mode=memory");
  ASSERT_TRUE(odd) << odd.error().message;
  EXPECT_TRUE(std::filesystem::exists(folder / "file:a?mode=memory"));
}

/// A database of three problems, and everything in it.
struct Sample {
  std::string path;
  std::vector<TuningProblem> problems;
  std::map<std::string, std::vector<Trial>> trials; ///< by problem's text
  size_t numTrials = 0;

  bool has(const TuningProblem &problem, const Trial &trial) const {
    auto at = trials.find(problem.text());
    return at != trials.end() && std::find(at->second.begin(), at->second.end(),
                                           trial) != at->second.end();
  }
};

Sample makeSample(const std::string &path) {
  Sample sample{path, {}, {}, 0};
  auto store = TuningStore::open(path);
  EXPECT_TRUE(store);
  for (int p = 0; p < 3; ++p) {
    TuningProblem problem = problemOf("n=" + std::to_string(1 << p));
    std::vector<Trial> trials;
    for (int k = 0; k < 60; ++k) {
      std::string configuration =
          "block=" + std::to_string(k * 32) + ",tile=" + std::to_string(k % 8);
      trials.push_back(k % 7 == 3 ? failedTrial(configuration)
                                  : okTrial(configuration, 100 - k + p));
      // Two rows that need pages beside their own.
      if (k == 10)
        trials.back().provenance.environment =
            "\"" + std::string(9000, 'e') + "\"";
    }
    EXPECT_TRUE(store->record(problem, trials));
    sample.problems.push_back(problem);
    sample.numTrials += trials.size();
    sample.trials[problem.text()] = std::move(trials);
  }
  auto cache = SqliteBlobCache::open(path);
  EXPECT_TRUE(cache);
  (*cache)->store(Sha256().add("k").hex(), device::Blob(6000));
  return sample;
}

/// Uses the damaged file in every way. Whatever is read must be true.
void useDamaged(const Sample &sample, const std::string &path) {
  StoreOptions options;
  options.database.access = Access::ReadWrite;
  auto store = TuningStore::open(path, options);
  if (!store) {
    EXPECT_NE(store.error().kind, ErrorKind::Internal) << store.error().message;
    return;
  }
  auto refused = [](const auto &result) {
    if (!result) {
      EXPECT_NE(result.error().kind, ErrorKind::Internal)
          << result.error().message;
    }
    return !result;
  };
  for (const TuningProblem &problem : sample.problems) {
    if (auto found = store->trials(problem); !refused(found))
      for (const Trial &trial : found->trials) {
        Trial whole = trial;
        // What is lost of an origin is empty, never wrong.
        if (whole.provenance.version.empty() &&
            whole.provenance.environment.empty())
          for (const Trial &each : sample.trials.at(problem.text()))
            if (each.configuration == trial.configuration) {
              EXPECT_TRUE(trial.provenance.host.empty());
              whole.provenance = each.provenance;
            }
        EXPECT_TRUE(sample.has(problem, whole)) << trial.configuration;
      }
    if (auto best = store->best(problem); !refused(best) && *best) {
      EXPECT_EQ((*best)->status, TrialStatus::Ok);
    }
    if (auto answer = store->lookUp(problem);
        !refused(answer) && answer->match != Match::None) {
      EXPECT_TRUE(sample.trials.count(answer->problem.text()));
    }
    refused(store->isQuarantined(problem, "block=96,tile=3"));
  }
  refused(store->problems());
  refused(store->record(sample.problems[0], okTrial("block=1,tile=1", 1.0)));
}

TEST(DamagedFile, NoChangedPageIsBelieved) {
  TempFolder folder;
  Sample sample = makeSample(folder / "a.db");
  auto bytes = readFile(sample.path);
  ASSERT_TRUE(bytes);
  constexpr size_t pageSize = 4096;
  size_t pages = bytes->size() / pageSize;
  ASSERT_GT(pages, 20u);
  Random random(2);
  size_t unnoticed = 0;
  for (size_t page = 0; page < pages; ++page)
    for (int kind = 0; kind < 4; ++kind) {
      auto changed = *bytes;
      std::byte *data = changed.data() + page * pageSize;
      if (kind == 0)
        std::fill_n(data, pageSize, std::byte{0});
      else if (kind == 1)
        data[random.below(12)] ^= std::byte(1 << random.below(8));
      else if (kind == 2)
        data[random.below(pageSize)] ^= std::byte(1 << random.below(8));
      else
        for (size_t k = 0; k < pageSize; ++k)
          data[k] = std::byte(random.next());
      std::string path = folder / "changed.db";
      std::span<const std::byte> piece(changed);
      ASSERT_TRUE(writeFileAtomic(path, std::span(&piece, 1)));
      SCOPED_TRACE("page " + std::to_string(page + 1) + ", kind " +
                   std::to_string(kind));

      auto report = verify(path);
      if (report && report->isSound()) {
        ++unnoticed;
        EXPECT_EQ(report->trials, sample.numTrials);
      }
      useDamaged(sample, path);
      std::filesystem::remove(path + "-wal");
      std::filesystem::remove(path + "-shm");
    }
  // A bit in the unused part of a page, or in a counter of the header.
  EXPECT_LT(unnoticed, pages);
  RecordProperty("pages", int(pages));
  RecordProperty("unnoticed", int(unnoticed));
}

TEST(DamagedFile, AChangedFigureIsLeftOut) {
  TempFolder folder;
  Sample sample = makeSample(folder / "a.db");
  auto store = TuningStore::open(sample.path);
  ASSERT_TRUE(store);
  const TuningProblem &problem = sample.problems[0];
  std::string winner = (*store->best(problem))->configuration;
  ASSERT_TRUE(store->database().execute(
      "UPDATE trials SET median_us = 0.5 WHERE id IN (5, 6)"));
  EXPECT_EQ((*store->best(problem))->configuration, winner);
  auto found = store->trials(problem);
  EXPECT_EQ(found->damaged, 2u);
  EXPECT_EQ(found->trials.size(), 58u);
  // A winner that points elsewhere is found out, and the right one found.
  ASSERT_TRUE(store->database().execute("UPDATE winners SET trial = 8"));
  EXPECT_EQ((*store->best(problem))->configuration, winner);
  // A failure that is forgotten is read from the trial.
  ASSERT_TRUE(store->database().execute("UPDATE configurations SET failure = "
                                        "0"));
  EXPECT_TRUE(*store->isQuarantined(problem, "block=96,tile=3"));
  EXPECT_FALSE(verify(sample.path)->isSound());
}

TEST(UntrustedFile, IsCheckedAsAWhole) {
  TempFolder folder;
  Sample sample = makeSample(folder / "a.db");
  StoreOptions options;
  options.database.access = Access::Untrusted;
  EXPECT_TRUE(TuningStore::open(sample.path, options));
  auto bytes = readFile(sample.path);
  // The last page but one holds rows or an index.
  std::fill_n(bytes->data() + bytes->size() - 8192, 4096, std::byte{0x5a});
  std::span<const std::byte> piece(*bytes);
  ASSERT_TRUE(writeFileAtomic(folder / "b.db", std::span(&piece, 1)));
  auto refused = TuningStore::open(folder / "b.db", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Invalid);
  EXPECT_NE(refused.error().message.find("is measured again"),
            std::string::npos);
}

TEST(UntrustedFile, AForeignSchemaIsRefused) {
  TempFolder folder;
  for (const char *sql :
       {"CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END",
        "CREATE TABLE more(a)", "DROP INDEX trials_configuration"}) {
    std::string path = folder / "a.db";
    std::filesystem::remove(path);
    {
      auto store = TuningStore::open(path);
      ASSERT_TRUE(store);
      ASSERT_TRUE(store->database().execute(sql)) << sql;
    }
    StoreOptions options;
    options.database.access = Access::Untrusted;
    auto refused = TuningStore::open(path, options);
    ASSERT_FALSE(refused) << sql;
    EXPECT_EQ(refused.error().kind, ErrorKind::Invalid);
  }
}

} // namespace
} // namespace mgpu::db
