// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PLAN_CHOOSESHARDINGS_H
#define MGPU_PIPELINE_PLAN_CHOOSESHARDINGS_H

// `plan --shardings N`: other annotations of a program's arguments are planned,
// and the shortest plan wins.

#include "pipeline/plan/ChooseOrder.h"

namespace mgpu::pipeline {

struct ShardingChoice {
  std::optional<double> givenUs; ///< as annotated; none where there is no plan
  double bestUs = 0;
  uint64_t tried = 0;  ///< other annotations
  uint64_t noPlan = 0; ///< of these
  /// Where another is shorter: what it says of arguments.
  std::map<std::string, planner::Split> splits;
  std::string text; ///< the program of the shortest plan
};
/// The words for people, a line or more, as comments of MLIR.
std::string toComments(const ShardingChoice &choice);

/// Plans `program` as it is annotated, and up to `most` other annotations of
/// its arguments: those of one argument after the other, the largest first, as
/// long as that gains, then random ones. `program` becomes the one with the
/// shortest plan, as `planOf` left it; the given one where no other is shorter.
/// `keep` is called whenever the plan that was just made is the shortest so
/// far. `program` was loaded with its text. Fails where no annotation has a
/// plan.
Result<ShardingChoice> chooseShardings(LoadedProgram &program, uint64_t most,
                                       uint64_t seed, const PlanOf &planOf,
                                       const std::function<void()> &keep);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PLAN_CHOOSESHARDINGS_H
