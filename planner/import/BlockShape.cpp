// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/BlockShape.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner {

BlockShape::BlockShape(Dim3 grid, Dim3 block, const LaunchWidth &form)
    : threadsAlong{std::max(block.x / form.vector, 1u), block.y, block.z},
      rows(form.rows) {
  constexpr double warp = 32;
  const bool isFree = form.blockX > 0;
  if (isFree)
    threadsAlong = {form.blockX, form.blockY > 0 ? form.blockY : block.y,
                    form.blockZ > 0 ? form.blockZ : block.z};
  const uint32_t along[] = {block.x, block.y, block.z},
                 grids[] = {grid.x, grid.y, grid.z};
  covered = {isFree ? int64_t(form.blockX) * form.vector * form.items
                    : int64_t(block.x) * form.rows * form.items,
             threadsAlong.y, threadsAlong.z};
  for (size_t k = 0; k < 3; ++k) {
    const int64_t extent = int64_t(along[k]) * grids[k];
    blocks *= double((extent + covered[k] - 1) / covered[k]);
    sources[k] =
        std::clamp<int64_t>(covered[k] / along[k], 1, int64_t(grids[k]));
  }
  const double source = double(grid.volume()),
               own = double(block.volume()) / form.vector;
  warpsOfTurn =
      isFree ? std::ceil(source * own / warp) : source * std::ceil(own / warp);
}

} // namespace mgpu::planner
