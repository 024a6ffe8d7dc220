// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_CONNECTION_H
#define MGPU_DB_CONNECTION_H

// The connection that a Database owns; of use to Database.cpp and Statement.cpp
// alone.

#include "db/Database.h"

#include <map>

struct sqlite3_stmt;

namespace mgpu::db {

struct Database::Connection {
  Connection(std::string name, Access access, Purpose purpose)
      : name(std::move(name)),
        readOnly(access == Access::ReadOnly || access == Access::Untrusted),
        access(access), purpose(purpose) {}
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;
  ~Connection() { close(); }
  void close();
  Error errorOf(int code) const;

  std::string name;
  bool readOnly;
  Access access;
  Purpose purpose;
  sqlite3 *handle = nullptr;
  /// Prepared before and not in use, by their text: preparing one takes longer
  /// than most queries.
  std::multimap<std::string, sqlite3_stmt *, std::less<>> idle;
};

} // namespace mgpu::db

#endif // MGPU_DB_CONNECTION_H
