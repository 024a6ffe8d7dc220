// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_FEWVECTORS_H
#define MGPU_DIALECT_CONVERSION_FEWVECTORS_H

#include <cstdint>

namespace mgpu::conversion {

/// How many vectors are few in a product with a matrix, and the elements from
/// which on the matrix is large.
inline constexpr int64_t mostVectors = 16, leastMatrix = 1 << 16;

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_FEWVECTORS_H
