// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Prune.h"

#include "db/Database.h"
#include "db/RowSeals.h"
#include "db/SqliteBlobCache.h"
#include "db/Statement.h"

namespace mgpu::db {
namespace {

Result<uint64_t> count(Database &database, const char *table) {
  MGPU_TRY_ASSIGN(
      int64_t rows,
      database.queryInteger(std::string("SELECT count(*) FROM ") + table));
  return uint64_t(rows);
}

Result<uint64_t> sizeOf(Database &database) {
  MGPU_TRY_ASSIGN(int64_t pages, database.queryInteger("PRAGMA page_count"));
  MGPU_TRY_ASSIGN(int64_t size, database.queryInteger("PRAGMA page_size"));
  return uint64_t(pages) * uint64_t(size);
}

Result<void> run(Database &database, std::string_view sql, int64_t value) {
  MGPU_TRY_ASSIGN(Statement statement, Statement::prepare(database, sql));
  return statement.bind(value).run();
}

Result<void> dropProblem(Database &database, RowId id) {
  for (const char *sql : {"DELETE FROM trials WHERE configuration IN "
                          "(SELECT id FROM configurations WHERE problem = ?)",
                          "DELETE FROM configurations WHERE problem = ?",
                          "DELETE FROM winners WHERE problem = ?",
                          "DELETE FROM problems WHERE id = ?"})
    MGPU_TRY(run(database, sql, id));
  return {};
}

} // namespace

Result<Pruned> prune(TuningStore &store, const PruneOptions &options) {
  Database &database = store.database();
  Pruned done;
  MGPU_TRY_ASSIGN(done.bytesBefore, sizeOf(database));
  {
    MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(database));
    MGPU_TRY_ASSIGN(uint64_t problems, count(database, "problems"));
    MGPU_TRY_ASSIGN(uint64_t trials, count(database, "trials"));
    for (const TuningProblem &problem : options.problems)
      MGPU_TRY(dropProblem(database, idOf(problem)));
    if (options.beforeMs) {
      MGPU_TRY(run(database,
                   // One trial may correct another of its configuration, so
                   // they stay together.
                   "DELETE FROM trials WHERE configuration NOT IN "
                   "(SELECT configuration FROM trials WHERE time_ms >= ?) AND "
                   "configuration NOT IN (SELECT id FROM configurations WHERE "
                   "failure <> 0) AND configuration NOT IN (SELECT "
                   "t.configuration FROM winners w JOIN trials t ON t.id = "
                   "w.trial)",
                   *options.beforeMs));
      MGPU_TRY(
          database.execute("DELETE FROM configurations WHERE failure = 0 AND "
                           "id NOT IN (SELECT configuration FROM trials)"));
      MGPU_TRY(store.rebuildWinners());
    }
    MGPU_TRY(database.execute("DELETE FROM origins WHERE id NOT IN (SELECT "
                              "origin FROM trials)"));
    MGPU_TRY_ASSIGN(uint64_t problemsLeft, count(database, "problems"));
    MGPU_TRY_ASSIGN(uint64_t trialsLeft, count(database, "trials"));
    done.problems = problems - problemsLeft;
    done.trials = trials - trialsLeft;
    if (options.blobBytes) {
      MGPU_TRY_ASSIGN(done.blobs, evictBlobs(database, *options.blobBytes));
    }
    MGPU_TRY(transaction.commit());
  }
  MGPU_TRY(database.execute("VACUUM"));
  MGPU_TRY_ASSIGN(done.bytesAfter, sizeOf(database));
  return done;
}

} // namespace mgpu::db
