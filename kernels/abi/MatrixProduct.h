// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_MATRIXPRODUCT_H
#define MGPU_KERNELS_ABI_MATRIXPRODUCT_H

#include "support/Types.h"

#include <array>

namespace mgpu::kernels {

/// How many algorithms a library is asked for.
inline constexpr uint32_t mostProductChoices = 8;

/// C += A * B, or C = A * B, `batch` times: what a launch of a matrix product
/// computes, for a library that can do the same.
struct MatrixProduct {
  /// Rows of contiguous elements; all figures are in elements.
  struct Matrix {
    uint32_t argument = 0; ///< the launch's argument that is the address
    uint64_t offset = 0;   ///< from there to the first element
    uint64_t rowStride = 0, batchStride = 0;
    bool operator==(const Matrix &) const = default;
  };
  ElementType factors = ElementType::F32; ///< of A and B
  ElementType sums = ElementType::F32;    ///< of C
  uint64_t m = 0, n = 0, k = 0, batch = 1;
  std::array<Matrix, 3> matrices; ///< A, m x k; B, k x n or n x k; C, m x n
  bool overwrites = false;        ///< what C held does not count
  bool isTurned = false;          ///< B is stored as its transpose, n x k
  /// Which of the library's algorithms, by its own order, the best first.
  uint32_t choice = 0;
  bool operator==(const MatrixProduct &) const = default;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_MATRIXPRODUCT_H
