// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_FEWVECTORS_H
#define MGPU_DIALECT_CONVERSION_FEWVECTORS_H

#include "mlir/IR/Types.h"

#include <cstdint>

namespace mgpu::conversion {

/// How many vectors are few in a product with a matrix, and the elements from
/// which on the matrix is large.
inline constexpr int64_t mostVectors = 16, leastMatrix = 1 << 16;

/// How many are few where the factors are of this type: beyond 4 of f16 or
/// bf16, tensor cores are predicted to take less time than threads
/// (docs/decisions.md).
inline int64_t mostVectorsOf(mlir::Type factor) {
  return factor.isF16() || factor.isBF16() ? 4 : mostVectors;
}

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_FEWVECTORS_H
