// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_TRIAL_H
#define MGPU_DB_TRIAL_H

// One configuration that was tried once, and what came of it.

#include "support/Result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace mgpu::db {

// The problem that a result solves. It is known by its content, never by a
// number.

/// "block_x=32,tile=4": by ascending name; in names and values a backslash
/// stands before '\', ',' and '=', and a byte that is not printable ASCII is
/// \xNN.
using Pairs = std::map<std::string, std::string>;
std::string pairsText(const Pairs &pairs);
/// The inverse. Invalid where the text is not what pairsText() writes.
Result<Pairs> parsePairs(std::string_view text);

/// Two runs measure the same thing where all of it is equal.
struct TuningProblem {
  /// The subject of tuning, without its sizes: a program's or plan's canonical
  /// text, or the SHA-256 of one that is long. Code generation that changes
  /// kernels must change it.
  std::string program;
  std::string shape;        ///< sizes and element types, as pairsText()
  std::string device;       ///< "NVIDIA H100 80GB HBM3 x4"
  std::string architecture; ///< "sm_90", "x86-64-v3": what the kernels are for
  std::string driver;       ///< driver, toolkit and library versions
  std::string
      environment;    ///< topology, clock policy, threads: what sways times
  std::string policy; ///< how it is measured: cold or hot, repeats, unit

  /// "program=...\nshape=...\n" and so on, in the order above; a backslash
  /// stands before '\', and a byte that is not printable ASCII is \xNN.
  std::string text() const;
  /// The inverse of text().
  static Result<TuningProblem> parse(std::string_view text);
  /// SHA-256 of text(): 64 hexadecimal digits.
  std::string key() const;
  /// The key of `program` and `architecture`, which problems have in common
  /// that may stand in for each other.
  std::string familyKey() const;
  /// The key of how it was measured: `driver`, `environment` and `policy`.
  std::string settingKey() const;

  bool operator==(const TuningProblem &) const = default;
};

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
