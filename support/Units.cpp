// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Units.h"

#include <charconv>
#include <fmt/format.h>
#include <utility>

namespace mgpu {

Result<uint64_t> parseByteSize(std::string_view text, std::string_view option) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
      {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
      {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit = text.substr(size_t(end - text.data()));
  if (error == std::errc())
    for (auto [name, scale] : units)
      if (unit == name && value * scale >= 1 && value * scale < 9e18)
        return uint64_t(value * scale);
  return fail(
      ErrorKind::Usage,
      fmt::format(
          "{} {}: give a size such as 100GB or 80GiB, in B, kB, MB, GB, "
          "TB, KiB, MiB, GiB or TiB",
          option, text));
}

Result<SearchBudget> parseBudget(std::string_view text) {
  SearchBudget budget;
  const char *last = text.data() + text.size();
  if (text.ends_with('s')) {
    auto [end, error] = std::from_chars(text.data(), last - 1, budget.seconds);
    if (error == std::errc() && end == last - 1 && budget.seconds >= 0)
      return budget;
  } else {
    auto [end, error] = std::from_chars(text.data(), last, budget.evaluations);
    if (error == std::errc() && end == last)
      return budget;
  }
  return fail(ErrorKind::Usage,
              fmt::format("--budget {}: give a time as 60s, or a number of "
                          "evaluations",
                          text));
}

} // namespace mgpu
