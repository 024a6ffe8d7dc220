// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Csv.h"

#include "support/FileIO.h"
#include "support/Units.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace mgpu {
namespace {

constexpr uint64_t textLimit = uint64_t(8) << 30;
/// A range may repeat columns, but no more of them than this.
constexpr int64_t maxColumns = 1 << 20;

struct Line {
  std::string_view text;
  int64_t number; ///< in the file, from 1
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

void splitFields(std::string_view line, std::vector<std::string_view> &fields) {
  fields.clear();
  size_t begin = 0;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"')
      quoted = !quoted;
    if (line[i] == ',' && !quoted) {
      fields.push_back(trim(line.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  fields.push_back(trim(line.substr(begin)));
}

/// A number of some type, be it too large for it, is no heading.
bool isHeader(const std::vector<std::string_view> &fields, ElementType type) {
  std::byte ignored[8];
  return std::none_of(fields.begin(), fields.end(), [&](std::string_view f) {
    return parseNumber(f, ElementType::F64, ignored) != NumberText::Malformed ||
           storeText(f, type, ignored);
  });
}

std::vector<Line> splitLines(std::string_view text) {
  std::vector<Line> lines;
  int64_t number = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (!trim(line).empty())
      lines.push_back({line, number});
  }
  return lines;
}

Result<std::vector<int64_t>> expand(const IndexRanges &selection, int64_t count,
                                    const char *what, int64_t limit,
                                    const std::string &name) {
  std::vector<int64_t> indices;
  auto append = [&](int64_t first, int64_t last) {
    for (int64_t i = first; i <= last; ++i)
      indices.push_back(i);
  };
  if (selection.isAll())
    append(0, count - 1);
  for (auto [first, last] : selection.ranges) {
    if (last >= count)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' has {}, {} {} does not exist (counted from "
                              "0)",
                              name, counted(uint64_t(count), what), what,
                              last));
    if (static_cast<int64_t>(indices.size()) + (last - first) >= limit)
      return fail(ErrorKind::Invalid,
                  fmt::format("too many {}s of '{}' are selected", what, name));
    append(first, last);
  }
  return indices;
}

} // namespace

Result<IndexRanges> parseIndexRanges(std::string_view text) {
  IndexRanges result;
  std::string_view rest = text;
  auto number = [&rest](int64_t &value) {
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), value);
    bool digit = !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return digit && error == std::errc();
  };
  auto take = [&rest](char c) {
    if (!rest.starts_with(c))
      return false;
    rest.remove_prefix(1);
    return true;
  };
  do {
    int64_t first = 0;
    bool good = number(first);
    int64_t last = first;
    if (good && take('-'))
      good = number(last);
    if (!good || last < first)
      return fail(
          ErrorKind::Usage,
          fmt::format("'{}' is not a selection such as 0-63 or 0,2,5-7", text));
    result.ranges.push_back({first, last});
  } while (take(','));
  if (!rest.empty())
    return fail(
        ErrorKind::Usage,
        fmt::format("'{}' is not a selection such as 0-63 or 0,2,5-7", text));
  return result;
}

Result<Array> parseCsv(std::string_view text, ElementType type,
                       const IndexRanges &columns, const IndexRanges &rows,
                       const std::string &name) {
  std::vector<Line> lines = splitLines(text);
  if (lines.empty())
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has no row of numbers", name));
  std::vector<std::string_view> fields;
  splitFields(lines[0].text, fields);
  size_t fieldCount = fields.size();
  if (isHeader(fields, type))
    lines.erase(lines.begin());
  MGPU_TRY_ASSIGN(std::vector<int64_t> wantedColumns,
                  expand(columns, static_cast<int64_t>(fieldCount), "column",
                         maxColumns, name));
  MGPU_TRY_ASSIGN(std::vector<int64_t> wantedRows,
                  expand(rows, static_cast<int64_t>(lines.size()), "row",
                         std::numeric_limits<int32_t>::max(), name));
  Array array{type,
              {static_cast<int64_t>(wantedRows.size()),
               static_cast<int64_t>(wantedColumns.size())},
              {}};
  MGPU_TRY_ASSIGN(int64_t bytes, arrayBytes(type, array.shape));
  array.bytes.resize(static_cast<size_t>(bytes));
  std::byte *destination = array.bytes.data();
  for (int64_t row : wantedRows) {
    const Line &line = lines[static_cast<size_t>(row)];
    splitFields(line.text, fields);
    if (fields.size() != fieldCount)
      return fail(ErrorKind::Invalid,
                  fmt::format("'{}' line {} has {}, the first line has {}",
                              name, line.number,
                              counted(fields.size(), "field"), fieldCount));
    for (int64_t column : wantedColumns) {
      std::string_view field = fields[static_cast<size_t>(column)];
      if (NumberText outcome = parseNumber(field, type, destination);
          outcome != NumberText::Stored)
        return fail(ErrorKind::Invalid,
                    fmt::format("'{}' line {} column {}: {}", name, line.number,
                                column, whyNotStored(outcome, field, type)));
      destination += sizeBytes(type);
    }
  }
  return array;
}

Result<Array> readCsv(const std::string &path, ElementType type,
                      const IndexRanges &columns, const IndexRanges &rows) {
  MGPU_TRY_ASSIGN(std::string text, readText(path, textLimit));
  return parseCsv(text, type, columns, rows, path);
}

} // namespace mgpu
