// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_REDUCE_H
#define MGPU_DEVICE_HOST_REDUCE_H

// accumulator[i] = accumulator[i] op input[i], in the arithmetic of
// device/api/CollectiveSteps.h.

#include "support/Types.h"

#include <cstddef>

namespace mgpu::device {

using ReduceFunction = void (*)(std::byte *accumulator, const std::byte *input,
                                size_t count);

/// Addresses need no alignment.
ReduceFunction reduceFunction(ElementType type, ReductionKind kind);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_REDUCE_H
