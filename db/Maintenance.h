// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_MAINTENANCE_H
#define MGPU_DB_MAINTENANCE_H

// Results from file to file, by content: as text, or from another database.

#include "db/Database.h"
#include "db/TuningStore.h"

#include <cstdint>
#include <vector>

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

// Makes a database smaller.

struct PruneOptions {
  /// Configurations whose trials were all recorded before this time, in
  /// milliseconds since 1970, go, except winners and those under quarantine.
  /// Trials of one configuration stay together, so that no winner changes.
  std::optional<int64_t> beforeMs;
  std::vector<TuningProblem> problems; ///< go with all that is known of them
  std::optional<uint64_t> blobBytes;   ///< compiled kernels beyond it go
};

struct Pruned {
  uint64_t problems = 0, trials = 0, blobs = 0;
  uint64_t bytesBefore = 0, bytesAfter = 0; ///< the file's size
};

/// All or nothing, then the file shrinks to what is left.
Result<Pruned> prune(TuningStore &store, const PruneOptions &options);

// Reads a whole database and says what of it is sound.

struct VerifyReport {
  uint64_t problems = 0, configurations = 0, trials = 0, blobs = 0; ///< sound
  uint64_t damaged = 0; ///< rows with a broken seal, blobs with a wrong hash
  /// Winners that are not what the trials say, and failures not noted.
  uint64_t wrong = 0;
  /// The faults that SQLite finds in the tree of pages, at most 100.
  std::vector<std::string> faults;

  bool isSound() const { return damaged == 0 && wrong == 0 && faults.empty(); }
};

/// Errors: Usage where the file is not there, Invalid where it is not a
/// database of mgpu. Damage is not an error but part of the report.
Result<VerifyReport> verify(const std::string &path);

} // namespace mgpu::db

#endif // MGPU_DB_MAINTENANCE_H
