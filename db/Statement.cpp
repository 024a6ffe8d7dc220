// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Statement.h"

#include <sqlite3.h>

namespace mgpu::db {

void Statement::Finalize::operator()(sqlite3_stmt *statement) const {
  sqlite3_finalize(statement);
}

Result<Statement> Statement::prepare(Database &database, std::string_view sql) {
  sqlite3_stmt *statement = nullptr;
  int code = sqlite3_prepare_v2(database.get(), sql.data(), int(sql.size()),
                                &statement, nullptr);
  if (code != SQLITE_OK)
    return fail(database.lastError(code));
  return Statement(database, statement);
}

void Statement::note(int code) {
  if (code != SQLITE_OK && fault == 0)
    fault = code;
}

Statement &Statement::bind(int64_t value) {
  note(sqlite3_bind_int64(statement.get(), ++bound, value));
  return *this;
}

Statement &Statement::bind(double value) {
  note(sqlite3_bind_double(statement.get(), ++bound, value));
  return *this;
}

Statement &Statement::bind(std::string_view value) {
  // A null pointer would bind NULL.
  note(sqlite3_bind_text64(statement.get(), ++bound,
                           value.data() ? value.data() : "", value.size(),
                           SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement &Statement::bind(std::span<const std::byte> value) {
  static constexpr std::byte nothing{};
  note(sqlite3_bind_blob64(statement.get(), ++bound,
                           value.empty() ? &nothing : value.data(),
                           value.size(), SQLITE_TRANSIENT));
  return *this;
}

Result<bool> Statement::step() {
  int code = fault ? fault : sqlite3_step(statement.get());
  if (code == SQLITE_ROW)
    return true;
  if (code == SQLITE_DONE)
    return false;
  return fail(database->lastError(code));
}

Result<void> Statement::run() {
  for (;;) {
    MGPU_TRY_ASSIGN(bool row, step());
    if (!row)
      return {};
  }
}

void Statement::reset() {
  sqlite3_reset(statement.get());
  bound = 0;
  fault = 0;
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement.get(), column);
}

std::string Statement::text(int column) const {
  auto *data = reinterpret_cast<const char *>(
      sqlite3_column_text(statement.get(), column));
  return data ? std::string(
                    data, size_t(sqlite3_column_bytes(statement.get(), column)))
              : std::string();
}

std::vector<std::byte> Statement::blob(int column) const {
  auto *data = static_cast<const std::byte *>(
      sqlite3_column_blob(statement.get(), column));
  size_t size = size_t(sqlite3_column_bytes(statement.get(), column));
  return data ? std::vector<std::byte>(data, data + size)
              : std::vector<std::byte>();
}

} // namespace mgpu::db
