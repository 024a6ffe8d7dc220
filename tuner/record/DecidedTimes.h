// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_DECIDEDTIMES_H
#define MGPU_TUNER_RECORD_DECIDEDTIMES_H

// The times of the last meeting of winner and default. They are stored once,
// with the decision, and tune, report, compare and `db show` print them: no
// other pair of numbers is ever made of it.

#include "bench/measure/Summary.h"
#include "db/Trial.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::tuner {

/// Microseconds, with a 95 % interval.
struct Measured {
  double us = 0, lowUs = 0, highUs = 0;
  uint64_t samples = 0;

  bool operator==(const Measured &) const = default;
};
Measured measuredOf(const bench::Summary &seconds);

struct DecidedTimes {
  /// Medians of the samples that were taken in turn for this alone; both are
  /// the default's where it was kept.
  Measured before, after;
  /// The time of what met the default over the default's, less one, by pairs.
  /// None where nothing met it.
  std::optional<bench::Interval> change;
  uint64_t pairs = 0, processes = 0;
  std::string verdict;      ///< FAST, SLOW, SAME, AMBG; empty: nothing met
  std::string sentence;     ///< "A beats B by ..."
  bool isUndecided = false; ///< time was up first
  std::vector<std::string> warnings; ///< about the machine

  bool operator==(const DecidedTimes &other) const {
    return before == other.before && after == other.after &&
           sentence == other.sentence;
  }
};

nlohmann::json toJson(const DecidedTimes &times);
/// None where the text is not of one.
std::optional<DecidedTimes> decidedTimesFromJson(const nlohmann::json &from);
/// The times of the trial that holds a decision; none of any other trial.
std::optional<DecidedTimes> decidedTimesOf(const db::Trial &trial);

/// "1.118 us [1.102 us, 1.130 us]"; without an interval, the time alone.
std::string measuredText(const Measured &measured);
/// The lines that tell of a decision: "default  TIME", "tuned    TIME:
/// SENTENCE", and a line for each warning.
std::string decidedText(const DecidedTimes &times);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_DECIDEDTIMES_H
