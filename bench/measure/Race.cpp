// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/measure/Race.h"

#include "support/Clock.h"
#include "support/Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

Stop StoppingCriterion::check(std::span<const double> samples, double seconds) {
  const size_t count = samples.size();
  if (count < options.minSamples)
    return seconds >= options.maxSeconds && count > 0 ? Stop::Time : Stop::No;
  if (count >= nextLook) {
    nextLook = count + std::max<size_t>(count / 4, 1);
    std::vector<double> ascending(samples.begin(), samples.end());
    std::sort(ascending.begin(), ascending.end());
    Interval found = medianInterval(ascending);
    double reach =
        std::max(found.high - found.middle, found.middle - found.low);
    if (reach <= options.relativeError * found.middle)
      return Stop::Precise;
  }
  if (count >= options.maxSamples)
    return Stop::Samples;
  return seconds >= options.maxSeconds ? Stop::Time : Stop::No;
}

namespace {

/// Counts what is taken and discarded.
class Discards {
public:
  explicit Discards(DiscardOptions options) : options(options) {}
  /// Whether a sample (or round) so disturbed is to be thrown away.
  bool takes(bool disturbed) {
    ++taken;
    if (!disturbed)
      return false;
    if (double(count + 1) > options.mostDiscarded * double(taken) + 4) {
      reached = true;
      return false;
    }
    ++count;
    return true;
  }
  size_t count = 0;
  bool reached = false;

private:
  DiscardOptions options;
  size_t taken = 0;
};

} // namespace

Result<Measurement> measure(const Subject &subject,
                            const StoppingOptions &stopping,
                            const DiscardOptions &discarding) {
  Measurement result;
  StoppingCriterion criterion(stopping);
  Discards discards(discarding);
  std::vector<double> kept;
  Clock::time_point start = Clock::now();
  while (result.stop == Stop::No) {
    MGPU_TRY_ASSIGN(Sample sample, subject());
    if (discards.takes(isDisturbed(sample.disturbance, discarding.limits)))
      continue;
    kept.push_back(sample.seconds);
    result.stop = criterion.check(kept, secondsSince(start));
  }
  result.seconds = summarize(std::move(kept));
  result.discarded = discards.count;
  result.neverQuiet = discards.reached;
  return result;
}

Result<HeadToHead> headToHead(const Subject &a, const Subject &b,
                              const HeadToHeadOptions &options) {
  SequentialComparison comparison(options.mostPairs, options.comparison);
  Discards discards(options.discarding);
  Random random(options.seed);
  std::vector<double> timesA, timesB;
  Clock::time_point start = Clock::now();
  while (!comparison.isDecided() && secondsSince(start) < options.maxSeconds) {
    Sample sampleA, sampleB;
    bool firstA = random.below(2) == 0;
    if (firstA) {
      MGPU_TRY_ASSIGN(sampleA, a());
    }
    MGPU_TRY_ASSIGN(sampleB, b());
    if (!firstA) {
      MGPU_TRY_ASSIGN(sampleA, a());
    }
    if (discards.takes(
            isDisturbed(sampleA.disturbance, options.discarding.limits) ||
            isDisturbed(sampleB.disturbance, options.discarding.limits)))
      continue;
    timesA.push_back(sampleA.seconds);
    timesB.push_back(sampleB.seconds);
    comparison.add(sampleA.seconds, sampleB.seconds);
  }
  comparison.finish();
  HeadToHead result;
  result.comparison = comparison.result();
  result.a = summarize(timesA);
  result.b = summarize(timesB);
  result.timesA = std::move(timesA);
  result.timesB = std::move(timesB);
  result.discarded = discards.count;
  return result;
}

/// The round of a race after which subjects are first compared.
static constexpr size_t firstVerdict = 8;

/// The chance of a wrong word is shared among the looks and the rivals, as
/// SequentialComparison does.
static ComparisonOptions comparisonOfLooks(const RaceOptions &options,
                                           size_t numSubjects) {
  size_t looks = 1;
  for (size_t at = firstVerdict; at < options.mostRounds; at *= 2)
    ++looks;
  ComparisonOptions comparison = options.comparison;
  comparison.confidence =
      1 - (1 - comparison.confidence) /
              double(looks * std::max<size_t>(numSubjects - 1, 1));
  return comparison;
}

/// The subject with the least median.
static size_t leaderOf(const std::vector<size_t> &running,
                       const std::vector<std::vector<double>> &times) {
  return *std::min_element(
      running.begin(), running.end(),
      [&](size_t x, size_t y) { return median(times[x]) < median(times[y]); });
}

Result<RaceResult>
race(std::span<const Subject> subjects, const RaceOptions &options,
     const std::function<void(size_t, const Error &)> &onFailure) {
  RaceResult result;
  result.leftAt.resize(subjects.size());
  std::vector<std::vector<double>> times(subjects.size());
  std::vector<size_t> running(subjects.size());
  std::iota(running.begin(), running.end(), 0);
  Random random(options.seed);
  Discards discards(options.discarding);
  size_t nextLook = firstVerdict;
  const ComparisonOptions comparison =
      comparisonOfLooks(options, subjects.size());
  auto leave = [&](size_t subject) {
    result.leftAt[subject] = result.rounds;
    running.erase(std::find(running.begin(), running.end(), subject));
  };

  Clock::time_point start = Clock::now();
  std::vector<Sample> round(subjects.size());
  std::vector<size_t> entrants; // `running`, while that changes
  while (result.rounds < options.mostRounds && running.size() > 1 &&
         (result.rounds == 0 || secondsSince(start) < options.maxSeconds)) {
    for (size_t k = running.size(); k > 1; --k)
      std::swap(running[k - 1], running[random.below(k)]);
    bool disturbed = false;
    entrants = running;
    for (size_t subject : entrants) {
      auto sample = subjects[subject]();
      if (!sample) {
        if (onFailure)
          onFailure(subject, sample.error());
        leave(subject);
        times[subject].clear();
        continue;
      }
      round[subject] = *sample;
      disturbed |= isDisturbed(sample->disturbance, options.discarding.limits);
    }
    if (discards.takes(disturbed))
      continue;
    for (size_t subject : running)
      times[subject].push_back(round[subject].seconds);
    if (++result.rounds < nextLook || running.empty())
      continue;
    nextLook = std::min(nextLook * 2, options.mostRounds);
    size_t best = leaderOf(running, times);
    bool allTie = true;
    entrants = running;
    for (size_t rival : entrants) {
      if (rival == best)
        continue;
      Verdict verdict = compare(times[rival], times[best], comparison).verdict;
      allTie &= verdict == Verdict::Same;
      if (verdict == Verdict::Slow)
        leave(rival);
    }
    result.isDecided = allTie;
    if (allTie)
      break;
  }
  result.isDecided |= running.size() == 1;
  if (running.empty())
    return fail(ErrorKind::Invalid, "every subject of the race failed");
  result.winner = running.size() == 1 ? running[0] : leaderOf(running, times);
  result.discarded = discards.count;
  for (std::vector<double> &kept : times)
    result.seconds.push_back(summarize(std::move(kept)));
  return result;
}

} // namespace mgpu::bench
