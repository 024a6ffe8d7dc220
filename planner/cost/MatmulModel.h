// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_MATMULMODEL_H
#define MGPU_PLANNER_COST_MATMULMODEL_H

// Times of matrix products on tensor cores: a roofline, corrected by what was
// measured. The correction is a polynomial of third degree in the logarithms
// of batch, m, n and k, and in how full the last wave of tiles is; its
// coefficients were fitted to a table of times and are part of the program
// (Fitted.inc), the table is not.

#include "planner/cost/Tables.h"
#include "planner/dag/KernelFacts.h"

#include <span>

namespace mgpu::planner {

/// The rates of a GPU, per microsecond.
struct MatmulRates {
  double flopsPerUs = 0; ///< rate of the element type, dense
  double bytesPerUs = 0; ///< device memory
  double smCount = 0;
};

/// That of a row of a table, whose matrices are all of one type.
Product productOf(const MatmulRow &row);

/// max(flops / rate, bytes / bandwidth): the baseline, microseconds.
double rooflineUs(const Product &product, const MatmulRates &rates);

class MatmulModel {
public:
  /// Fits the correction to `rows`, all of one architecture and type, measured
  /// on a GPU of `rates`. Rows: 100 and more.
  static MatmulModel fit(std::span<const MatmulRow> rows,
                         const MatmulRates &rates);
  /// The fit shipped for an architecture and type, or null.
  static const MatmulModel *shipped(uint32_t architecture, bool isBf16);
  explicit MatmulModel(std::vector<double> weights)
      : weights(std::move(weights)) {}

  /// Microseconds on a GPU of `rates`. Outside the shapes measured (batch 1 to
  /// 4; m, n, k 256 to 4096) the roofline is corrected as at the nearest one.
  double us(const Product &product, const MatmulRates &rates) const;
  const std::vector<double> &coefficients() const { return weights; }

private:
  std::vector<double> weights;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_MATMULMODEL_H
