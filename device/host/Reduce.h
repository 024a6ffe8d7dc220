// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_REDUCE_H
#define MGPU_DEVICE_HOST_REDUCE_H

// accumulator[i] = accumulator[i] op input[i], in the arithmetic of the type:
//   integers   wrap around; min and max are signed (index too)
//   i1         sum and max are "or", prod and min are "and"; any non-zero byte
//              counts as 1
//   f32, f64   IEEE; f16, bf16 and f8 are computed in float and rounded to
//              nearest even after every step
//   min, max   of floats: NaN if either is NaN (its payload is unspecified),
//              and -0 below +0: MLIR's minimumf and maximumf

#include "support/Types.h"

#include <cstddef>

namespace mgpu::device {

using ReduceFunction = void (*)(std::byte *accumulator, const std::byte *input,
                                size_t count);

/// Addresses need no alignment.
ReduceFunction reduceFunction(ElementType type, ReductionKind kind);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_REDUCE_H
