// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_UNITS_H
#define MGPU_SUPPORT_UNITS_H

// Quantities as a user writes them.

#include "support/Result.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace mgpu {

/// "1 node", "2 nodes"; `many` is the plural of a noun whose own is not the
/// noun and an s.
inline std::string counted(uint64_t count, std::string_view noun,
                           std::string_view many = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1 || many.empty())
    text += noun;
  else
    text += many;
  if (count != 1 && many.empty())
    text += 's';
  return text;
}

/// "100GB", "80GiB", "1e11": bytes, at least 1; kB (or KB), MB, GB, TB by ten,
/// KiB, MiB, GiB, TiB by two. `option` names it in the usage error.
Result<uint64_t> parseByteSize(std::string_view text, std::string_view option);

/// How long to search: "500ms", "60s", "2m" and "1h" are times, "1000" is a
/// number of evaluations.
struct SearchBudget {
  double seconds = std::numeric_limits<double>::infinity();
  uint64_t evaluations = std::numeric_limits<uint64_t>::max();
};
Result<SearchBudget> parseBudget(std::string_view text);

/// A time given in microseconds, with four digits in the unit of its size:
/// "340.2 ns", "1.118 us", "12.35 ms", "3.000 s".
std::string durationText(double us);

/// Microseconds that may be wrong by the share `error`, rounded by at most an
/// eighth of what they may be wrong; with three decimals where it is 0, that is
/// unknown: "133.214", by 0.9 "130".
std::string withinError(double us, double error);

} // namespace mgpu

#endif // MGPU_SUPPORT_UNITS_H
