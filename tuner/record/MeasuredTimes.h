// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_MEASUREDTIMES_H
#define MGPU_TUNER_RECORD_MEASUREDTIMES_H

// Times of nodes as `profile` measured them, stored by what a node does, and
// found again by exactly that.

#include "bench/measure/Summary.h"
#include "db/TuningStore.h"
#include "planner/cost/TargetMachine.h"
#include "tuner/record/Keys.h"
#include "tuner/space/ProgramSpace.h"

#include <optional>

namespace mgpu::tuner {

/// The work of node `id` and its machine, whatever program it is in. For a
/// kernel that is its code, grid, part, scalars and how it is built; for a copy
/// the shapes of its boxes and the memories; for a collective its kind, type,
/// ranks and shapes. None for nodes known only by their cost.
std::optional<db::TuningProblem> nodeProblem(const KeyInput &input,
                                             const ProgramConfig &config,
                                             planner::NodeId id);

/// The work of node `id`, within one program and what transforms make of it:
/// nodes with equal texts do equal work.
std::string workText(const planner::Dag &dag, planner::NodeId id);

using planner::NodeTimes;

/// The newest measurement of each node of the program in `store`; on one
/// machine, equal nodes have equal times.
Result<NodeTimes> readNodeTimes(const KeyInput &input,
                                const ProgramConfig &config,
                                db::TuningStore &store);

/// Stores the median of `samples` for all nodes that do the same thing. Samples
/// by NodeId, microseconds; empty for nodes that are not to be stored.
Result<void> storeNodeTimes(const KeyInput &input, const ProgramConfig &config,
                            const std::vector<std::vector<double>> &samples,
                            db::TuningStore &store);

/// The number of threads chosen for the default configuration, and what replays
/// on it took.
Result<void> storeThreads(const KeyInput &input, uint32_t threads,
                          const bench::Summary &us, db::TuningStore &store);
/// The number chosen last; none where none was.
Result<std::optional<uint32_t>> readThreads(const KeyInput &input,
                                            db::TuningStore &store);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_MEASUREDTIMES_H
