// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_STATEMENT_H
#define MGPU_DB_STATEMENT_H

// One prepared SQL statement.

#include "db/Database.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3_stmt;

namespace mgpu::db {

// The connection that a Database owns; of use to Database.cpp and Statement.cpp
// alone.

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

/// The database must outlive it.
class Statement {
public:
  static Result<Statement> prepare(Database &database, std::string_view sql);
  Statement(Statement &&other) noexcept;
  Statement &operator=(Statement &&other) noexcept;
  ~Statement();

  /// Each gives the next parameter its value; a fault is reported by step().
  Statement &bind(int64_t value);
  Statement &bind(double value);
  Statement &bind(std::string_view value);
  Statement &bind(std::span<const std::byte> value);

  /// True where there is a row to read, false at the end.
  Result<bool> step();
  /// Steps to the end.
  Result<void> run();
  /// Ready to be bound and run again.
  void reset();

  /// Columns of the row, from 0. SQLite converts values of another type.
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::vector<std::byte> blob(int column) const;

private:
  Statement(Database::Connection &connection, sqlite3_stmt *statement)
      : connection(&connection), statement(statement) {}
  void note(int code);
  /// To the idle ones of the connection.
  void putBack();

  Database::Connection *connection;
  sqlite3_stmt *statement;
  int bound = 0;
  int fault = 0; ///< result of the first bind that failed
};

} // namespace mgpu::db

#endif // MGPU_DB_STATEMENT_H
