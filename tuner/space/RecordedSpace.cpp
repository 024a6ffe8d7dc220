// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/space/RecordedSpace.h"

#include "support/FileIO.h"
#include "support/Number.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>

namespace mgpu::tuner {

namespace {

constexpr std::array<std::string_view, 6> resultColumns = {
    "time_ms", "sd_ms", "compile_ms", "benchmark_ms", "framework_ms", "status"};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t start = 0;;) {
    size_t comma = line.find(',', start);
    fields.push_back(line.substr(start, comma - start));
    if (comma == std::string_view::npos)
      return fields;
    start = comma + 1;
  }
}

/// The distinct fields of one column as a parameter, and each row's position.
Parameter makeParameter(std::string_view name,
                        std::span<const std::vector<std::string_view>> rows,
                        size_t column, std::span<uint16_t> points,
                        size_t width) {
  Parameter parameter{std::string(name), {}, {}};
  bool ordered = std::all_of(rows.begin(), rows.end(), [&](const auto &row) {
    return numberFrom<double>(row[column]).has_value();
  });
  if (ordered) {
    for (const auto &row : rows)
      parameter.values.push_back(*numberFrom<double>(row[column]));
    std::sort(parameter.values.begin(), parameter.values.end());
    parameter.values.erase(
        std::unique(parameter.values.begin(), parameter.values.end()),
        parameter.values.end());
    for (size_t r = 0; r < rows.size(); ++r)
      points[r * width + column] = uint16_t(
          std::lower_bound(parameter.values.begin(), parameter.values.end(),
                           *numberFrom<double>(rows[r][column])) -
          parameter.values.begin());
    return parameter;
  }
  for (const auto &row : rows)
    parameter.labels.emplace_back(row[column]);
  std::sort(parameter.labels.begin(), parameter.labels.end());
  parameter.labels.erase(
      std::unique(parameter.labels.begin(), parameter.labels.end()),
      parameter.labels.end());
  for (size_t v = 0; v < parameter.labels.size(); ++v)
    parameter.values.push_back(double(v));
  for (size_t r = 0; r < rows.size(); ++r)
    points[r * width + column] =
        uint16_t(std::lower_bound(parameter.labels.begin(),
                                  parameter.labels.end(), rows[r][column]) -
                 parameter.labels.begin());
  return parameter;
}

} // namespace

Result<RecordedSpace> parseRecordedSpace(std::string_view text,
                                         std::string name) {
  std::vector<std::vector<std::string_view>> rows;
  std::vector<std::string_view> header;
  for (size_t start = 0, line = 1; start < text.size(); ++line) {
    size_t end = std::min(text.find('\n', start), text.size());
    std::string_view content = text.substr(start, end - start);
    start = end + 1;
    if (!content.empty() && content.back() == '\r')
      content.remove_suffix(1);
    if (content.empty())
      continue;
    auto fields = split(content);
    if (header.empty())
      header = std::move(fields);
    else if (fields.size() != header.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("{}, line {}: {} fields where the header has {}",
                              name, line, fields.size(), header.size()));
    else
      rows.push_back(std::move(fields));
  }
  if (header.size() <= resultColumns.size() ||
      !std::equal(resultColumns.begin(), resultColumns.end(),
                  header.end() - ptrdiff_t(resultColumns.size())))
    return fail(ErrorKind::Invalid,
                fmt::format("{}: the header must name parameters, then {}",
                            name, fmt::join(resultColumns, ",")));
  if (rows.empty())
    return fail(ErrorKind::Invalid, fmt::format("{}: no points", name));

  const size_t width = header.size() - resultColumns.size();
  std::vector<Parameter> parameters;
  std::vector<uint16_t> points(rows.size() * width);
  for (size_t p = 0; p < width; ++p)
    parameters.push_back(makeParameter(header[p], rows, p, points, width));
  auto space = ConfigSpace::fromPoints(std::move(parameters), points);
  if (!space)
    return failIn(fmt::format("{}: ", name), space.error());
  RecordedSpace recorded{std::move(name), std::move(*space), {}, {}};
  recorded.timeMs.resize(rows.size());
  recorded.costMs.resize(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    ConfigId id = *recorded.space.find(
        std::span<const uint16_t>(points).subspan(r * width, width));
    auto bad = [&](size_t column) {
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: point {} ({}): '{}' is not a valid {}",
                              recorded.name, r, recorded.space.describe(id),
                              rows[r][column], header[column]));
    };
    const bool ok = rows[r].back() == "ok";
    if (ok) {
      recorded.timeMs[id] = numberFrom<double>(rows[r][width]);
      if (!recorded.timeMs[id] || !(*recorded.timeMs[id] > 0))
        return bad(width);
    }
    for (size_t column = width + 2; column < width + 5; ++column) {
      auto cost = numberFrom<double>(rows[r][column]);
      if (!cost && (ok || !rows[r][column].empty()))
        return bad(column);
      if (cost && !(*cost >= 0))
        return bad(column);
      recorded.costMs[id] += cost.value_or(0);
    }
  }
  return recorded;
}

Result<RecordedSpace> readRecordedSpace(const std::string &path) {
  MGPU_TRY_ASSIGN(std::string text, readText(path, uint64_t(1) << 30));
  std::string name = std::filesystem::path(path).filename().string();
  return parseRecordedSpace(text, name.substr(0, name.find(".csv")));
}

} // namespace mgpu::tuner
