// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_ROWSEALS_H
#define MGPU_DB_ROWSEALS_H

// The seal of each table's rows (db/Seal.h), which covers the row's number:
// a row that a damaged page shows under another number is not that row.

#include "db/StoreFile.h"

namespace mgpu::db {

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
