// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/Patterson.h"

#include <charconv>
#include <fmt/format.h>

namespace mgpu::planner::exact {

namespace {

/// Whole numbers one after the other, with the line each stands on.
class Numbers {
public:
  Numbers(std::string_view text, std::string_view source)
      : rest(text), source(source) {}

  tl::unexpected<Error> bad(std::string_view what) const {
    return fail(ErrorKind::Invalid,
                fmt::format("{}: line {}: {}", source, line, what));
  }
  /// The next number, at most `limit`; `what` names it in errors.
  Result<int32_t> next(std::string_view what, int32_t limit) {
    skipSpace();
    if (rest.empty())
      return bad(fmt::format("the file ends where {} is expected", what));
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), value);
    size_t length = size_t(end - rest.data());
    if (error != std::errc() ||
        (length < rest.size() && !isSpace(rest[length])))
      return bad(fmt::format("{} is not a whole number", what));
    if (value < 0 || value > limit)
      return bad(
          fmt::format("{} is {}; it must be from 0 to {}", what, value, limit));
    rest.remove_prefix(length);
    return int32_t(value);
  }
  bool atEnd() {
    skipSpace();
    return rest.empty();
  }

private:
  static bool isSpace(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }
  void skipSpace() {
    while (!rest.empty() && isSpace(rest.front())) {
      line += rest.front() == '\n';
      rest.remove_prefix(1);
    }
  }

  std::string_view rest, source;
  uint32_t line = 1;
};

} // namespace

Result<Problem> parsePatterson(std::string_view text, std::string_view source) {
  Numbers numbers(text, source);
  MGPU_TRY_ASSIGN(int32_t count, numbers.next("the number of activities",
                                              Problem::maxHorizon));
  MGPU_TRY_ASSIGN(int32_t resources,
                  numbers.next("the number of resources", 1 << 10));
  Problem::Description description;
  for (int32_t r = 0; r < resources; ++r) {
    MGPU_TRY_ASSIGN(int32_t capacity, numbers.next("a capacity", INT32_MAX));
    description.capacities.push_back(capacity);
  }
  for (int32_t a = 0; a < count; ++a) {
    MGPU_TRY_ASSIGN(Time duration,
                    numbers.next("a duration", Problem::maxHorizon));
    description.durations.push_back(duration);
    for (int32_t r = 0; r < resources; ++r) {
      MGPU_TRY_ASSIGN(int32_t demand, numbers.next("a demand", INT32_MAX));
      description.demands.push_back(demand);
    }
    MGPU_TRY_ASSIGN(int32_t successors,
                    numbers.next("the number of successors", count));
    for (int32_t k = 0; k < successors; ++k) {
      MGPU_TRY_ASSIGN(int32_t next, numbers.next("a successor", count));
      if (next == 0)
        return numbers.bad("a successor is 0, but activities count from 1");
      description.precedences.emplace_back(uint32_t(a), uint32_t(next - 1));
    }
  }
  if (!numbers.atEnd())
    return numbers.bad("more text follows the last activity");
  Result<Problem> problem = Problem::create(std::move(description));
  if (!problem)
    return failIn(fmt::format("{}: ", source), problem.error());
  return problem;
}

Result<SolutionList> parseSolutionList(std::string_view text,
                                       std::string_view source) {
  SolutionList list;
  uint32_t line = 0;
  while (!text.empty()) {
    ++line;
    size_t length = std::min(text.find('\n'), text.size());
    std::string_view row = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    uint32_t values[3];
    bool numeric = true;
    for (uint32_t &value : values) {
      size_t begin = row.find_first_not_of(" \t\r");
      row.remove_prefix(std::min(begin, row.size()));
      auto [end, error] =
          std::from_chars(row.data(), row.data() + row.size(), value);
      size_t used = size_t(end - row.data());
      numeric = numeric && error == std::errc() &&
                (used == row.size() || row[used] == ' ' || row[used] == '\t' ||
                 row[used] == '\r');
      if (!numeric)
        break;
      row.remove_prefix(used);
    }
    if (!numeric)
      continue;
    if (values[2] > uint32_t(Problem::maxHorizon) ||
        !list.try_emplace({values[0], values[1]}, Time(values[2])).second)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: line {}: instance {} {} is given twice or "
                              "its makespan is not a finite time",
                              source, line, values[0], values[1]));
  }
  if (list.empty())
    return fail(ErrorKind::Invalid,
                fmt::format("{}: no line begins with parameter, instance and "
                            "makespan; give a PSPLIB solution list",
                            source));
  return list;
}

} // namespace mgpu::planner::exact
