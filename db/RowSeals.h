// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_ROWSEALS_H
#define MGPU_DB_ROWSEALS_H

// The seal of each table's rows (Seal), which covers the row's number:
// a row that a damaged page shows under another number is not that row.

#include "db/StoreFile.h"
#include "support/Sha256.h"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace mgpu::db {

// A row's checksum: what a disk or a stranger changed is not taken for data.

/// The first 60 bits of the SHA-256 of the columns added, in order. It finds
/// damage; it does not prove who wrote the row.
class Seal {
public:
  explicit Seal(std::string_view table) { hash.addField(table); }
  Seal &add(std::string_view text) {
    hash.addField(text);
    return *this;
  }
  Seal &add(int64_t number) {
    hash.addField({reinterpret_cast<const char *>(&number), sizeof number});
    return *this;
  }
  Seal &add(double number) { return add(std::bit_cast<int64_t>(number)); }
  int64_t value() {
    return int64_t(std::stoull(hash.hex().substr(0, 15), nullptr, 16));
  }

private:
  Sha256 hash;
};

/// Rows of equal content have equal numbers, in every file.
RowId idOf(const TuningProblem &problem);
RowId idOf(const Provenance &origin); ///< without the time

int64_t sealOfProblem(RowId id, const TuningProblem &problem);
int64_t sealOfConfiguration(RowId id, RowId problem, RowId failure,
                            const std::string &text);
/// Without the time, which is a trial's.
int64_t sealOfOrigin(RowId id, const Provenance &origin);
/// The configuration's text and problem are part of it, so that a trial is
/// checked without their rows.
int64_t sealOfTrial(RowId problem, RowId origin, const TrialRow &row);
int64_t sealOfWinner(RowId problem, const Winner &winner);

} // namespace mgpu::db

#endif // MGPU_DB_ROWSEALS_H
