// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_REPORT_IMPORTANCE_H
#define MGPU_TUNER_REPORT_IMPORTANCE_H

#include "db/TuningProblem.h"

#include <string>
#include <vector>

namespace mgpu::tuner {

struct ParameterImportance {
  std::string parameter;
  size_t values = 0; ///< different ones among the trials
  /// Share of the variance of the logarithm of the time that grouping the
  /// trials by this parameter alone accounts for, corrected for the number of
  /// groups: epsilon squared of a one-way analysis of variance (Kelley 1935),
  /// (SSb - (k - 1) SSw / (n - k)) / SSt, no lower than 0. It says nothing of
  /// how parameters act together, and a search tries good values more often
  /// than others, so that two of them may vary together.
  double share = 0;

  bool operator==(const ParameterImportance &) const = default;
};

struct ImportanceGroup {
  std::string subject; ///< "program", or a kernel's name
  size_t trials = 0;
  std::vector<ParameterImportance> parameters; ///< the largest share first
};

struct ImportanceSample {
  db::Pairs pairs;
  double us = 0; ///< > 0
};

/// Fewer trials say nothing.
inline constexpr size_t fewestForImportance = 10;

/// Every parameter with at least two values; a pair that a sample does not have
/// is a value of its own. Nothing of fewer than fewestForImportance samples.
std::vector<ParameterImportance>
importanceOf(const std::vector<ImportanceSample> &samples);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_REPORT_IMPORTANCE_H
