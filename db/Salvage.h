// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_SALVAGE_H
#define MGPU_DB_SALVAGE_H

// What can still be read of a damaged file.

#include "db/Trial.h"
#include "db/TuningProblem.h"

#include <utility>
#include <vector>

namespace mgpu::db {

struct Salvaged {
  /// In the order they were recorded.
  std::vector<std::pair<TuningProblem, std::vector<Trial>>> trials;
  uint64_t lost = 0; ///< rows of trials that were seen, but not sound
};

/// Every sound trial in the pages of the file and of the log beside it; neither
/// is opened as a database or changed. Rows that were pruned may come back.
Result<Salvaged> salvageFile(const std::string &path);

} // namespace mgpu::db

#endif // MGPU_DB_SALVAGE_H
