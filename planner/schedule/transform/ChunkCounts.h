// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_SCHEDULE_TRANSFORM_CHUNKCOUNTS_H
#define MGPU_PLANNER_SCHEDULE_TRANSFORM_CHUNKCOUNTS_H

// Into how many parts each group of collectives is cut.

#include "planner/schedule/transform/Transform.h"

#include <functional>

namespace mgpu::planner {

struct ChunkCounts {
  std::vector<uint32_t> counts; ///< by group; empty where nothing can be cut
  double us = 0;                ///< makespan with them
  double wholeUs = 0;           ///< with nothing cut
  uint32_t uniform = 1;         ///< the best one number for all
  double uniformUs = 0;
  uint32_t trials = 0; ///< DAGs that were timed
};

/// The numbers that are tried of a group; 1 leaves it whole.
inline constexpr uint32_t chunkChoices[] = {1, 2, 4, 8};

/// Numbers of `groups`, as chunkGroups() gives them of `dag`: the most bytes
/// first.
std::vector<size_t>
groupsByBytes(const Dag &dag, const std::vector<std::vector<NodeId>> &groups);

/// Greedy: the best one number of 1, 2, 4 and 8 for all groups, then group by
/// group, the most bytes first, the number that is best beside those of the
/// others, until a round changes nothing; fewer DAGs are timed the larger they
/// are. `makespanUs` times a DAG; one that it cannot time is not taken.
Result<ChunkCounts>
findChunkCounts(const Dag &dag, const TransformContext &context,
                const std::function<Result<double>(const Dag &)> &makespanUs);

/// In words, a line for each group and one for the best one number.
std::vector<std::string> explainChunks(const ChunkCounts &counts,
                                       const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_SCHEDULE_TRANSFORM_CHUNKCOUNTS_H
