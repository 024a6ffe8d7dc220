// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_DIVISORS_H
#define MGPU_KERNELS_CUDA_DIVISORS_H

// How far the place of an access is aligned, in elements, as far as the text of
// a kernel shows it. A divisor D of a value says that the value is a multiple
// of the smaller of D and the power of two in MGPU_VECTOR. Where a thread is
// MGPU_VECTOR threads of the source, the value is that of the first of them.

#include "mlir/IR/Value.h"

#include <cstdint>

namespace mgpu::kernels::cuda {

/// No thread accesses more elements at once than this.
inline constexpr uint32_t mostDivisor = 16;

/// The largest power of two up to mostDivisor that divides the number.
uint32_t divisorOf(int64_t number);
/// Finds a divisor of an integer value. Ids along x are multiples of
/// MGPU_VECTOR, and values made of them and of constants follow. 1 where
/// nothing is known.
uint32_t divisorOf(mlir::Value value);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_DIVISORS_H
