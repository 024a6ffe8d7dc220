// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/search/MemoryLadder.h"

#include "planner/schedule/search/LowerPeak.h"

#include <algorithm>

namespace mgpu::planner::search {

// One move in so many is backward.
static constexpr uint64_t backwardOneIn = 3;
// A move goes this share of its window at most: sequences that fit are near
// each other.
static constexpr double nearMove = 0.3;

MemorySearch::MemorySearch(const Problem &problem, uint64_t seed, Visit visit)
    : problem(problem), seed(seed), visit(std::move(visit)),
      noise(problem, seed, nearMove), decoder(problem), serial(problem) {}

bool MemorySearch::start(std::vector<uint32_t> &sequence,
                         const std::vector<uint64_t> &newLimits,
                         const exact::Budget &budget) {
  if (!lowerPeak(problem, newLimits, seed, budget, sequence) ||
      !decoder.decode(sequence, newLimits, trial.starts))
    return false;
  limits = newLimits;
  current = {trial.starts, decoder.makespan()};
  return true;
}

void MemorySearch::move() {
  if (noise.random.below(backwardOneIn) == 0) {
    noise.disturb(current, Direction::Backward, order);
    double makespan = serial.decode(order, Direction::Backward, trial.starts);
    noise.turn(trial.starts, makespan, Direction::Backward, order);
  } else {
    noise.disturb(current, Direction::Forward, order);
  }
  if (!decoder.decode(order, limits, trial.starts))
    return;
  trial.makespan = decoder.makespan();
  if (visit)
    visit(trial, decoder.peaks());
  if (trial.makespan <= current.makespan)
    std::swap(current, trial);
}

// Each step takes this share off the bytes beside the resident ones.
static constexpr double ladderStep = 0.005;
// The limits of the rungs, as shares of the way from the least peak of the
// sequences to the most memory. They are close where nodes that begin to run
// side by side need a little more.
static constexpr double rungShares[] = {
    0,      1. / 64, 1. / 32, 1. / 16, 1. / 8, 3. / 16, 1. / 4,
    3. / 8, 1. / 2,  5. / 8,  3. / 4,  7. / 8, 1};

bool MemoryLadder::suits(const Problem &problem) {
  auto hasFirstLimit = [&](const ProblemDevice &device) {
    return device.memoryBytes == problem.devices[0].memoryBytes;
  };
  return problem.size() <= maxNodes &&
         std::all_of(problem.devices.begin(), problem.devices.end(),
                     hasFirstLimit);
}

MemoryLadder::MemoryLadder(const Problem &problem, uint64_t seed, Visit visit)
    : problem(problem), seed(seed), visit(std::move(visit)) {}

void MemoryLadder::visitIfBest(const Schedule &schedule,
                               const std::vector<uint64_t> &peaks) {
  const uint64_t bytes = *std::max_element(peaks.begin(), peaks.end());
  auto next = front.upper_bound(schedule.makespan);
  if (next != front.begin() && std::prev(next)->second <= bytes)
    return;
  while (next != front.end() && next->second >= bytes)
    next = front.erase(next);
  front[schedule.makespan] = bytes;
  visit(schedule, peaks);
}

void MemoryLadder::lower(std::vector<uint32_t> sequence,
                         const exact::Budget &budget) {
  uint64_t resident = 0;
  for (const ProblemDevice &device : problem.devices)
    resident = std::max(resident, device.residentBytes);
  SequenceDecoder decoder(problem);
  Schedule schedule;
  for (uint64_t limit = UINT64_MAX;;) {
    const std::vector<uint64_t> peaks = sequencePeakBytes(problem, sequence);
    const uint64_t peak = *std::max_element(peaks.begin(), peaks.end());
    limit = std::min(limit, peak);
    if (!decoder.decode(sequence, limitsOf(limit), schedule.starts))
      return;
    schedule.makespan = decoder.makespan();
    steps.push_back({limit, schedule.makespan, sequence});
    visit(schedule, decoder.peaks());
    limit = resident + uint64_t(double(limit - resident) * (1 - ladderStep));
    if (limit >= peak ||
        !lowerPeak(problem, limitsOf(limit), seed, budget, sequence))
      return;
  }
}

void MemoryLadder::build(uint64_t most, const exact::Budget &budget) {
  std::sort(steps.begin(), steps.end(), [](const Step &a, const Step &b) {
    return std::pair(a.limit, a.makespan) < std::pair(b.limit, b.makespan);
  });
  const uint64_t least = steps.front().limit;
  most = std::max(most, steps.back().limit);
  const Step *shortest = &steps.front();
  size_t next = 0;
  for (const double share : rungShares) {
    const uint64_t limit = least + uint64_t(double(most - least) * share);
    for (; next < steps.size() && steps[next].limit <= limit; ++next)
      if (steps[next].makespan < shortest->makespan)
        shortest = &steps[next];
    auto rung = std::make_unique<MemorySearch>(
        problem, seed + rungs.size(),
        [this](const Schedule &schedule, const std::vector<uint64_t> &peaks) {
          visitIfBest(schedule, peaks);
        });
    std::vector<uint32_t> sequence = shortest->sequence;
    if (rung->start(sequence, limitsOf(limit), budget))
      rungs.push_back(std::move(rung));
  }
}

void MemoryLadder::round() {
  for (size_t k = 0; k < rungs.size(); ++k) {
    rungs[k]->move();
    // A schedule that fits a rung fits those above it.
    if (k + 1 < rungs.size())
      rungs[k + 1]->adopt(rungs[k]->best());
  }
}

const std::vector<uint32_t> &MemoryLadder::lowestSequence() const {
  return std::min_element(
             steps.begin(), steps.end(),
             [](const Step &a, const Step &b) { return a.limit < b.limit; })
      ->sequence;
}

} // namespace mgpu::planner::search
