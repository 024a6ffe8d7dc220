// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/FreshProcesses.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::bench {

/// Two-sided 95 % quantile of Student's t.
static double studentQuantile(size_t freedom) {
  constexpr double table[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                              2.447,  2.365, 2.306, 2.262, 2.228};
  return table[std::min(freedom, std::size(table)) - 1];
}

/// Student's interval over the logarithms of the processes' changes.
static Interval overProcesses(const std::vector<double> &logs) {
  const auto count = double(logs.size());
  double mean = 0, squares = 0;
  for (double each : logs)
    mean += each / count;
  for (double each : logs)
    squares += (each - mean) * (each - mean);
  const double reach = studentQuantile(logs.size() - 1) *
                       std::sqrt(squares / (count - 1) / count);
  return {std::expm1(mean), std::expm1(mean - reach), std::expm1(mean + reach)};
}

static Result<HeadToHead> meetOnce(const StartSubject &a, const StartSubject &b,
                                   bool firstA,
                                   const HeadToHeadOptions &options) {
  Subject subjectA, subjectB;
  if (firstA) {
    MGPU_TRY_ASSIGN(subjectA, a());
  }
  MGPU_TRY_ASSIGN(subjectB, b());
  if (!firstA) {
    MGPU_TRY_ASSIGN(subjectA, a());
  }
  return headToHead(subjectA, subjectB, options);
}

Result<HeadToHead> headToHeadFresh(const StartSubject &a, const StartSubject &b,
                                   const FreshOptions &options) {
  HeadToHeadOptions each = options.meeting;
  const size_t processes = std::max<size_t>(options.processes, 2);
  each.maxSeconds /= double(processes);
  each.mostPairs = std::max<size_t>(each.mostPairs / processes, 1);
  HeadToHead all;
  std::vector<double> logs;
  for (size_t k = 0; k < processes; ++k) {
    if (k > 0 && options.limit.isOver())
      break;
    ++each.seed;
    MGPU_TRY_ASSIGN(HeadToHead met, meetOnce(a, b, k % 2 == 0, each));
    all.discarded += met.discarded;
    all.timesA.insert(all.timesA.end(), met.timesA.begin(), met.timesA.end());
    all.timesB.insert(all.timesB.end(), met.timesB.begin(), met.timesB.end());
    if (met.comparison.pairs > 0)
      logs.push_back(std::log1p(met.comparison.change.middle));
  }
  all.a = summarize(all.timesA);
  all.b = summarize(all.timesB);
  all.comparison = compare(all.timesA, all.timesB, options.meeting.comparison);
  all.comparison.processes = logs.size();
  if (logs.size() < 2)
    return all;
  const Interval of = overProcesses(logs);
  Interval &change = all.comparison.change;
  change = {of.middle, std::min(of.low, change.low),
            std::max(of.high, change.high)};
  all.comparison.verdict = verdictOf(change, options.meeting.comparison.margin);
  return all;
}

bool isBimodal(std::span<const double> ascending) {
  const size_t count = ascending.size();
  if (count < 20)
    return false;
  // The widest gap that leaves a fifth on either side.
  size_t widest = 0;
  double gap = 0;
  for (size_t k = count / 5; k + 1 < count - count / 5; ++k)
    if (ascending[k + 1] - ascending[k] > gap) {
      gap = ascending[k + 1] - ascending[k];
      widest = k + 1;
    }
  auto spread = [](std::span<const double> part) {
    return quantile(part, 0.75) - quantile(part, 0.25);
  };
  return gap > 0.03 * quantile(ascending, 0.5) &&
         gap > 2 * std::max(spread(ascending.first(widest)),
                            spread(ascending.subspan(widest)));
}

std::vector<std::string> conditions(const HeadToHead &met,
                                    const Environment &environment) {
  std::vector<std::string> found;
  double load = 0;
  std::from_chars(
      environment.loadAverage.data(),
      environment.loadAverage.data() + environment.loadAverage.size(), load);
  if (environment.cores > 0 && load > double(environment.cores))
    found.push_back(fmt::format("the load is {} on {} CPUs: others run beside "
                                "what is measured",
                                environment.loadAverage, environment.cores));
  const size_t taken = met.comparison.pairs + met.discarded;
  if (met.discarded * 4 > taken)
    found.push_back(fmt::format("{} of {} pairs of samples were thrown away: "
                                "the clock sagged, or the system ran others "
                                "meanwhile",
                                met.discarded, taken));
  for (const std::vector<double> *times : {&met.timesA, &met.timesB}) {
    std::vector<double> ascending = *times;
    std::sort(ascending.begin(), ascending.end());
    if (!isBimodal(ascending))
      continue;
    found.push_back("the times fall into two groups: something changed while "
                    "it was measured (the clock, a neighbour, placement)");
    break;
  }
  return found;
}

} // namespace mgpu::bench
