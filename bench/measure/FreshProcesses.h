// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_BENCH_MEASURE_FRESHPROCESSES_H
#define MGPU_BENCH_MEASURE_FRESHPROCESSES_H

// A against B over several fresh processes of each. Where a process got its
// memory, and what the machine did when it started, stays with it: samples of
// one pair of processes agree with each other more than with those of the
// next, so an interval over samples alone is too narrow and its verdict flips
// when the command is run again.

#include "bench/measure/Environment.h"
#include "bench/measure/Race.h"
#include "support/Clock.h"

namespace mgpu::bench {

/// Starts a process and gives the subject that samples it.
using StartSubject = std::function<Result<Subject>()>;

struct FreshOptions {
  /// Options for each pair of processes; `maxSeconds` and `mostPairs` are for
  /// them all.
  HeadToHeadOptions meeting;
  size_t processes = 5; ///< processes of A; as many of B
  TimeLimit limit = {}; ///< no pair but the first begins beyond it
};

/// Starts A first in every other pair, else B. The change is the mean of the
/// processes' medians, and its interval the wider one of Student's over the
/// processes and that of all pairs together. The times are medians of all
/// samples.
Result<HeadToHead> headToHeadFresh(const StartSubject &a, const StartSubject &b,
                                   const FreshOptions &options = {});

/// The faults of the machine while the two met, a sentence each: load, times of
/// two kinds, samples that had to be thrown away.
std::vector<std::string> conditions(const HeadToHead &met,
                                    const Environment &environment);

/// Whether ascending samples fall into two groups that are far apart.
bool isBimodal(std::span<const double> ascending);

} // namespace mgpu::bench

#endif // MGPU_BENCH_MEASURE_FRESHPROCESSES_H
