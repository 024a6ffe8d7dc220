// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_COST_TABLES_H
#define MGPU_PLANNER_COST_TABLES_H

// Tables of measured times, as text. The columns say what was measured:
//   arch,op,groups,gpus_per_group,bytes,time_us
//   arch,b,m,n,k,types,flops_per_s
// arch is sm_90 or sm_100_NAME; op is all_gather, all_reduce, all_to_all,
// reduce_scatter, permute_ring or permute_pairs; bytes is the larger side of
// the operation; types is bf16xbf16->bf16 or f32xf32->f32.

#include "support/Result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::planner {

enum class CollectiveOp : uint8_t {
  AllGather,
  AllReduce,
  AllToAll,
  ReduceScatter,
  PermuteRing,
  PermutePairs,
};
std::string_view toString(CollectiveOp op);

struct CollectiveRow {
  uint32_t architecture = 0; ///< 90
  CollectiveOp op = CollectiveOp::AllReduce;
  uint32_t ranks = 0;
  double bytes = 0, us = 0;
};

struct MatmulRow {
  uint32_t architecture = 0;
  bool isBf16 = true; ///< else f32, computed as TF32
  double batch = 1, m = 0, n = 0, k = 0, us = 0;
};

/// Errors name `source` and the line. Fields must be above 0.
Result<std::vector<CollectiveRow>> parseCollectives(std::string_view text,
                                                    const std::string &source);
Result<std::vector<MatmulRow>> parseMatmuls(std::string_view text,
                                            const std::string &source);
Result<std::vector<CollectiveRow>> readCollectives(const std::string &path);
Result<std::vector<MatmulRow>> readMatmuls(const std::string &path);

// Small dense fits, for models of a few hundred numbers.

/// x of A x = b, A symmetric and positive definite, row by row (Cholesky).
/// Empty when A is not positive definite to rounding.
std::vector<double> solvePositive(std::vector<double> matrix,
                                  std::vector<double> right);

/// w that minimises sum((rows w - values)^2) + ridge |w|^2; `rows` has one row
/// of `width` numbers per value.
std::vector<double> ridgeFit(std::span<const double> rows, size_t width,
                             std::span<const double> values, double ridge);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_COST_TABLES_H
