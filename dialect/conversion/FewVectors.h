// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_FEWVECTORS_H
#define MGPU_DIALECT_CONVERSION_FEWVECTORS_H

#include <cstdint>

namespace mgpu::conversion {

/// Of products of a matrix and vectors: how many vectors are few, and the
/// elements from which on a matrix is large.
inline constexpr int64_t mostVectors = 16, leastMatrix = 1 << 16;

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_FEWVECTORS_H
