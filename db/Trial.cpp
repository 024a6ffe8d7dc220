// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/Trial.h"

#include "db/Problem.h"

#include <fmt/format.h>

#include <cmath>

namespace mgpu::db {

static constexpr std::string_view names[] = {
    "ok", "wrong", "crashed", "timeout", "over-limit", "invalid"};

std::string_view statusName(TrialStatus status) {
  return names[size_t(status)];
}

Result<TrialStatus> parseStatus(std::string_view name) {
  for (size_t k = 0; k < std::size(names); ++k)
    if (names[k] == name)
      return TrialStatus(k);
  return fail(ErrorKind::Invalid,
              fmt::format("'{}' is no status of a trial", name.substr(0, 40)));
}

Result<void> check(const Trial &trial) {
  auto wrong = [&](std::string_view what) {
    return fail(ErrorKind::Invalid,
                fmt::format("the trial of '{}' {}",
                            trial.configuration.substr(0, 200), what));
  };
  MGPU_TRY(parsePairs(trial.configuration));
  for (double figure : {trial.medianUs, trial.meanUs, trial.spreadUs,
                        trial.lowUs, trial.highUs, trial.seconds})
    if (!std::isfinite(figure) || figure < 0)
      return wrong("has a figure that is negative or not finite");
  if (trial.samples > uint64_t(INT64_MAX))
    return wrong("has more samples than can be");
  if (trial.status != TrialStatus::Ok) {
    if (trial.sentence.empty())
      return wrong("failed and does not say why");
    return {};
  }
  if (trial.samples == 0 || trial.medianUs == 0)
    return wrong("is ok but was not measured");
  if (trial.lowUs > trial.medianUs || trial.highUs < trial.medianUs)
    return wrong("has an interval that does not hold its median");
  return {};
}

} // namespace mgpu::db
