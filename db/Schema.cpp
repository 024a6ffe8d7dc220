// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Schema.h"

#include "db/Database.h"
#include "db/Statement.h"

#include <filesystem>
#include <fmt/format.h>

namespace mgpu::db {

/// Version 2 of the schema: programs, their plans, and their kernels in every
/// form. Large contents lie in `blobs` under their SHA-256.
static constexpr const char *bundleTables = R"sql(
CREATE TABLE programs(
  id INTEGER PRIMARY KEY,
  entry TEXT NOT NULL,
  source TEXT NOT NULL,
  source_hash TEXT NOT NULL,
  version TEXT NOT NULL,
  options TEXT NOT NULL,
  seal INTEGER NOT NULL,
  text TEXT NOT NULL);

CREATE TABLE plans(
  id INTEGER PRIMARY KEY,
  program INTEGER NOT NULL,
  target TEXT NOT NULL,
  seal INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE INDEX plans_program ON plans(program);

CREATE TABLE kernel_images(
  program INTEGER NOT NULL,
  kernel INTEGER NOT NULL,
  form TEXT NOT NULL,
  target TEXT NOT NULL,
  blob TEXT NOT NULL,
  seal INTEGER NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY(program, kernel, form, target)) WITHOUT ROWID;
)sql";

// The numbers of problems and origins are hashes of their contents, so they
// mean the same for good; those of configurations and trials count up. `seal`
// is the front of the SHA-256 of the other columns (db/RowSeals.h): what a
// failing disk changes is noticed, not believed. Large values come last, so
// that reading the others does not walk through them.
static constexpr const char *version1 = R"sql(
CREATE TABLE problems(
  id INTEGER PRIMARY KEY,
  family TEXT NOT NULL,
  device TEXT NOT NULL,
  setting TEXT NOT NULL,
  shape TEXT NOT NULL,
  seal INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE INDEX problems_family ON problems(family, device, setting);

CREATE TABLE configurations(
  id INTEGER PRIMARY KEY,
  problem INTEGER NOT NULL,
  failure INTEGER NOT NULL,
  seal INTEGER NOT NULL,
  text TEXT NOT NULL,
  UNIQUE(problem, text));

CREATE TABLE origins(
  id INTEGER PRIMARY KEY,
  version TEXT NOT NULL,
  host TEXT NOT NULL,
  seal INTEGER NOT NULL,
  environment TEXT NOT NULL);

CREATE TABLE trials(
  id INTEGER PRIMARY KEY,
  configuration INTEGER NOT NULL,
  origin INTEGER NOT NULL,
  time_ms INTEGER NOT NULL,
  status INTEGER NOT NULL,
  median_us REAL NOT NULL,
  mean_us REAL NOT NULL,
  spread_us REAL NOT NULL,
  low_us REAL NOT NULL,
  high_us REAL NOT NULL,
  samples INTEGER NOT NULL,
  seconds REAL NOT NULL,
  seal INTEGER NOT NULL,
  sentence TEXT NOT NULL);
CREATE INDEX trials_configuration ON trials(configuration);

CREATE TABLE winners(
  problem INTEGER PRIMARY KEY,
  trial INTEGER NOT NULL,
  measured INTEGER NOT NULL,
  sum_us REAL NOT NULL,
  max_us REAL NOT NULL,
  seal INTEGER NOT NULL);

CREATE TABLE blobs(
  key TEXT PRIMARY KEY NOT NULL,
  used_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  hash TEXT NOT NULL,
  value BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX blobs_used ON blobs(used_ms, bytes);
)sql";

static constexpr const char *released[] = {version1, bundleTables};

Migrations migrations() { return released; }

static Result<int64_t> versionOf(Database &database) {
  return database.queryInteger("PRAGMA user_version");
}

Result<void> migrate(Database &database, Migrations steps) {
  int64_t last = int64_t(steps.size());
  auto isOurs = [&]() -> Result<int64_t> {
    MGPU_TRY_ASSIGN(int64_t id, database.queryInteger("PRAGMA application_id"));
    MGPU_TRY_ASSIGN(int64_t version, versionOf(database));
    MGPU_TRY_ASSIGN(int64_t tables, database.queryInteger(
                                        "SELECT count(*) FROM sqlite_schema"));
    bool fresh = id == 0 && version == 0 && tables == 0;
    if (!fresh && id != applicationId)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' is an SQLite file of another program: name "
                              "another file",
                              database.path()));
    if (version < 0 || version > last)
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is a database of version {}; this mgpu "
                              "knows up to {}: use a newer mgpu, or another "
                              "file",
                              database.path(), version, last));
    return version;
  };
  int64_t version = 0;
  {
    // One state of the file: another process may be making it right now.
    MGPU_TRY_ASSIGN(Transaction state, Transaction::read(database));
    MGPU_TRY_ASSIGN(version, isOurs());
  }
  if (version == last)
    return {};
  if (database.isReadOnly()) { // an empty one is new, and holds nothing
    MGPU_TRY_ASSIGN(Database copy, database.copyInMemory());
    MGPU_TRY(migrate(copy, steps));
    MGPU_TRY(copy.freeze());
    database = std::move(copy);
    return {};
  }
  while (version < last) {
    MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(database));
    // Another process may have been here first.
    MGPU_TRY_ASSIGN(version, isOurs());
    if (version < last) {
      MGPU_TRY(database.execute(steps[size_t(version)]));
      ++version;
      MGPU_TRY(database.execute(
          fmt::format("PRAGMA application_id={}; PRAGMA user_version={}",
                      applicationId, version)));
    }
    MGPU_TRY(transaction.commit());
  }
  return {};
}

/// Removes what a failed open() made: a file without tables that nobody else
/// writes to.
static void removeEmpty(const std::string &path) {
  namespace fs = std::filesystem;
  constexpr uintmax_t tables = 8192; // a page is 4096, and each table has one
  std::error_code error;
  const uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes >= tables)
    return;
  const uintmax_t log = fs::file_size(path + "-wal", error);
  if (!error && log > 0)
    return;
  for (const char *ending : {"-wal", "-shm", "-journal", ""})
    fs::remove(path + ending, error);
}

Result<Database> openMigrated(const std::string &path,
                              const DatabaseOptions &options) {
  std::error_code error;
  const bool makes =
      options.access == Access::Create && !std::filesystem::exists(path, error);
  auto open = [&]() -> Result<Database> {
    MGPU_TRY_ASSIGN(Database database, Database::open(path, options));
    MGPU_TRY(migrate(database));
    return database;
  };
  Result<Database> database = open();
  if (!database && makes)
    removeEmpty(path);
  return database;
}

/// Everything the schema says, in one text. Statistics of ANALYZE may be there.
static Result<std::string> schemaText(Database &database) {
  MGPU_TRY_ASSIGN(
      Statement query,
      Statement::prepare(database,
                         "SELECT type, name, tbl_name, sql FROM sqlite_schema "
                         "WHERE name NOT LIKE 'sqlite_stat%' ORDER BY name"));
  std::string text;
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, query.step());
    if (!row)
      return text;
    for (int column = 0; column < 4; ++column)
      text += query.text(column) + '\n';
  }
}

Result<void> checkSchema(Database &database, Migrations steps) {
  MGPU_TRY_ASSIGN(Database ours, Database::inMemory());
  MGPU_TRY(migrate(ours, steps));
  MGPU_TRY_ASSIGN(std::string wanted, schemaText(ours));
  MGPU_TRY_ASSIGN(std::string found, schemaText(database));
  if (found != wanted)
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has other tables than a database of mgpu: "
                            "use one that mgpu made",
                            database.path()));
  return {};
}

} // namespace mgpu::db
