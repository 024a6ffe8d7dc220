// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Maintenance.h"

#include "db/Database.h"
#include "db/RowSeals.h"
#include "db/Schema.h"
#include "db/SqliteBlobCache.h"
#include "db/Statement.h"
#include "support/FileIO.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::db {

using nlohmann::json;

static constexpr int textVersion = 1;

Result<Transferred>
exportText(TuningStore &store, std::span<const std::string> keys,
           const std::function<Result<void>(std::string_view)> &sink) {
  std::vector<TuningProblem> wanted;
  if (keys.empty()) {
    MGPU_TRY_ASSIGN(wanted, store.problems());
  }
  for (const std::string &key : keys) {
    MGPU_TRY_ASSIGN(TuningProblem problem, findByKey(store, key));
    wanted.push_back(std::move(problem));
  }
  Transferred done;
  MGPU_TRY(sink(json{{"mgpu_db", textVersion}}.dump() + "\n"));
  for (const TuningProblem &problem : wanted) {
    MGPU_TRY_ASSIGN(Trials found, store.trials(problem));
    ++done.problems;
    done.trials += found.trials.size();
    done.damaged += found.damaged;
    MGPU_TRY(sink(json{{"problem", problem.text()}}.dump() + "\n"));
    for (const Trial &trial : found.trials)
      MGPU_TRY(sink(trialToJson(trial) + "\n"));
  }
  return done;
}

namespace {

/// Lines of text with the name an error gives them.
class Lines {
public:
  Lines(std::string_view text, const std::string &name)
      : rest(text), file(name) {}
  bool next(std::string_view &line) {
    while (!rest.empty()) {
      size_t end = std::min(rest.find('\n'), rest.size());
      line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      ++number;
      if (line.find_first_not_of(" \t\r") != std::string_view::npos)
        return true;
    }
    return false;
  }
  std::string name() const { return fmt::format("{}:{}", file, number); }

private:
  std::string_view rest;
  const std::string &file;
  uint64_t number = 0;
};

Result<TuningProblem> problemOfLine(const json &line, const std::string &name) {
  if (!line["problem"].is_string())
    return fail(ErrorKind::Invalid,
                fmt::format("{}: 'problem' is not a text", name));
  auto problem = TuningProblem::parse(line["problem"].get<std::string>());
  if (!problem)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: {}", name, problem.error().message));
  return problem;
}

} // namespace

Result<std::vector<ProblemTrials>> parseText(std::string_view text,
                                             const std::string &name) {
  Lines lines(text, name);
  std::string_view line;
  auto parse = [&](json &out) {
    out = json::parse(line, nullptr, false);
    return out.is_object();
  };
  json header;
  if (!lines.next(line) || !parse(header) || !header.contains("mgpu_db"))
    return fail(
        ErrorKind::Invalid,
        fmt::format(
            "'{}' is neither a database nor what `mgpu-tune db export` writes",
            name));
  if (header["mgpu_db"] != textVersion)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("'{}' is of a later version: use a newer mgpu", name));
  std::vector<ProblemTrials> all;
  while (lines.next(line)) {
    json each;
    if (parse(each) && each.contains("problem")) {
      MGPU_TRY_ASSIGN(TuningProblem next, problemOfLine(each, lines.name()));
      all.push_back({std::move(next), {}});
      continue;
    }
    MGPU_TRY_ASSIGN(Trial trial, trialFromJson(line, lines.name()));
    if (all.empty())
      return fail(
          ErrorKind::Invalid,
          fmt::format("{}: a trial before the first problem", lines.name()));
    if (auto sound = check(trial); !sound)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: {}", lines.name(), sound.error().message));
    all.back().trials.push_back(std::move(trial));
  }
  return all;
}

static Result<void> record(TuningStore &store, const TuningProblem &problem,
                           std::span<const Trial> trials, Transferred &done) {
  MGPU_TRY_ASSIGN(uint64_t added, store.recordMissing(problem, trials));
  ++done.problems;
  done.trials += added;
  done.known += trials.size() - added;
  return {};
}

Result<Transferred> recordAll(TuningStore &store,
                              std::span<const ProblemTrials> all) {
  Transferred done;
  for (const ProblemTrials &each : all)
    MGPU_TRY(record(store, each.problem, each.trials, done));
  return done;
}

Result<Transferred> merge(TuningStore &store, const std::string &path) {
  Transferred done;
  StoreOptions options;
  options.database.access = Access::Untrusted;
  MGPU_TRY_ASSIGN(TuningStore from, TuningStore::open(path, options));
  MGPU_TRY_ASSIGN(auto problems, from.problems());
  for (const TuningProblem &problem : problems) {
    MGPU_TRY_ASSIGN(Trials found, from.trials(problem));
    done.damaged += found.damaged;
    // A sealed row may still say what no measurement can.
    std::erase_if(found.trials, [&](const Trial &trial) {
      bool wrong = !check(trial);
      done.damaged += wrong;
      return wrong;
    });
    MGPU_TRY(record(store, problem, found.trials, done));
  }
  return done;
}

Result<TuningProblem> findByKey(TuningStore &store, const std::string &prefix) {
  MGPU_TRY_ASSIGN(std::vector<TuningProblem> found, store.problems());
  std::erase_if(found, [&](const TuningProblem &each) {
    return !each.key().starts_with(prefix);
  });
  if (found.size() != 1)
    return fail(ErrorKind::Usage,
                fmt::format("{} the key '{}'; `mgpu-tune db list` shows them",
                            found.empty() ? "no problem has"
                                          : "several problems begin with",
                            prefix));
  return std::move(found[0]);
}

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
