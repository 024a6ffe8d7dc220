// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_SPACE_ERRORSEEDS_H
#define MGPU_KERNELS_SPACE_ERRORSEEDS_H

// Kernels that show how far off their results may be take one argument more
// (kernels/host/ErrorBounds.h): the seed of a run, 0 for results as they are.

#include "planner/dag/Dag.h"

namespace mgpu::kernels {

/// Runs that together tell the size of errors: each moves the same stored
/// numbers, in other directions.
inline constexpr unsigned numErrorTrials = 8;

/// By how many deviations of its error a number is moved. A result depends on
/// many numbers whose errors are independent. The largest movement of it in the
/// trials then is less than the error of another run for three results in a
/// million, where each of these errors is even up to its bound
/// (docs/numerics.md).
inline constexpr double errorDeviations = 4;

/// Launches of one `salt` move in the same directions.
constexpr uint64_t errorSeed(unsigned trial, uint64_t salt) {
  return uint64_t(trial + 1) | salt << 8;
}

/// `dag` with such kernels: each launch with a salt of its own. No trial: with
/// nothing moved.
planner::Dag withErrorSeeds(planner::Dag dag, std::optional<unsigned> trial);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_SPACE_ERRORSEEDS_H
