// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Comparison.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace mgpu::bench {

static constexpr size_t firstLook = 8;

std::string_view toString(Verdict verdict) {
  switch (verdict) {
  case Verdict::Fast:
    return "FAST";
  case Verdict::Slow:
    return "SLOW";
  case Verdict::Same:
    return "SAME";
  case Verdict::Ambiguous:
    return "AMBG";
  }
  return "AMBG";
}

Verdict verdictOf(const Interval &change, double margin) {
  if (change.low >= -margin && change.high <= margin)
    return Verdict::Same;
  return change.high < 0  ? Verdict::Fast
         : change.low > 0 ? Verdict::Slow
                          : Verdict::Ambiguous;
}

Comparison compare(std::span<const double> a, std::span<const double> b,
                   const ComparisonOptions &options) {
  Comparison result;
  result.pairs = std::min(a.size(), b.size());
  if (result.pairs == 0) {
    result.change = medianInterval({});
    return result;
  }
  std::vector<double> ratios(result.pairs);
  // By logarithms "A over B" and "B over A" are the same question.
  for (size_t k = 0; k < result.pairs; ++k)
    ratios[k] = std::log(a[k] / b[k]);
  std::sort(ratios.begin(), ratios.end());
  Interval logs = medianInterval(ratios, options.confidence);
  Interval &change = result.change;
  change = {std::expm1(logs.middle), std::expm1(logs.low),
            std::expm1(logs.high)};
  result.verdict = verdictOf(change, options.margin);
  return result;
}

SequentialComparison::SequentialComparison(size_t most, ComparisonOptions given)
    : options(given), mostPairs(std::max(most, firstLook)),
      nextLook(firstLook) {
  size_t looks = 2; // the first, and finish()
  for (size_t at = firstLook; at < mostPairs; at *= 2)
    ++looks;
  // Bonferroni: the looks are not independent, and need not be.
  options.confidence = 1 - (1 - given.confidence) / double(looks);
}

void SequentialComparison::add(double timeA, double timeB) {
  if (decided)
    return;
  a.push_back(timeA);
  b.push_back(timeB);
  if (a.size() < nextLook)
    return;
  nextLook = std::min(nextLook * 2, mostPairs);
  look();
  decided |= a.size() >= mostPairs;
}

void SequentialComparison::finish() {
  if (!decided)
    look();
  decided = true;
}

void SequentialComparison::look() {
  latest = compare(a, b, options);
  decided = latest.verdict == Verdict::Same ||
            (latest.verdict == Verdict::Slow && options.slowIsEnough) ||
            (latest.verdict != Verdict::Ambiguous &&
             latest.change.halfWidth() <= options.precision);
}

std::string describe(const Comparison &comparison, std::string_view a,
                     std::string_view b) {
  const Interval &change = comparison.change;
  std::string spread =
      std::isfinite(change.high)
          ? fmt::format(" +- {:.1f} %", 100 * change.halfWidth())
          : std::string(" (too few samples)");
  if (comparison.processes > 1)
    spread += fmt::format(" over {} processes of each", comparison.processes);
  double percent = 100 * std::abs(change.middle);
  switch (comparison.verdict) {
  case Verdict::Fast:
    return fmt::format("{} beats {} by {:.1f} %{} (FAST)", a, b, percent,
                       spread);
  case Verdict::Slow:
    return fmt::format("{} loses to {} by {:.1f} %{} (SLOW)", a, b, percent,
                       spread);
  case Verdict::Same:
  case Verdict::Ambiguous:
    break;
  }
  return fmt::format(
      "{} and {} {}: {:+.1f} %{} ({})", a, b,
      comparison.verdict == Verdict::Same ? "tie" : "cannot be told apart",
      100 * change.middle, spread, toString(comparison.verdict));
}

} // namespace mgpu::bench
