// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_PAGESCAN_H
#define MGPU_DB_PAGESCAN_H

// Rows out of the pages of a damaged SQLite file, whatever has become of the
// tree above them. The format: sqlite.org/fileformat2.html, sections 1.6, 2.1,
// 4.1 and 4.2.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mgpu::db {

/// A column: NULL, a number, or bytes.
using Value = std::variant<std::monostate, int64_t, double, std::string>;

struct Record {
  int64_t rowId = 0;
  std::vector<Value> columns;
};

/// Visits what looks like a row of any table: in every page of `file`, and in
/// every page kept in its write-ahead log `wal`, which may be empty. The same
/// row may come several times, in older states as well, and some are nonsense.
void scanPages(std::span<const std::byte> file, std::span<const std::byte> wal,
               const std::function<void(const Record &)> &visit);

} // namespace mgpu::db

#endif // MGPU_DB_PAGESCAN_H
