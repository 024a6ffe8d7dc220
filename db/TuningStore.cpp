// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/TuningStore.h"

#include "db/Database.h"
#include "db/LookUp.h"
#include "db/RowSeals.h"
#include "support/Sha256.h"

#include <set>

namespace mgpu::db {

struct TuningStore::File : StoreFile {
  explicit File(StoreFile file) : StoreFile(std::move(file)) {}
};

TuningStore::TuningStore() = default;
TuningStore::TuningStore(TuningStore &&) noexcept = default;
TuningStore &TuningStore::operator=(TuningStore &&) noexcept = default;
TuningStore::~TuningStore() = default;

std::string_view matchName(Match match) {
  static constexpr std::string_view names[] = {
      "exact", "other-shape", "other-driver", "other-device", "none"};
  return names[size_t(match)];
}

Result<TuningStore> TuningStore::open(const std::string &path,
                                      const StoreOptions &options) {
  TuningStore store;
  MGPU_TRY_ASSIGN(StoreFile user, StoreFile::open(path, options.database));
  store.user = std::make_unique<File>(std::move(user));
  if (!options.site.empty()) {
    DatabaseOptions below = options.database;
    below.access = Access::ReadOnly;
    MGPU_TRY_ASSIGN(StoreFile site, StoreFile::open(options.site, below));
    store.site = std::make_unique<File>(std::move(site));
  }
  return store;
}

const std::string &TuningStore::path() const { return user->database.path(); }
Database &TuningStore::database() { return user->database; }

Result<void> TuningStore::record(const TuningProblem &problem,
                                 const Trial &trial) {
  return record(problem, std::span(&trial, 1));
}

Result<void> TuningStore::record(const TuningProblem &problem,
                                 std::span<const Trial> trials) {
  for (const Trial &trial : trials)
    MGPU_TRY(check(trial));
  MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(user->database));
  MGPU_TRY_ASSIGN(RowId id, user->addProblem(problem));
  MGPU_TRY(user->addTrials(id, trials));
  return transaction.commit();
}

/// Two trials with one of it are the same trial.
static std::string contentOf(const Trial &trial) {
  return Sha256().add(trialToJson(trial)).hex();
}

Result<uint64_t> TuningStore::recordMissing(const TuningProblem &problem,
                                            std::span<const Trial> trials) {
  for (const Trial &trial : trials)
    MGPU_TRY(check(trial));
  MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(user->database));
  MGPU_TRY_ASSIGN(RowId id, user->addProblem(problem));
  MGPU_TRY_ASSIGN(auto rows, user->trials(id));
  std::set<std::string> known;
  for (const TrialRow &row : rows)
    known.insert(contentOf(row.trial));
  std::vector<Trial> missing;
  for (const Trial &trial : trials)
    if (known.insert(contentOf(trial)).second)
      missing.push_back(trial);
  MGPU_TRY(user->addTrials(id, missing));
  MGPU_TRY(transaction.commit());
  return missing.size();
}

Result<Trials> TuningStore::trials(const TuningProblem &problem) {
  Trials found;
  for (File *file : {site.get(), user.get()}) {
    if (!file)
      continue;
    uint64_t before = file->damaged();
    MGPU_TRY_ASSIGN(Transaction state, Transaction::read(file->database));
    MGPU_TRY_ASSIGN(auto id, file->findProblem(problem));
    if (id) {
      MGPU_TRY_ASSIGN(auto rows, file->trials(*id));
      for (TrialRow &row : rows)
        found.trials.push_back(std::move(row.trial));
    }
    found.damaged += file->damaged() - before;
  }
  return found;
}

Result<std::optional<Trial>> TuningStore::best(const TuningProblem &problem) {
  MGPU_TRY_ASSIGN(ReadState state, ReadState::begin(*user, site.get()));
  MGPU_TRY_ASSIGN(auto found, findExact(*user, site.get(), problem));
  return found ? std::optional(std::move(found->winner.row.trial))
               : std::nullopt;
}

Result<LookUp> TuningStore::lookUp(const TuningProblem &problem) {
  return db::lookUp(*user, site.get(), problem);
}

Result<std::optional<Trial>>
TuningStore::quarantined(const TuningProblem &problem,
                         const std::string &configuration) {
  for (File *file : {user.get(), site.get()}) {
    if (!file)
      continue;
    MGPU_TRY_ASSIGN(Transaction state, Transaction::read(file->database));
    MGPU_TRY_ASSIGN(auto id, file->findProblem(problem));
    if (!id)
      continue;
    MGPU_TRY_ASSIGN(auto failure, file->failure(*id, configuration));
    if (failure)
      return failure;
  }
  return std::nullopt;
}

Result<bool> TuningStore::isQuarantined(const TuningProblem &problem,
                                        const std::string &configuration) {
  MGPU_TRY_ASSIGN(auto failure, quarantined(problem, configuration));
  return failure.has_value();
}

Result<std::vector<TuningProblem>> TuningStore::problems() {
  std::map<std::string, TuningProblem> byText;
  for (File *file : {site.get(), user.get()}) {
    if (!file)
      continue;
    MGPU_TRY_ASSIGN(Transaction state, Transaction::read(file->database));
    MGPU_TRY_ASSIGN(auto ids, file->problems());
    for (RowId id : ids) {
      MGPU_TRY_ASSIGN(auto problem, file->problem(id));
      if (problem)
        byText.emplace(problem->text(), std::move(*problem));
    }
  }
  std::vector<TuningProblem> found;
  for (auto &[text, problem] : byText)
    found.push_back(std::move(problem));
  return found;
}

Result<ProblemSummary> TuningStore::summary(const TuningProblem &problem) {
  ProblemSummary summary;
  for (File *file : {site.get(), user.get()}) {
    if (!file)
      continue;
    MGPU_TRY_ASSIGN(auto counts, file->countTrials(idOf(problem)));
    summary.trials += counts.trials;
    summary.failed += counts.failed;
  }
  MGPU_TRY_ASSIGN(summary.best, best(problem));
  return summary;
}

Result<void> TuningStore::rebuildWinners() {
  MGPU_TRY_ASSIGN(auto ids, user->problems());
  for (RowId id : ids)
    MGPU_TRY(user->rebuildWinner(id));
  return {};
}

uint64_t TuningStore::damaged() const {
  return user->damaged() + (site ? site->damaged() : 0);
}

} // namespace mgpu::db
