// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_LEASTSQUARES_H
#define MGPU_PLANNER_COST_LEASTSQUARES_H

// Small dense fits, for models of a few hundred numbers.

#include <span>
#include <vector>

namespace mgpu::planner {

/// x of A x = b, A symmetric and positive definite, row by row (Cholesky).
/// Empty when A is not positive definite to rounding.
std::vector<double> solvePositive(std::vector<double> matrix,
                                  std::vector<double> right);

/// w that minimises sum((rows w - values)^2) + ridge |w|^2; `rows` has one row
/// of `width` numbers per value.
std::vector<double> ridgeFit(std::span<const double> rows, size_t width,
                             std::span<const double> values, double ridge);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_LEASTSQUARES_H
