// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/TimesRun.h"

#include "planner/import/Conditions.h"

using namespace mlir;

namespace mgpu::planner {

double timesRun(Region &region, Region &body, AffineEvaluator &affine) {
  Conditions conditions(affine);
  SmallVector<scf::ForOp> loops;
  for (Region *inner = &region; inner != &body;
       inner = inner->getParentRegion())
    if (auto loop = dyn_cast<scf::ForOp>(inner->getParentOp()))
      loops.push_back(loop);
  conditions.requireAround(region, body);
  double times = 1;
  for (scf::ForOp loop : loops)
    times *= conditions.trips(loop);
  return times * conditions.share();
}

} // namespace mgpu::planner
