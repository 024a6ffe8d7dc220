// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/StoreFile.h"

#include "db/RowSeals.h"
#include "db/Schema.h"
#include "db/Statement.h"
#include "support/Clock.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace mgpu::db {

std::optional<Winner> chooseWinner(std::span<const TrialRow> rows,
                                   const std::function<bool(RowId)> &isOut) {
  // The trial that counts of each configuration.
  std::map<RowId, const TrialRow *> figures;
  Winner winner;
  for (const TrialRow &row : rows) {
    const Trial &trial = row.trial;
    if (trial.status != TrialStatus::Ok || isOut(row.configuration))
      continue;
    ++winner.measured;
    winner.sumUs += trial.medianUs;
    winner.maxUs = std::max(winner.maxUs, trial.medianUs);
    const TrialRow *&figure = figures[row.configuration];
    if (!figure || trial.samples > figure->trial.samples ||
        (trial.samples == figure->trial.samples &&
         trial.medianUs < figure->trial.medianUs))
      figure = &row;
  }
  const TrialRow *best = nullptr;
  for (auto [configuration, figure] : figures)
    if (!best || figure->trial.medianUs < best->trial.medianUs ||
        (figure->trial.medianUs == best->trial.medianUs &&
         figure->id < best->id))
      best = figure;
  if (!best)
    return std::nullopt;
  winner.row = *best;
  return winner;
}

Result<StoreFile> StoreFile::open(const std::string &path,
                                  const DatabaseOptions &options) {
  MGPU_TRY_ASSIGN(Database database, openMigrated(path, options));
  if (options.access == Access::Untrusted)
    MGPU_TRY(checkSchema(database));
  return StoreFile(std::move(database));
}

Result<std::optional<RowId>>
StoreFile::findProblem(const TuningProblem &problem) {
  RowId id = idOf(problem);
  MGPU_TRY_ASSIGN(auto found, this->problem(id));
  return found == problem ? std::optional(id) : std::nullopt;
}

Result<std::optional<TuningProblem>> StoreFile::problem(RowId id) {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(database,
                                     "SELECT seal, text FROM problems "
                                     "WHERE id = ?"));
  MGPU_TRY_ASSIGN(bool row, query.bind(id).step());
  if (!row)
    return std::nullopt;
  auto problem = TuningProblem::parse(query.text(1));
  if (!problem || query.integer(0) != sealOfProblem(id, *problem)) {
    ++numDamaged;
    return std::nullopt;
  }
  return std::move(*problem);
}

Result<std::vector<ProblemRow>>
StoreFile::family(const std::string &familyKey) {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(database,
                                     "SELECT id, device, setting, shape FROM "
                                     "problems WHERE family = ?"));
  query.bind(familyKey);
  std::vector<ProblemRow> rows;
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, query.step());
    if (!row)
      return rows;
    rows.push_back(
        {query.integer(0), query.text(1), query.text(2), query.text(3)});
  }
}

Result<std::vector<RowId>> StoreFile::problems() {
  MGPU_TRY_ASSIGN(
      Statement query,
      Statement::prepare(database, "SELECT id FROM problems ORDER BY id"));
  std::vector<RowId> ids;
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, query.step());
    if (!row)
      return ids;
    ids.push_back(query.integer(0));
  }
}

Result<std::optional<Provenance>> StoreFile::origin(RowId id) {
  if (auto at = origins.find(id); at != origins.end())
    return at->second;
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(database,
                                     "SELECT version, host, seal, environment "
                                     "FROM origins WHERE id = ?"));
  MGPU_TRY_ASSIGN(bool row, query.bind(id).step());
  std::optional<Provenance> origin;
  if (row) {
    Provenance read{0, query.text(0), query.text(1), query.text(3)};
    if (query.integer(2) == sealOfOrigin(id, read))
      origin = std::move(read);
  }
  origins.emplace(id, origin);
  return origin;
}

Result<std::vector<TrialRow>> StoreFile::trials(RowId problem,
                                                RowId configuration) {
  constexpr std::string_view sql =
      "SELECT t.id, t.configuration, t.origin, t.time_ms, t.status, "
      "t.median_us, t.mean_us, t.spread_us, t.low_us, t.high_us, t.samples, "
      "t.seconds, t.seal, t.sentence, c.text "
      "FROM configurations c CROSS JOIN trials t ON t.configuration = c.id ";
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(
                      database, std::string(sql) +
                                    (configuration ? "WHERE c.id = ?2 AND "
                                                     "c.problem = ?1"
                                                   : "WHERE c.problem = ?1")));
  query.bind(problem);
  if (configuration)
    query.bind(configuration);
  std::vector<TrialRow> rows;
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, query.step());
    if (!row)
      break;
    TrialRow read{query.integer(0), query.integer(1), {}};
    Trial &trial = read.trial;
    RowId originId = query.integer(2);
    int64_t status = query.integer(4);
    trial.medianUs = query.real(5);
    trial.meanUs = query.real(6);
    trial.spreadUs = query.real(7);
    trial.lowUs = query.real(8);
    trial.highUs = query.real(9);
    trial.samples = uint64_t(query.integer(10));
    trial.seconds = query.real(11);
    trial.sentence = query.text(13);
    trial.configuration = query.text(14);
    bool sound = status >= 0 && status <= int64_t(TrialStatus::Invalid);
    trial.status = TrialStatus(sound ? status : 0);
    trial.provenance.timeMs = query.integer(3);
    sound &= query.integer(12) == sealOfTrial(problem, originId, read);
    if (!sound) {
      ++numDamaged;
      continue;
    }
    // Figures stay worth having where their origin is lost.
    MGPU_TRY_ASSIGN(auto origin, this->origin(originId));
    if (origin) {
      origin->timeMs = trial.provenance.timeMs;
      trial.provenance = std::move(*origin);
    }
    rows.push_back(std::move(read));
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto &a, const auto &b) { return a.id < b.id; });
  return rows;
}

Result<std::optional<Winner>> StoreFile::winner(RowId problem) {
  MGPU_TRY_ASSIGN(
      Statement query,
      Statement::prepare(database,
                         "SELECT w.trial, w.measured, w.sum_us, "
                         "w.max_us, w.seal, t.configuration FROM "
                         "winners w LEFT JOIN trials t ON t.id = w.trial "
                         "WHERE w.problem = ?"));
  MGPU_TRY_ASSIGN(bool row, query.bind(problem).step());
  if (!row)
    return std::nullopt;
  Winner winner;
  winner.row.id = query.integer(0);
  winner.measured = uint64_t(query.integer(1));
  winner.sumUs = query.real(2);
  winner.maxUs = query.real(3);
  // Its trial's row may be gone.
  bool sound = query.integer(4) == sealOfWinner(problem, winner) &&
               query.integer(5) != 0;
  if (sound) {
    MGPU_TRY_ASSIGN(auto rows, trials(problem, query.integer(5)));
    for (TrialRow &each : rows)
      if (each.id == winner.row.id) {
        winner.row = std::move(each);
        return winner;
      }
  }
  // The trials say it as well.
  ++numDamaged;
  MGPU_TRY_ASSIGN(auto rows, trials(problem));
  std::map<RowId, bool> out;
  for (const TrialRow &each : rows)
    out[each.configuration] |= each.trial.status != TrialStatus::Ok;
  return chooseWinner(rows, [&](RowId id) { return out[id]; });
}

Result<StoreFile::Counts> StoreFile::countTrials(RowId problem) {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(
                      database, "SELECT count(*), total(t.status <> 0) FROM "
                                "configurations c CROSS JOIN trials t ON "
                                "t.configuration = c.id WHERE c.problem = ?"));
  MGPU_TRY(query.bind(problem).step());
  return Counts{uint64_t(query.integer(0)), uint64_t(query.integer(1))};
}

Result<std::optional<StoreFile::Configuration>>
StoreFile::configuration(RowId problem, const std::string &text) {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(database,
                                     "SELECT id, failure, seal FROM "
                                     "configurations WHERE problem = ? AND "
                                     "text = ?"));
  MGPU_TRY_ASSIGN(bool row, query.bind(problem).bind(text).step());
  if (!row)
    return std::nullopt;
  Configuration found{query.integer(0), query.integer(1)};
  if (query.integer(2) ==
      sealOfConfiguration(found.id, problem, found.failure, text))
    return found;
  // Whether it failed can be read from its trials.
  ++numDamaged;
  found.failure = 0;
  MGPU_TRY_ASSIGN(auto rows, trials(problem, found.id));
  for (const TrialRow &each : rows)
    if (each.trial.status != TrialStatus::Ok && found.failure == 0)
      found.failure = each.id;
  return found;
}

Result<std::optional<RowId>>
StoreFile::findConfiguration(RowId problem, const std::string &text) {
  MGPU_TRY_ASSIGN(auto found, configuration(problem, text));
  return found ? std::optional(found->id) : std::nullopt;
}

Result<std::optional<Trial>>
StoreFile::failure(RowId problem, const std::string &configurationText) {
  MGPU_TRY_ASSIGN(auto found, configuration(problem, configurationText));
  if (!found || found->failure == 0)
    return std::nullopt;
  MGPU_TRY_ASSIGN(auto rows, trials(problem, found->id));
  for (TrialRow &each : rows)
    if (each.id == found->failure)
      return std::move(each.trial);
  Trial lost;
  lost.configuration = configurationText;
  lost.status = TrialStatus::Invalid;
  lost.sentence = "it failed; how is lost, its row is damaged";
  return lost;
}

// How StoreFile writes. Each function that finds a row it would have written,
// but damaged, writes it anew: what is to be stored is known.

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
