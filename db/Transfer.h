// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_TRANSFER_H
#define MGPU_DB_TRANSFER_H

// Results from file to file, by content: as text, or from another database.

#include "db/TuningStore.h"

namespace mgpu::db {

/// Counts of an import. Trials that were there already are not stored again.
struct Transferred {
  uint64_t problems = 0, trials = 0, known = 0;
  uint64_t damaged = 0; ///< rows left behind
};

/// JSON lines: a header {"mgpu_db":1}; for each problem {"problem":TEXT}, then
/// its trials (trialToJson(Trial)), the oldest first. `keys` are the front of
/// the keys of the problems wanted, none for all; `sink` gets each line with
/// its end. Usage for a key that no problem has.
Result<Transferred>
exportText(TuningStore &store, std::span<const std::string> keys,
           const std::function<Result<void>(std::string_view)> &sink);

/// The inverse, in two steps, so that a wrong line is found before anything is
/// stored. `name` is what errors call the text.
struct ProblemTrials {
  TuningProblem problem;
  std::vector<Trial> trials;
};
Result<std::vector<ProblemTrials>> parseText(std::string_view text,
                                             const std::string &name);
Result<Transferred> recordAll(TuningStore &store,
                              std::span<const ProblemTrials> all);

/// Every trial of the database `path`, which need not be trusted.
Result<Transferred> merge(TuningStore &store, const std::string &path);

/// The one problem whose key begins with `prefix`. Usage where it is not one.
Result<TuningProblem> findByKey(TuningStore &store, const std::string &prefix);

} // namespace mgpu::db

#endif // MGPU_DB_TRANSFER_H
