// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Units.h"

#include <charconv>
#include <cmath>
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
  constexpr std::pair<std::string_view, double> units[] = {
      {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
  SearchBudget budget;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, budget.evaluations);
  if (error == std::errc() && end == last)
    return budget;
  double value = 0;
  auto [after, wrong] = std::from_chars(text.data(), last, value);
  const std::string_view unit = text.substr(size_t(after - text.data()));
  if (wrong == std::errc() && value >= 0 && std::isfinite(value))
    for (auto [name, seconds] : units)
      if (unit == name)
        return SearchBudget{value * seconds};
  return fail(ErrorKind::Usage,
              fmt::format("--budget {}: give a time as 500ms, 60s, 2m or 1h, "
                          "or a number of evaluations",
                          text));
}

std::string durationText(double us) {
  constexpr std::pair<std::string_view, double> units[] = {
      {"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}};
  const auto *unit = units;
  // A time that would be written as "1000.0" belongs to the next unit.
  while (us / unit->second >= 999.95 && unit != std::end(units) - 1)
    ++unit;
  const double value = us / unit->second;
  const int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : 1;
  return fmt::format("{:.{}f} {}", value, decimals, unit->first);
}

std::string withinError(double us, double error) {
  if (!(error > 0) || !(us > 0) || !std::isfinite(us * error))
    return fmt::format("{:.3f}", us);
  const double unit =
      std::max(std::pow(10, std::floor(std::log10(us * error / 4))), 1e-3);
  return fmt::format("{:.{}f}", std::round(us / unit) * unit,
                     std::max(0, int(std::lround(-std::log10(unit)))));
}

} // namespace mgpu
