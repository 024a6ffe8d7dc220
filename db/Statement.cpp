// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Statement.h"

#include <sqlite3.h>

namespace mgpu::db {

Result<Statement> Statement::prepare(Database &database, std::string_view sql) {
  Database::Connection &connection = *database.connection;
  if (auto at = connection.idle.find(sql); at != connection.idle.end()) {
    sqlite3_stmt *statement = at->second;
    connection.idle.erase(at);
    return Statement(connection, statement);
  }
  sqlite3_stmt *statement = nullptr;
  int code = sqlite3_prepare_v3(connection.handle, sql.data(), int(sql.size()),
                                SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK)
    return fail(connection.errorOf(code));
  return Statement(connection, statement);
}

Statement::Statement(Statement &&other) noexcept
    : connection(other.connection),
      statement(std::exchange(other.statement, nullptr)), bound(other.bound),
      fault(other.fault) {}

Statement &Statement::operator=(Statement &&other) noexcept {
  putBack();
  connection = other.connection;
  statement = std::exchange(other.statement, nullptr);
  bound = other.bound;
  fault = other.fault;
  return *this;
}

Statement::~Statement() { putBack(); }

void Statement::putBack() {
  if (!statement)
    return;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  connection->idle.emplace(sqlite3_sql(statement), statement);
}

void Statement::note(int code) {
  if (code != SQLITE_OK && fault == 0)
    fault = code;
}

Statement &Statement::bind(int64_t value) {
  note(sqlite3_bind_int64(statement, ++bound, value));
  return *this;
}

Statement &Statement::bind(double value) {
  note(sqlite3_bind_double(statement, ++bound, value));
  return *this;
}

Statement &Statement::bind(std::string_view value) {
  // A null pointer would bind NULL.
  note(sqlite3_bind_text64(statement, ++bound, value.data() ? value.data() : "",
                           value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement &Statement::bind(std::span<const std::byte> value) {
  static constexpr std::byte nothing{};
  note(sqlite3_bind_blob64(statement, ++bound,
                           value.empty() ? &nothing : value.data(),
                           value.size(), SQLITE_TRANSIENT));
  return *this;
}

Result<bool> Statement::step() {
  int code = fault ? fault : sqlite3_step(statement);
  if (code == SQLITE_ROW)
    return true;
  if (code == SQLITE_DONE)
    return false;
  return fail(connection->errorOf(code));
}

Result<void> Statement::run() {
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, step());
    if (!row)
      return {};
  }
}

void Statement::reset() {
  sqlite3_reset(statement);
  bound = 0;
  fault = 0;
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement, column);
}

std::string Statement::text(int column) const {
  auto *data =
      reinterpret_cast<const char *>(sqlite3_column_text(statement, column));
  return data ? std::string(data,
                            size_t(sqlite3_column_bytes(statement, column)))
              : std::string();
}

std::vector<std::byte> Statement::blob(int column) const {
  auto *data =
      static_cast<const std::byte *>(sqlite3_column_blob(statement, column));
  size_t size = size_t(sqlite3_column_bytes(statement, column));
  return data ? std::vector<std::byte>(data, data + size)
              : std::vector<std::byte>();
}

} // namespace mgpu::db
