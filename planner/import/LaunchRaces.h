// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_LAUNCHRACES_H
#define MGPU_PLANNER_IMPORT_LAUNCHRACES_H

// Races within a launch: two of its threads touch one element, one of them
// writes it, and nothing orders them. Proven are those that surely happen,
// where indices and conditions are affine in ids and counted loops. Whether two
// threads meet is a question about integers, which MLIR's Presburger library
// answers with the ids of two that do. Others are possible.

#include "facts/AffineEvaluator.h"
#include "facts/ThreadValues.h"
#include "facts/Uniformity.h"
#include "planner/record/TouchedSet.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace mgpu::planner {

using facts::AffineEvaluator, facts::Ids;

class KernelViews;
struct MemoryAccess;

struct LaunchRace {
  mlir::Operation *first, *second; ///< may be one
  mlir::Value root;                ///< the captured memref
  std::string text; ///< "thread 0 of block 0 writes element 4, which ..."
  bool isProven = true;
};

/// "thread 0 of block 0 writes element 4, which ..."
std::string raceText(const MemoryAccess &a, const MemoryAccess &b,
                     const facts::ThreadIds &first,
                     const facts::ThreadIds &second, int64_t element,
                     const facts::AffineCounters &counters);

/// Two threads, by their ids, and the element at which they meet.
struct MeetingThreads {
  facts::ThreadIds first{}, second{};
  int64_t address = 0;
};

/// Whether two threads meet, asked before: a program launches its kernels
/// often. The place that the first one touches is without its constant, and
/// that of the second one is relative to it; then the ids of which there are
/// several values, the id in which the threads differ, and by how much the
/// second one's is larger at least, or, negative, smaller.
using KnownMeetings = std::map<
    std::tuple<TouchedSet, TouchedSet, unsigned long, uint32_t, int64_t>,
    std::optional<MeetingThreads>>;

/// Not looked at: kernels with calls, or with atomics and a loop that may wait
/// for them, or with several blocks of code; and threads of one block where
/// they wait for each other, or exchange values, within a loop or a branch. Two
/// threads that write what is the same value in both do not race.
std::vector<LaunchRace> findLaunchRaces(mlir::Region &body, KernelViews &views,
                                        AffineEvaluator &affine,
                                        const facts::Uniformity &uniformity,
                                        KnownMeetings &known);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_LAUNCHRACES_H
