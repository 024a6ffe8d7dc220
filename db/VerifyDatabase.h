// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_VERIFYDATABASE_H
#define MGPU_DB_VERIFYDATABASE_H

// Reads a whole database and says what of it is sound.

#include "db/Database.h"

#include <cstdint>
#include <vector>

namespace mgpu::db {

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

#endif // MGPU_DB_VERIFYDATABASE_H
