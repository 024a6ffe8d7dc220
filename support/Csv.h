// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_CSV_H
#define MGPU_SUPPORT_CSV_H

// Tables of numbers in comma-separated text.

#include "support/Array.h"

namespace mgpu {

/// Inclusive 0-based ranges in the order they were written: "0-3,7" is
/// {0,3} {7,7}. Empty means everything.
struct IndexRanges {
  std::vector<std::pair<int64_t, int64_t>> ranges;

  bool isAll() const { return ranges.empty(); }
  bool operator==(const IndexRanges &) const = default;
};
Result<IndexRanges> parseIndexRanges(std::string_view text);

/// Converts the selected columns of the selected rows of `text` to a
/// rows x columns array of `type`. A first line in which no field is a number
/// is a header and not counted; blank lines are skipped; every line must have
/// as many fields as the first. Fields may be quoted and padded with spaces.
/// Unselected fields need not be numbers. `name` is what errors call the table.
Result<Array> parseCsv(std::string_view text, ElementType type,
                       const IndexRanges &columns, const IndexRanges &rows,
                       const std::string &name);

/// Reads `path`, inflating it where it begins with gzip's magic number.
Result<Array> readCsv(const std::string &path, ElementType type,
                      const IndexRanges &columns, const IndexRanges &rows);

} // namespace mgpu

#endif // MGPU_SUPPORT_CSV_H
