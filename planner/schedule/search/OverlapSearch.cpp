// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/OverlapSearch.h"

#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/search/LowerPeak.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mgpu::planner::search {

// Each rung takes this share off the memory that schedules may take beside the
// resident bytes. So many are tried by leaps, and so many one by one.
static constexpr double rungShare = 0.005;
static constexpr int mostLeaps = 6, mostRungs = 24;
// Plans are made after so many moves, then after twice as many each time.
static constexpr uint64_t firstOffer = 64;
// One move in so many is a repair.
static constexpr uint64_t repairOneIn = 16;
// Sums in another order round to just above what meets a bound.
static constexpr double rounding = 1e-12;

/// Heads or tails with the nodes' own durations.
static std::vector<double> prioritiesOf(const Problem &problem,
                                        const std::vector<Claim> &claims) {
  std::vector<double> priorities = problem.durations;
  for (size_t i = 0; i < claims.size(); ++i)
    priorities[i] += claims[i].us;
  return priorities;
}

static bool isLong(const Problem &problem) {
  return problem.size() > mostShortNodes;
}

static std::vector<uint32_t> ownOrder(const Problem &problem) {
  std::vector<uint32_t> order(problem.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

OverlapSearch::OverlapSearch(const Problem &problem, uint64_t seed, Offer offer)
    : problem(problem), offer(std::move(offer)), windows(problem, seed),
      memory(problem, seed), kept(std::numeric_limits<double>::infinity()) {
  for (const ProblemDevice &device : problem.devices)
    isMemoryLimited = isMemoryLimited || device.memoryBytes != UINT64_MAX;
  if (isMemoryLimited && MemoryLadder::suits(problem))
    ladder.emplace(
        problem, seed,
        [this](const Schedule &schedule, const std::vector<uint64_t> &peaks) {
          offerFitting(schedule, peaks);
        });
}

/// The share of the memory that the best schedule takes; 0 where a plan as
/// short is kept already.
double OverlapSearch::offerWorking() {
  if (working().makespan >= kept)
    return 0;
  const double taken = offer(working());
  if (taken <= 1)
    kept = working().makespan;
  return taken;
}

/// Makes a plan of a schedule that is shorter than what is kept and fits.
void OverlapSearch::offerFitting(const Schedule &schedule,
                                 const std::vector<uint64_t> &peaks) {
  if (schedule.makespan < kept && fits(problem, peaks) && offer(schedule) <= 1)
    kept = schedule.makespan;
}

void OverlapSearch::offerWindows() {
  if (windows.best().makespan < kept)
    offerFitting(windows.best(), peakBytes(problem, windows.best()));
}

/// The memory that schedules may take on rung `k` below the peaks of a
/// sequence.
std::vector<uint64_t>
OverlapSearch::rungBelow(const std::vector<uint64_t> &peaks, int k) const {
  std::vector<uint64_t> rung(peaks.size());
  for (size_t d = 0; d < rung.size(); ++d) {
    const uint64_t resident = problem.devices[d].residentBytes;
    rung[d] = resident + uint64_t(double(peaks[d] - resident) *
                                  std::pow(1 - rungShare, k));
  }
  return rung;
}

/// The device of which `bytes` take most of the limit.
size_t OverlapSearch::fullestDevice(const std::vector<uint64_t> &bytes) const {
  auto share = [&](size_t d) {
    return double(bytes[d]) / double(problem.devices[d].memoryBytes);
  };
  size_t fullest = 0;
  for (size_t d = 1; d < bytes.size(); ++d)
    if (share(d) > share(fullest))
      fullest = d;
  return fullest;
}

/// Tries to make a plan of a sequence that is lowered to `rung`: its memory as
/// a share of the limit, or nothing where the sequence cannot be lowered so
/// far.
std::optional<double> OverlapSearch::tryRung(const std::vector<uint32_t> &base,
                                             const std::vector<uint64_t> &rung,
                                             const exact::Budget &budget) {
  std::vector<uint32_t> sequence = base;
  const bool isLowered = memory.start(sequence, rung, budget);
  const std::vector<uint64_t> peaks = sequencePeakBytes(problem, sequence);
  const uint64_t peak = *std::max_element(peaks.begin(), peaks.end());
  if (peak < lowestPeak) {
    lowestPeak = peak;
    lowest = std::move(sequence);
  }
  if (!isLowered)
    return std::nullopt;
  isTight = true;
  return offerWorking();
}

/// Goes on within the limits, from a sequence that takes more: it is lowered
/// until a plan fits, by as much as the plan before took too much, or rung by
/// rung. The rungs are of the sequence and not of the limits, so what steps
/// find for a limit they find for a greater one.
bool OverlapSearch::descend(const std::vector<uint32_t> &base,
                            const exact::Budget &budget, Descent descent) {
  constexpr int bottom = 2000; // next to nothing is left
  const std::vector<uint64_t> peaks = sequencePeakBytes(problem, base);
  int first = 0;
  while (first < bottom && !fits(problem, rungBelow(peaks, first)))
    ++first;
  int k = first;
  for (int leap = 0;
       descent == Descent::Leaps && leap < mostLeaps && k < bottom; ++leap) {
    const std::vector<uint64_t> rung = rungBelow(peaks, k);
    std::optional<double> taken = tryRung(base, rung, budget);
    if (taken && *taken <= 1)
      return true;
    if (!taken)
      break;
    // The plan of this rung then takes all of the limit of the fullest device.
    const size_t fullest = fullestDevice(rung);
    const double enough = double(rung[fullest]) / *taken;
    while (k<bottom &&double(rungBelow(peaks, k)[fullest])> enough)
      ++k;
  }
  for (k = first + 1; descent == Descent::Steps && k <= first + mostRungs;
       ++k) {
    std::optional<double> taken = tryRung(base, rungBelow(peaks, k), budget);
    if (!taken || *taken <= 1 || budget.isOutOfTime())
      return taken && *taken <= 1;
  }
  return false;
}

/// Makes a plan of a sequence that fits without being lowered.
bool OverlapSearch::offerAsIs(const std::vector<uint32_t> &sequence,
                              const exact::Budget &budget) {
  const std::vector<uint64_t> peaks = sequencePeakBytes(problem, sequence);
  return fits(problem, peaks) &&
         tryRung(sequence, peaks, budget).value_or(2) <= 1;
}

/// Makes a plan of the best schedule; if that takes too much, of one that takes
/// less.
bool OverlapSearch::settle(const exact::Budget &budget, bool mayDescend) {
  return offerWorking() <= 1 ||
         (mayDescend &&
          descend(startOrder(problem, working()), budget, Descent::Leaps));
}

bool OverlapSearch::first(const exact::Budget &budget) {
  windows.listPasses(
      prioritiesOf(problem, streamHeads(problem, Direction::Forward, 0)),
      prioritiesOf(problem, streamHeads(problem, Direction::Backward, 0)));
  passes = startOrder(problem, windows.best());
  if (ladder) {
    offerWindows();
    if (kept == std::numeric_limits<double>::infinity())
      climb(budget);
    return kept < std::numeric_limits<double>::infinity();
  }
  // No plan of a schedule that takes too much fits either.
  if (fits(problem, peakBytes(problem, windows.best())) && offerWorking() <= 1)
    return true;
  if (isLong(problem) && offerAsIs(ownOrder(problem), budget))
    return true;
  const std::vector<uint32_t> low = lowMemoryOrder(problem);
  if (isLong(problem) && offerAsIs(low, budget))
    return true;
  for (Descent descent : {Descent::Leaps, Descent::Steps})
    if (descend(passes, budget, descent) || descend(low, budget, descent))
      return true;
  return false;
}

void OverlapSearch::startFrom(const Schedule &schedule) {
  windows.adopt(schedule);
  kept = schedule.makespan;
  passes = startOrder(problem, schedule);
}

/// Lowers the first sequences, once.
void OverlapSearch::climb(const exact::Budget &budget) {
  if (passes.empty())
    return;
  ladder->lower(std::exchange(passes, {}), budget);
  ladder->lower(lowMemoryOrder(problem), budget);
  lowest = ladder->lowestSequence();
}

/// The trials here depend on the budget and not on the limits.
void OverlapSearch::improveOnLadder(const Certificate &bound,
                                    exact::Budget &budget) {
  double enough = bound.boundUs * (1 + rounding);
  offerWindows();
  if (kept <= enough)
    return;
  climb(budget);
  ladder->lower(startOrder(problem, windows.best()), budget);
  const std::vector<uint64_t> peaks = peakBytes(problem, windows.best());
  ladder->build(*std::max_element(peaks.begin(), peaks.end()), budget);
  for (uint64_t moves = 0, nextOffer = firstOffer; kept > enough; ++moves) {
    if (budget.exhausted())
      return;
    const double before = windows.best().makespan;
    if (moves == nextOffer) {
      nextOffer *= 2;
      if (searchExactly(moves, budget))
        enough = std::max(enough, proven * (1 + rounding));
    }
    budget.spend();
    if (proven == 0)
      windows.move();
    if (windows.best().makespan < before)
      offerWindows();
    ladder->round();
  }
}

/// A turn of the exact search. True where the best schedule is proven to be.
bool OverlapSearch::searchExactly(uint64_t branches, exact::Budget &budget) {
  if (isTight || proven > 0 || !DisjunctiveSearch::suits(problem))
    return false;
  if (!exact)
    exact.emplace(problem, windows.best());
  exact->adopt(windows.best());
  const bool isProven = exact->run(branches, budget);
  windows.adopt(exact->best());
  if (isProven)
    proven = exact->best().makespan;
  return isProven;
}

void OverlapSearch::improve(const Certificate &bound, exact::Budget &budget) {
  windows.listPasses(prioritiesOf(problem, bound.heads),
                     prioritiesOf(problem, bound.tails));
  if (ladder)
    return improveOnLadder(bound, budget);
  // Where memory is short, from what the better priorities gave.
  if (isTight && (!isLong(problem) || !budget.exhausted()))
    descend(startOrder(problem, windows.best()), budget, Descent::Leaps);
  // Where the whole is not for the exact search, parts of it are.
  const bool canRepair =
      std::all_of(problem.isUnit.begin(), problem.isUnit.end(),
                  [](bool isUnit) { return isUnit; }) &&
      !DisjunctiveSearch::suits(problem);
  double enough = bound.boundUs * (1 + rounding);
  for (uint64_t moves = 0, nextOffer = firstOffer;; ++moves) {
    bool isOver = budget.exhausted();
    if (!isOver && moves == nextOffer && working().makespan > enough &&
        searchExactly(moves, budget))
      enough = proven * (1 + rounding);
    if (isOver || working().makespan <= enough || moves == nextOffer) {
      nextOffer = std::max(firstOffer, 2 * moves);
      if (!settle(budget, !isOver) || isOver || kept <= enough)
        return;
    }
    budget.spend();
    if (isTight) {
      memory.move();
      continue;
    }
    const double before = windows.best().makespan;
    if (canRepair && moves % repairOneIn == 0)
      windows.repair(budget);
    else
      windows.move();
    if (windows.best().makespan < before && isMemoryLimited &&
        !fits(problem, peakBytes(problem, windows.best())) &&
        !settle(budget, true))
      return;
  }
}

} // namespace mgpu::planner::search
