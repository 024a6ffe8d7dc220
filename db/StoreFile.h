// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_STOREFILE_H
#define MGPU_DB_STOREFILE_H

// The tables of one file, as problems, trials and winners. TuningStore lays a
// user's file over a site's; everybody else uses that.

#include "db/TuningStore.h"

#include <functional>
#include <map>

namespace mgpu::db {

/// A number of a row, within one file.
using RowId = int64_t;

struct ProblemRow {
  RowId id = 0;
  std::string device, setting, shape;
};

/// A trial and the configuration row it belongs to.
struct TrialRow {
  RowId id = 0, configuration = 0;
  Trial trial;
};

struct Winner {
  TrialRow row;
  /// Trials that worked; their configurations are not under quarantine.
  uint64_t measured = 0;
  double sumUs = 0, maxUs = 0; ///< of their medians
};

/// The rule of TuningStore::record over rows in the order of their ids;
/// `isOut` says which configurations are under quarantine.
std::optional<Winner>
chooseWinner(std::span<const TrialRow> rows,
             const std::function<bool(RowId configuration)> &isOut);

class StoreFile {
public:
  static Result<StoreFile> open(const std::string &path,
                                const DatabaseOptions &options);

  // Reading. A row that fails its seal is as if it were not there, and counted.
  Result<std::optional<RowId>> findProblem(const TuningProblem &problem);
  Result<std::optional<TuningProblem>> problem(RowId id);
  /// The problems of a family (Problem::familyKey), unchecked: problem()
  /// checks.
  Result<std::vector<ProblemRow>> family(const std::string &familyKey);
  Result<std::vector<RowId>> problems();
  /// In the order they were recorded; only those of one configuration if it is
  /// not 0.
  Result<std::vector<TrialRow>> trials(RowId problem, RowId configuration = 0);
  Result<std::optional<Winner>> winner(RowId problem);
  struct Counts {
    uint64_t trials = 0, failed = 0;
  };
  Result<Counts> countTrials(RowId problem); ///< unchecked
  Result<std::optional<RowId>> findConfiguration(RowId problem,
                                                 const std::string &text);
  /// The trial that put the configuration under quarantine.
  Result<std::optional<Trial>> failure(RowId problem,
                                       const std::string &configuration);
  uint64_t damaged() const { return numDamaged; }

  // Writing, within a transaction of the caller's.
  Result<RowId> addProblem(const TuningProblem &problem);
  Result<void> addTrials(RowId problem, std::span<const Trial> trials);
  /// From the trials; drops the row where none worked.
  Result<void> rebuildWinner(RowId problem);

  Database database;

private:
  explicit StoreFile(Database database) : database(std::move(database)) {}

  struct Configuration {
    RowId id = 0, failure = 0;
  };
  Result<std::optional<Configuration>> configuration(RowId problem,
                                                     const std::string &text);
  Result<Configuration> addConfiguration(RowId problem,
                                         const std::string &text);
  Result<void> addTrial(RowId problem, const Trial &trial, bool keepWinner);
  Result<void> quarantine(RowId problem, Configuration configuration,
                          const TrialRow &row, bool keepWinner);
  Result<RowId> addOrigin(const Provenance &provenance);
  Result<std::optional<Provenance>> origin(RowId id);
  Result<void> writeWinner(RowId problem, const Winner &winner);
  Result<void> updateWinner(RowId problem, const TrialRow &row);

  std::map<RowId, std::optional<Provenance>> origins; ///< those read so far
  uint64_t numDamaged = 0;
};

} // namespace mgpu::db

#endif // MGPU_DB_STOREFILE_H
