// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_PRUNE_H
#define MGPU_DB_PRUNE_H

// Makes a database smaller.

#include "db/TuningStore.h"

namespace mgpu::db {

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

} // namespace mgpu::db

#endif // MGPU_DB_PRUNE_H
