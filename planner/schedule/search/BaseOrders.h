// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_SEARCH_BASEORDERS_H
#define MGPU_PLANNER_SCHEDULE_SEARCH_BASEORDERS_H

#include "planner/schedule/search/OverlapModel.h"

#include <limits>

namespace mgpu::planner::search {

/// A topological order that needs little memory when run one node at a time.
/// Two rules, both local: a node whose output is not smaller than its inputs
/// (weights gathered or converted, constants) waits until something that is not
/// such a node needs it; a ready node whose inputs it frees are larger than its
/// output runs at once, if more than `comfort` bytes are live. Otherwise in the
/// order of `keys`, the least first.
std::vector<uint32_t> lowMemoryOrder(const OverlapModel &model,
                                     const std::vector<double> &keys,
                                     uint64_t comfort = 0);

/// How urgent nodes are in a schedule along `base`. All in microseconds.
struct UrgencyRule {
  double lookahead = 0; ///< how much earlier than need a collective should end
  /// A node is due no later than the bound on the makespan, less the longest
  /// path from its start to the end, less this; infinite: never due.
  double margin = std::numeric_limits<double>::infinity();
  std::vector<double> earlier; ///< per node: how much sooner; empty: none
};
/// The greater goes first: kernels in the order of `base`, or by when they are
/// due if that is sooner; before a collective's need lies the time it takes and
/// the lookahead, for it and for all it waits for.
std::vector<double> urgency(const OverlapModel &model,
                            const std::vector<uint32_t> &base,
                            const UrgencyRule &rule, double bound);

/// Urgency as the longest path from the node's start to the end.
std::vector<double> pathPriorities(const OverlapModel &model);

/// Kernels in program order, whatever memory that takes. Collectives start as
/// soon as what they need has ended, of several the first in the program; or,
/// if not `early`, in program order, each once all kernels before it have
/// ended.
OverlapSchedule inOrderSchedule(const OverlapModel &model, bool early);

} // namespace mgpu::planner::search

#endif // MGPU_PLANNER_SCHEDULE_SEARCH_BASEORDERS_H
