// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Schema.h"
#include "db/Database.h"
#include "db/Statement.h"
#include "support/FileIO.h"
#include "tests/unit/db/TempFolder.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#ifndef MGPU_TEST_DATA
#error "the folder of the files of released versions"
#endif

namespace mgpu::db {
namespace {

// Three versions of a schema that never was.
constexpr const char *history[] = {
    "CREATE TABLE notes(id INTEGER PRIMARY KEY, text TEXT)",
    "ALTER TABLE notes ADD COLUMN length INTEGER;"
    "UPDATE notes SET length = length(text)",
    "CREATE TABLE longest(note INTEGER);"
    "INSERT INTO longest SELECT id FROM notes ORDER BY length DESC LIMIT 1",
};
Migrations upTo(size_t version) { return Migrations(history).first(version); }

Database openFile(const std::string &path, Access access = Access::Create) {
  DatabaseOptions options;
  options.access = access;
  auto database = Database::open(path, options);
  EXPECT_TRUE(database) << database.error().message;
  return std::move(*database);
}

TEST(Migration, BringsEveryVersionToTheLast) {
  for (size_t first = 1; first <= 3; ++first) {
    TempFolder folder;
    {
      Database database = openFile(folder / "a.db");
      ASSERT_TRUE(migrate(database, upTo(first)));
      ASSERT_TRUE(database.execute("INSERT INTO notes(id, text) VALUES "
                                   "(1, 'abc'), (2, 'abcde')"));
    }
    Database database = openFile(folder / "a.db");
    auto done = migrate(database, history);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(*database.queryInteger("PRAGMA user_version"), 3);
    EXPECT_EQ(*database.queryInteger("PRAGMA application_id"), applicationId);
    EXPECT_EQ(*database.queryInteger("SELECT count(*) FROM notes"), 2);
    if (first == 1) {
      EXPECT_EQ(*database.queryInteger("SELECT length FROM notes WHERE id = 2"),
                5);
    }
    if (first < 3) {
      EXPECT_EQ(*database.queryInteger("SELECT count(*) FROM longest"), 1);
    }
    EXPECT_TRUE(migrate(database, history)) << "once more changes nothing";
  }
}

TEST(Migration, AFileMadeWhileItIsLookedAtIsOurs) {
  TempFolder folder;
  Database database = openFile(folder / "a.db");
  Database other = openFile(folder / "a.db");
  // `other` makes the file after the first of the questions that tell whether
  // it is ours, and before the second.
  static Database *maker;
  maker = &other;
  auto onStatement = [](unsigned, void *, void *, void *text) {
    if (maker && std::string_view(static_cast<const char *>(text)) ==
                     "PRAGMA user_version") {
      Database &once = *std::exchange(maker, nullptr);
      EXPECT_TRUE(migrate(once, upTo(1)));
    }
    return 0;
  };
  sqlite3_trace_v2(database.get(), SQLITE_TRACE_STMT, onStatement, nullptr);
  auto done = migrate(database, upTo(1));
  EXPECT_EQ(maker, nullptr) << "nothing was made in between";
  EXPECT_TRUE(done) << done.error().message;
}

TEST(Migration, OneThatFailsChangesNothing) {
  TempFolder folder;
  Database database = openFile(folder / "a.db");
  ASSERT_TRUE(migrate(database, upTo(1)));
  constexpr const char *broken[] = {
      history[0], "CREATE TABLE half(a); INSERT INTO nowhere VALUES (1)"};
  ASSERT_FALSE(migrate(database, broken));
  EXPECT_EQ(*database.queryInteger("PRAGMA user_version"), 1);
  EXPECT_EQ(*database.queryInteger("SELECT count(*) FROM sqlite_schema WHERE "
                                   "name = 'half'"),
            0);
  EXPECT_TRUE(migrate(database, history));
}

TEST(Migration, ALaterVersionIsNamed) {
  TempFolder folder;
  Database database = openFile(folder / "a.db");
  ASSERT_TRUE(migrate(database, upTo(2)));
  auto later = migrate(database, upTo(1));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(later.error().message.find("version 2; this mgpu knows up to 1"),
            std::string::npos);
}

TEST(Migration, AReadOnlyFileIsReadAsIfItWereOfTheLastVersion) {
  TempFolder folder;
  {
    Database database = openFile(folder / "a.db");
    ASSERT_TRUE(migrate(database, upTo(1)));
    ASSERT_TRUE(database.execute("INSERT INTO notes(id, text) VALUES "
                                 "(1, 'abc'), (2, 'abcde')"));
  }
  auto before = readFile(folder / "a.db");
  for (Access access : {Access::ReadOnly, Access::Untrusted}) {
    Database database = openFile(folder / "a.db", access);
    auto done = migrate(database, history);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(*database.queryInteger("SELECT length FROM notes WHERE id = 2"),
              5);
    EXPECT_EQ(*database.queryInteger("SELECT note FROM longest"), 2);
    EXPECT_EQ(database.path(), folder / "a.db");
    EXPECT_TRUE(database.isReadOnly());
    auto refused = database.execute("DELETE FROM notes");
    ASSERT_FALSE(refused) << "it would be lost";
    EXPECT_NE(refused.error().message.find("read-only"), std::string::npos);
    EXPECT_TRUE(checkSchema(database, history));
  }
  EXPECT_EQ(*readFile(folder / "a.db"), *before);
  Database database = openFile(folder / "a.db");
  EXPECT_EQ(*database.queryInteger("PRAGMA user_version"), 1);
}

TEST(Migration, EveryReleasedVersionIsRead) {
  TempFolder folder;
  for (size_t version = 1; version <= migrations().size(); ++version) {
    std::string name = "v" + std::to_string(version) + ".db";
    auto packed = readFile(std::string(MGPU_TEST_DATA) + "/" + name + ".gz");
    ASSERT_TRUE(packed) << "a file of each version is part of the tests: "
                        << packed.error().message;
    auto bytes = gunzip(*packed, 1 << 20, name);
    ASSERT_TRUE(bytes);
    std::string path = folder / name.c_str();
    ASSERT_TRUE(writeFileAtomic(path, *bytes));
    auto store = TuningStore::open(path);
    ASSERT_TRUE(store) << store.error().message;
    // What tests/unit/db/data/README.md says is in it.
    TuningProblem problem = problemOf("n=1024");
    auto found = store->trials(problem);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->damaged, 0u);
    std::vector<Trial> wanted{okTrial("tile=4", 10.5), okTrial("tile=8", 9.25),
                              failedTrial("tile=16", TrialStatus::OverLimit)};
    EXPECT_EQ(found->trials, wanted);
    EXPECT_EQ((*store->best(problem))->configuration, "tile=8");
    EXPECT_TRUE(*store->isQuarantined(problem, "tile=16"));
  }
}

TEST(Journal, IsALogUnlessToldOtherwise) {
  TempFolder folder;
  EXPECT_EQ(*openFile(folder / "a.db").journalMode(), "wal");
  DatabaseOptions options;
  options.journal = Journal::Rollback;
  {
    auto database = Database::open(folder / "a.db", options);
    ASSERT_TRUE(database) << database.error().message;
    EXPECT_EQ(*database->journalMode(), "delete");
    ASSERT_TRUE(database->execute("CREATE TABLE t(a)"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db-wal"));
  EXPECT_EQ(*openFile(folder / "a.db").journalMode(), "wal");
}

TEST(Journal, ARollbackJournalLetsOthersReadBetweenWrites) {
  TempFolder folder;
  DatabaseOptions options;
  options.journal = Journal::Rollback;
  auto one = Database::open(folder / "a.db", options);
  ASSERT_TRUE(one);
  auto two = Database::open(folder / "a.db", options);
  ASSERT_TRUE(two);
  ASSERT_TRUE(one->execute("CREATE TABLE t(a)"));
  for (int k = 0; k < 20; ++k) {
    ASSERT_TRUE((k % 2 ? one : two)->execute("INSERT INTO t VALUES(1)"));
    EXPECT_EQ(*(k % 2 ? two : one)->queryInteger("SELECT count(*) FROM t"),
              k + 1);
  }
}

TEST(Transaction, IsUndoneUnlessCommitted) {
  TempFolder folder;
  Database database = openFile(folder / "a.db");
  ASSERT_TRUE(database.execute("CREATE TABLE t(a)"));
  {
    auto transaction = Transaction::write(database);
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES(1)"));
  }
  EXPECT_EQ(*database.queryInteger("SELECT count(*) FROM t"), 0);
  {
    auto transaction = Transaction::write(database);
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(database.execute("INSERT INTO t VALUES(1)"));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(*database.queryInteger("SELECT count(*) FROM t"), 1);
}

TEST(Transaction, WhoWaitsTooLongIsTold) {
  TempFolder folder;
  Database holder = openFile(folder / "a.db");
  ASSERT_TRUE(holder.execute("CREATE TABLE t(a)"));
  auto held = Transaction::write(holder);
  ASSERT_TRUE(held);
  DatabaseOptions options;
  options.patience = std::chrono::milliseconds(50);
  auto other = Database::open(folder / "a.db", options);
  ASSERT_TRUE(other) << other.error().message;
  auto refused = Transaction::write(*other);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("held by another process"),
            std::string::npos);
}

TEST(Statement, ValuesComeBackAsTheyWere) {
  TempFolder folder;
  Database database = openFile(folder / "a.db");
  auto query = Statement::prepare(database, "SELECT ?, ?, ?, ?, ?");
  ASSERT_TRUE(query);
  std::string text("a\0b", 3);
  std::vector<std::byte> blob{std::byte{0}, std::byte{255}};
  for (int round = 0; round < 2; ++round) {
    query->bind(INT64_MIN).bind(0.1).bind(text).bind(blob).bind(
        std::string_view());
    auto row = query->step();
    ASSERT_TRUE(row);
    ASSERT_TRUE(*row);
    EXPECT_EQ(query->integer(0), INT64_MIN);
    EXPECT_EQ(query->real(1), 0.1);
    EXPECT_EQ(query->text(2), text);
    EXPECT_EQ(query->blob(3), blob);
    EXPECT_EQ(query->text(4), "");
    EXPECT_FALSE(*query->step());
    query->reset();
  }
  EXPECT_FALSE(query->bind(INT64_C(1))
                   .bind(1.0)
                   .bind(text)
                   .bind(blob)
                   .bind(text)
                   .bind(text)
                   .step())
      << "six values for five";
  EXPECT_FALSE(Statement::prepare(database, "SELEC 1"));
}

} // namespace
} // namespace mgpu::db
