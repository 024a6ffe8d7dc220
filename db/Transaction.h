// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_TRANSACTION_H
#define MGPU_DB_TRANSACTION_H

// All or nothing: what was not committed is rolled back.

#include "db/Database.h"

#include <utility>

namespace mgpu::db {

/// The database must outlive it, and has at most one at a time.
class Transaction {
public:
  /// Waits for the other writers. Taking the right to write at once, and not
  /// at the first change, is what makes waiting possible: a reader that wants
  /// to become the writer can only be refused.
  static Result<Transaction> write(Database &database);
  /// One state of the file for several queries.
  static Result<Transaction> read(Database &database);

  Transaction(Transaction &&other) noexcept
      : database(std::exchange(other.database, nullptr)) {}
  Transaction &operator=(Transaction &&) = delete;
  ~Transaction();

  Result<void> commit();

private:
  explicit Transaction(Database &database) : database(&database) {}

  Database *database; ///< null once it has ended
};

} // namespace mgpu::db

#endif // MGPU_DB_TRANSACTION_H
