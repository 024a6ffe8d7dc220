// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How StoreFile writes. Each function that finds a row it would have written,
// but damaged, writes it anew: what is to be stored is known.
#include "db/RowSeals.h"
#include "db/Statement.h"
#include "support/Clock.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::db {

Result<RowId> StoreFile::addProblem(const TuningProblem &problem) {
  MGPU_TRY_ASSIGN(auto found, findProblem(problem));
  if (found)
    return *found;
  RowId id = idOf(problem);
  MGPU_TRY_ASSIGN(Statement insert,
                  Statement::prepare(
                      database, "INSERT OR REPLACE INTO problems(id, family, "
                                "device, setting, shape, seal, text) "
                                "VALUES(?, ?, ?, ?, ?, ?, ?)"));
  MGPU_TRY(insert.bind(id)
               .bind(problem.familyKey())
               .bind(problem.device)
               .bind(problem.settingKey())
               .bind(problem.shape)
               .bind(sealOfProblem(id, problem))
               .bind(problem.text())
               .run());
  return id;
}

Result<StoreFile::Configuration>
StoreFile::addConfiguration(RowId problem, const std::string &text) {
  MGPU_TRY_ASSIGN(auto found, configuration(problem, text));
  if (found)
    return *found;
  MGPU_TRY_ASSIGN(RowId id,
                  database.queryInteger("SELECT coalesce(max(id), 0) + 1 FROM "
                                        "configurations"));
  MGPU_TRY_ASSIGN(Statement insert,
                  Statement::prepare(database,
                                     "INSERT INTO configurations(id, problem, "
                                     "failure, seal, text) "
                                     "VALUES(?, ?, 0, ?, ?)"));
  MGPU_TRY(insert.bind(id)
               .bind(problem)
               .bind(sealOfConfiguration(id, problem, 0, text))
               .bind(text)
               .run());
  return Configuration{id, 0};
}

Result<RowId> StoreFile::addOrigin(const Provenance &provenance) {
  RowId id = idOf(provenance);
  origins.erase(id); // Another process may have pruned it.
  MGPU_TRY_ASSIGN(auto known, origin(id));
  if (known)
    return id;
  MGPU_TRY_ASSIGN(
      Statement insert,
      Statement::prepare(database,
                         "INSERT OR REPLACE INTO origins(id, version, "
                         "host, seal, environment) VALUES(?, ?, ?, ?, ?)"));
  MGPU_TRY(insert.bind(id)
               .bind(provenance.version)
               .bind(provenance.host)
               .bind(sealOfOrigin(id, provenance))
               .bind(provenance.environment)
               .run());
  origins.erase(id);
  return id;
}

/// So many trials are cheaper counted anew than one by one.
static constexpr size_t manyTrials = 16;

Result<void> StoreFile::addTrials(RowId problem,
                                  std::span<const Trial> trials) {
  bool many = trials.size() > manyTrials;
  for (const Trial &trial : trials)
    MGPU_TRY(addTrial(problem, trial, !many));
  return many ? rebuildWinner(problem) : Result<void>();
}

/// JSON takes UTF-8 alone, and a sentence may quote anything.
static std::string asUtf8(const std::string &text) {
  if (std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return c < 0x80; }))
    return text;
  using nlohmann::json;
  return json::parse(
             json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

Result<void> StoreFile::addTrial(RowId problem, const Trial &given,
                                 bool keepWinner) {
  Trial trial = given;
  for (std::string *text :
       {&trial.sentence, &trial.provenance.version, &trial.provenance.host,
        &trial.provenance.environment})
    *text = asUtf8(*text);
  if (trial.provenance.timeMs == 0)
    trial.provenance.timeMs = unixMilliseconds();
  MGPU_TRY_ASSIGN(Configuration configuration,
                  addConfiguration(problem, trial.configuration));
  MGPU_TRY_ASSIGN(RowId origin, addOrigin(trial.provenance));
  MGPU_TRY_ASSIGN(RowId id, database.queryInteger(
                                "SELECT coalesce(max(id), 0) + 1 FROM trials"));
  TrialRow row{id, configuration.id, trial};
  MGPU_TRY_ASSIGN(Statement insert,
                  Statement::prepare(
                      database,
                      "INSERT INTO trials(id, configuration, origin, time_ms, "
                      "status, median_us, mean_us, spread_us, low_us, high_us, "
                      "samples, seconds, seal, sentence) "
                      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  MGPU_TRY(insert.bind(id)
               .bind(configuration.id)
               .bind(origin)
               .bind(trial.provenance.timeMs)
               .bind(int64_t(trial.status))
               .bind(trial.medianUs)
               .bind(trial.meanUs)
               .bind(trial.spreadUs)
               .bind(trial.lowUs)
               .bind(trial.highUs)
               .bind(int64_t(trial.samples))
               .bind(trial.seconds)
               .bind(sealOfTrial(problem, origin, row))
               .bind(trial.sentence)
               .run());
  if (trial.status != TrialStatus::Ok)
    return quarantine(problem, configuration, row, keepWinner);
  return keepWinner && configuration.failure == 0 ? updateWinner(problem, row)
                                                  : Result<void>();
}

Result<void> StoreFile::quarantine(RowId problem, Configuration configuration,
                                   const TrialRow &row, bool keepWinner) {
  if (configuration.failure != 0)
    return {};
  MGPU_TRY_ASSIGN(Statement update,
                  Statement::prepare(database,
                                     "UPDATE configurations SET failure = ?, "
                                     "seal = ? WHERE id = ?"));
  MGPU_TRY(update.bind(row.id)
               .bind(sealOfConfiguration(configuration.id, problem, row.id,
                                         row.trial.configuration))
               .bind(configuration.id)
               .run());
  if (!keepWinner)
    return {};
  MGPU_TRY_ASSIGN(auto rows, trials(problem, configuration.id));
  bool hadWorked = std::any_of(rows.begin(), rows.end(), [](const auto &each) {
    return each.trial.status == TrialStatus::Ok;
  });
  return hadWorked ? rebuildWinner(problem) : Result<void>();
}

Result<void> StoreFile::rebuildWinner(RowId problem) {
  MGPU_TRY_ASSIGN(auto rows, trials(problem));
  std::map<RowId, bool> out;
  for (const TrialRow &row : rows)
    out[row.configuration] |= row.trial.status != TrialStatus::Ok;
  if (auto winner = chooseWinner(rows, [&](RowId id) { return out[id]; }))
    return writeWinner(problem, *winner);
  MGPU_TRY_ASSIGN(
      Statement remove,
      Statement::prepare(database, "DELETE FROM winners WHERE problem = ?"));
  return remove.bind(problem).run();
}

Result<void> StoreFile::writeWinner(RowId problem, const Winner &winner) {
  MGPU_TRY_ASSIGN(Statement insert,
                  Statement::prepare(database,
                                     "INSERT OR REPLACE INTO winners(problem, "
                                     "trial, measured, sum_us, max_us, seal) "
                                     "VALUES(?, ?, ?, ?, ?, ?)"));
  return insert.bind(problem)
      .bind(winner.row.id)
      .bind(int64_t(winner.measured))
      .bind(winner.sumUs)
      .bind(winner.maxUs)
      .bind(sealOfWinner(problem, winner))
      .run();
}

Result<void> StoreFile::updateWinner(RowId problem, const TrialRow &row) {
  uint64_t before = numDamaged;
  MGPU_TRY_ASSIGN(auto winner, winner(problem));
  if (!winner || numDamaged != before)
    return rebuildWinner(problem);
  MGPU_TRY_ASSIGN(auto rows, trials(problem, row.configuration));
  auto figure = chooseWinner(rows, [](RowId) { return false; });
  if (!figure)
    return fail(ErrorKind::Internal, "a trial that was just stored is gone");
  bool same = winner->row.configuration == row.configuration;
  const Trial &candidate = figure->row.trial;
  // The winner itself turned out slower: another may be faster now.
  if (same && candidate.medianUs > winner->row.trial.medianUs)
    return rebuildWinner(problem);
  if (same || candidate.medianUs < winner->row.trial.medianUs)
    winner->row = figure->row;
  ++winner->measured;
  winner->sumUs += row.trial.medianUs;
  winner->maxUs = std::max(winner->maxUs, row.trial.medianUs);
  return writeWinner(problem, *winner);
}

} // namespace mgpu::db
