// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_TRIAL_H
#define MGPU_DB_TRIAL_H

// One configuration that was tried once, and what came of it.

#include "support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace mgpu::db {

enum class TrialStatus {
  Ok,
  Wrong,     ///< its output differs from the reference
  Crashed,   ///< it killed the worker
  Timeout,   ///< it did not end
  OverLimit, ///< it needs more registers, memory or time than is allowed
  Invalid,   ///< it cannot be built or launched
};
/// "ok", "wrong", "crashed", "timeout", "over-limit", "invalid"
std::string_view statusName(TrialStatus status);
Result<TrialStatus> parseStatus(std::string_view name);

/// Where and when a trial ran.
struct Provenance {
  int64_t timeMs = 0;      ///< since 1970, UTC; 0: now, when it is recorded
  std::string version;     ///< mgpu's version
  std::string host;        ///< the machine's name
  std::string environment; ///< JSON: clocks, temperatures, load, ...

  bool operator==(const Provenance &) const = default;
};

/// Times are of one execution, in microseconds.
struct Trial {
  std::string configuration; ///< as pairsText()
  TrialStatus status = TrialStatus::Ok;
  // Times are 0 unless the status is Ok.
  double medianUs = 0;
  double meanUs = 0;
  double spreadUs = 0; ///< standard deviation of the samples
  /// 95 % interval of the median; both the median where none was made.
  double lowUs = 0, highUs = 0;
  uint64_t samples = 0;
  double seconds = 0;   ///< spent on it, compilation included
  std::string sentence; ///< what went wrong, if it failed
  Provenance provenance;

  bool operator==(const Trial &) const = default;
};

/// One line of JSON with every field, and the inverse; `name` is what errors
/// call the text. Text that is not UTF-8 is replaced.
std::string trialToJson(const Trial &trial);
Result<Trial> trialFromJson(std::string_view text, const std::string &name);

/// Invalid where a figure is negative, not finite or out of order, or a failure
/// does not say what went wrong.
Result<void> check(const Trial &trial);

} // namespace mgpu::db

#endif // MGPU_DB_TRIAL_H
