// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_SCHEMA_H
#define MGPU_DB_SCHEMA_H

// The tables, and the way to them from every version that was released.

#include "db/Database.h"

#include <cstdint>
#include <span>

namespace mgpu::db {

/// SQL that makes a file of version K out of one of version K - 1, K being its
/// position from 1. A released one is never edited: what changes is appended.
using Migrations = std::span<const char *const>;
Migrations migrations();

/// "mgpu" in PRAGMA application_id.
inline constexpr int64_t applicationId = 0x6d677075;

/// That tables and indexes are exactly ours and there is nothing beside them:
/// of a file made by a stranger, whose views, triggers and generated columns
/// would run in our queries. Invalid where they are not.
Result<void> checkSchema(Database &database, Migrations steps = migrations());

/// Brings the file to the last version, one transaction each; several
/// processes may do so at once. Errors: Invalid for an SQLite file that is not
/// ours, Unsupported for one of a later version. If an earlier or empty one
/// cannot be written, `database` becomes a copy in memory, brought up to date.
Result<void> migrate(Database &database, Migrations steps = migrations());

/// Database::open() and migrate(). A file that was to be created and could not
/// be filled, as on a full disk, is gone again. One that is empty is as one
/// that was just created, also where it is only read.
Result<Database> openMigrated(const std::string &path,
                              const DatabaseOptions &options);

} // namespace mgpu::db

#endif // MGPU_DB_SCHEMA_H
