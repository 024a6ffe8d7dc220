// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/cost/LeastSquares.h"

#include <cmath>

namespace mgpu::planner {

std::vector<double> solvePositive(std::vector<double> matrix,
                                  std::vector<double> right) {
  size_t n = right.size();
  for (size_t i = 0; i < n; ++i) {
    double *row = &matrix[i * n];
    for (size_t j = 0; j <= i; ++j) {
      const double *other = &matrix[j * n];
      double sum = row[j];
      for (size_t k = 0; k < j; ++k)
        sum -= row[k] * other[k];
      if (j < i)
        row[j] = sum / other[j];
      else if (!(sum > 0))
        return {};
      else
        row[i] = std::sqrt(sum);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k)
      right[i] -= matrix[i * n + k] * right[k];
    right[i] /= matrix[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k)
      right[i] -= matrix[k * n + i] * right[k];
    right[i] /= matrix[i * n + i];
  }
  return right;
}

std::vector<double> ridgeFit(std::span<const double> rows, size_t width,
                             std::span<const double> values, double ridge) {
  std::vector<double> matrix(width * width, 0), right(width, 0);
  for (size_t i = 0; i < width; ++i)
    matrix[i * width + i] = ridge;
  for (size_t r = 0; r < values.size(); ++r) {
    const double *row = &rows[r * width];
    for (size_t i = 0; i < width; ++i) {
      right[i] += row[i] * values[r];
      for (size_t j = 0; j <= i; ++j)
        matrix[i * width + j] += row[i] * row[j];
    }
  }
  return solvePositive(std::move(matrix), std::move(right));
}

} // namespace mgpu::planner
