// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_UNITS_H
#define MGPU_SUPPORT_UNITS_H

// Quantities as a user writes them.

#include "support/Result.h"

#include <cstdint>
#include <limits>
#include <string_view>

namespace mgpu {

/// "100GB", "80GiB", "1e11": bytes, at least 1; kB (or KB), MB, GB, TB by ten,
/// KiB, MiB, GiB, TiB by two. `option` names it in the usage error.
Result<uint64_t> parseByteSize(std::string_view text, std::string_view option);

/// How long to search: "60s" in seconds, "1000" in evaluations.
struct SearchBudget {
  double seconds = std::numeric_limits<double>::infinity();
  uint64_t evaluations = std::numeric_limits<uint64_t>::max();
};
Result<SearchBudget> parseBudget(std::string_view text);

} // namespace mgpu

#endif // MGPU_SUPPORT_UNITS_H
