// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/VerifyDatabase.h"

#include "db/RowSeals.h"
#include "db/Schema.h"
#include "db/SqliteBlobCache.h"
#include "db/Statement.h"
#include "support/FileIO.h"

#include <fmt/format.h>

namespace mgpu::db {
namespace {

Result<void> checkTree(Database &database, VerifyReport &report) {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(database, "PRAGMA integrity_check(100)"));
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, query.step());
    if (!row)
      return {};
    if (std::string fault = query.text(0); fault != "ok")
      report.faults.push_back(std::move(fault));
  }
}

/// The rows of one problem, and whether winner and quarantine follow from them.
Result<void> checkProblem(StoreFile &file, RowId id, VerifyReport &report) {
  MGPU_TRY_ASSIGN(auto problem, file.problem(id));
  report.problems += problem.has_value();
  MGPU_TRY_ASSIGN(auto rows, file.trials(id));
  report.trials += rows.size();
  std::map<RowId, bool> failed;
  std::map<RowId, const std::string *> texts;
  for (const TrialRow &row : rows) {
    failed[row.configuration] |= row.trial.status != TrialStatus::Ok;
    texts[row.configuration] = &row.trial.configuration;
  }
  for (const auto &[configuration, text] : texts) {
    MGPU_TRY_ASSIGN(auto failure, file.failure(id, *text));
    report.wrong += failure.has_value() != failed[configuration];
  }
  report.configurations += texts.size();
  auto said = chooseWinner(rows, [&](RowId each) { return failed[each]; });
  MGPU_TRY_ASSIGN(auto stored, file.winner(id));
  report.wrong += said.has_value() != stored.has_value() ||
                  (said && said->row.id != stored->row.id);
  return {};
}

Result<void> checkRows(StoreFile &file, VerifyReport &report) {
  MGPU_TRY_ASSIGN(auto ids, file.problems());
  for (RowId id : ids)
    MGPU_TRY(checkProblem(file, id, report));
  MGPU_TRY_ASSIGN(int64_t all,
                  file.database.queryInteger("SELECT count(*) FROM trials"));
  // Rows that no configuration leads to.
  uint64_t reached = report.trials + file.damaged();
  report.damaged += file.damaged();
  if (uint64_t(all) > reached)
    report.damaged += uint64_t(all) - reached;
  return {};
}

Result<void> checkBlobs(Database &database, VerifyReport &report) {
  MGPU_TRY_ASSIGN(
      Statement query,
      Statement::prepare(database, "SELECT key, hash, value FROM blobs"));
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, query.step());
    if (!row)
      return {};
    bool sound = query.text(1) == blobHash(query.text(0), query.blob(2));
    ++(sound ? report.blobs : report.damaged);
  }
}

} // namespace

Result<VerifyReport> verify(const std::string &path) {
  MGPU_TRY(fileSize(path));
  VerifyReport report;
  DatabaseOptions options;
  options.access = Access::ReadOnly;
  options.purpose = Purpose::Verify;
  // Damage may show at any step; what was counted before stays.
  auto note = [&](const Result<void> &done) {
    if (!done)
      report.faults.push_back(done.error().message);
    return done.has_value();
  };
  auto file = StoreFile::open(path, options);
  if (file) {
    bool tree = note(checkTree(file->database, report));
    bool rows = tree && note(checkRows(*file, report));
    if (rows)
      note(checkBlobs(file->database, report));
  } else {
    return fail(file.error());
  }
  return report;
}

} // namespace mgpu::db
