// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Transaction.h"

namespace mgpu::db {

Result<Transaction> Transaction::write(Database &database) {
  MGPU_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Result<Transaction> Transaction::read(Database &database) {
  MGPU_TRY(database.execute("BEGIN"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // Fails where SQLite has rolled back by itself, after a full disk.
  if (database)
    (void)database->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  MGPU_TRY(database->execute("COMMIT"));
  database = nullptr;
  return {};
}

} // namespace mgpu::db
