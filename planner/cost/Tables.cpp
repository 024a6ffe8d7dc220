// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/Tables.h"

#include "support/FileIO.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

namespace mgpu::planner {

static constexpr std::pair<std::string_view, CollectiveOp> opNames[] = {
    {"all_gather", CollectiveOp::AllGather},
    {"all_reduce", CollectiveOp::AllReduce},
    {"all_to_all", CollectiveOp::AllToAll},
    {"reduce_scatter", CollectiveOp::ReduceScatter},
    {"permute_ring", CollectiveOp::PermuteRing},
    {"permute_pairs", CollectiveOp::PermutePairs},
};

std::string_view toString(CollectiveOp op) {
  for (auto [name, value] : opNames)
    if (value == op)
      return name;
  return "unknown";
}

namespace {

/// The fields of one line; remembers the first fault.
struct Line {
  std::vector<std::string_view> fields;
  std::string fault;

  double positive(size_t index) {
    double value = 0;
    std::string_view text = fields[index];
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), value);
    bool good = error == std::errc() && end == text.data() + text.size() &&
                value > 0 && value < 1e300;
    if (!good && fault.empty())
      fault = fmt::format("\"{}\" is not a valid number above 0",
                          text.substr(0, 40));
    return good ? value : 1;
  }
  uint32_t architecture(size_t index) {
    std::string_view text = fields[index];
    uint32_t value = 0;
    if (text.starts_with("sm_"))
      std::from_chars(text.data() + 3, text.data() + text.size(), value);
    if (value == 0 && fault.empty())
      fault = fmt::format("\"{}\" is not a valid architecture such as sm_90",
                          text.substr(0, 40));
    return value;
  }
};

Result<void> forEachLine(std::string_view text, const std::string &source,
                         std::string_view header,
                         const std::function<void(Line &)> &visit) {
  size_t width = 1 + size_t(std::count(header.begin(), header.end(), ','));
  size_t number = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r'))
      content.remove_suffix(1);
    ++number;
    if (number == 1) {
      if (content != header)
        return fail(
            ErrorKind::Invalid,
            fmt::format("{}: the first line must be \"{}\"", source, header));
      continue;
    }
    if (content.empty())
      continue;
    Line line;
    for (size_t at = 0; at <= content.size();) {
      size_t comma = std::min(content.find(',', at), content.size());
      line.fields.push_back(content.substr(at, comma - at));
      at = comma + 1;
    }
    if (line.fields.size() != width)
      line.fault =
          fmt::format("{} fields instead of {}", line.fields.size(), width);
    else
      visit(line);
    if (!line.fault.empty())
      return fail(ErrorKind::Invalid,
                  fmt::format("{}, line {}: {}", source, number, line.fault));
  }
  if (number < 2)
    return fail(ErrorKind::Invalid, fmt::format("{}: no rows", source));
  return {};
}

constexpr uint64_t mostText = uint64_t(64) << 20;

} // namespace

Result<std::vector<CollectiveRow>> parseCollectives(std::string_view text,
                                                    const std::string &source) {
  std::vector<CollectiveRow> rows;
  MGPU_TRY(forEachLine(
      text, source, "arch,op,groups,gpus_per_group,bytes,time_us",
      [&](Line &line) {
        CollectiveRow row;
        row.architecture = line.architecture(0);
        bool known = false;
        for (auto [name, op] : opNames)
          if (line.fields[1] == name)
            row.op = op, known = true;
        if (!known)
          line.fault = fmt::format("\"{}\" is not an operation known here",
                                   line.fields[1].substr(0, 40));
        double ranks = line.positive(3);
        if (ranks > 1e6 && line.fault.empty())
          line.fault = "a group has more than a million members";
        row.ranks = uint32_t(std::min(ranks, 1e6));
        row.bytes = line.positive(4);
        row.us = line.positive(5);
        rows.push_back(row);
      }));
  return rows;
}

Result<std::vector<MatmulRow>> parseMatmuls(std::string_view text,
                                            const std::string &source) {
  std::vector<MatmulRow> rows;
  MGPU_TRY(forEachLine(
      text, source, "arch,b,m,n,k,types,flops_per_s", [&](Line &line) {
        MatmulRow row;
        row.architecture = line.architecture(0);
        row.batch = line.positive(1);
        row.m = line.positive(2);
        row.n = line.positive(3);
        row.k = line.positive(4);
        row.isBf16 = line.fields[5] == "bf16xbf16->bf16";
        if (!row.isBf16 && line.fields[5] != "f32xf32->f32")
          line.fault = fmt::format("\"{}\" are not types known here",
                                   line.fields[5].substr(0, 40));
        row.us = 2 * row.batch * row.m * row.n * row.k / line.positive(6) * 1e6;
        rows.push_back(row);
      }));
  return rows;
}

Result<std::vector<CollectiveRow>> readCollectives(const std::string &path) {
  MGPU_TRY_ASSIGN(std::string text, readText(path, mostText));
  return parseCollectives(text, path);
}

Result<std::vector<MatmulRow>> readMatmuls(const std::string &path) {
  MGPU_TRY_ASSIGN(std::string text, readText(path, mostText));
  return parseMatmuls(text, path);
}

std::vector<double> solvePositive(std::vector<double> matrix,
                                  std::vector<double> right) {
  size_t n = right.size();
  for (size_t i = 0; i < n; ++i) {
    double *row = &matrix[i * n];
    for (size_t j = 0; j <= i; ++j) {
      const double *other = &matrix[j * n];
      double sum = row[j];
      for (size_t k = 0; k < j; ++k)
        sum -= row[k] * other[k];
      if (j < i)
        row[j] = sum / other[j];
      else if (!(sum > 0))
        return {};
      else
        row[i] = std::sqrt(sum);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k)
      right[i] -= matrix[i * n + k] * right[k];
    right[i] /= matrix[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k)
      right[i] -= matrix[k * n + i] * right[k];
    right[i] /= matrix[i * n + i];
  }
  return right;
}

std::vector<double> ridgeFit(std::span<const double> rows, size_t width,
                             std::span<const double> values, double ridge) {
  std::vector<double> matrix(width * width, 0), right(width, 0);
  for (size_t i = 0; i < width; ++i)
    matrix[i * width + i] = ridge;
  for (size_t r = 0; r < values.size(); ++r) {
    const double *row = &rows[r * width];
    for (size_t i = 0; i < width; ++i) {
      right[i] += row[i] * values[r];
      for (size_t j = 0; j <= i; ++j)
        matrix[i * width + j] += row[i] * row[j];
    }
  }
  return solvePositive(std::move(matrix), std::move(right));
}

} // namespace mgpu::planner
