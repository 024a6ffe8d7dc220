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

/// A product with a sparse matrix S that a launch computes, for a library that
/// can do so too. S lies row after row, each with its columns (CSR).
struct SparseProduct {
  enum Kind : uint32_t {
    Vector,  ///< second += S * first, which are vectors
    Matrix,  ///< second += S * first, which are matrices
    Sampled, ///< S += first * second, matrices, where S has entries
  };
  /// Memory without gaps; matrices lie row after row.
  struct Operand {
    uint32_t argument = 0; ///< the launch's argument that is the address
    uint64_t offset = 0;   ///< from there to the first element, in elements
    bool operator==(const Operand &) const = default;
  };
  uint32_t kind = Vector;
  /// The matrix that is stored is the transposed one.
  bool isFirstTurned = false, isSecondTurned = false;
  ElementType indices = ElementType::I32; ///< of positions, too
  ElementType factors = ElementType::F32; ///< of S and first
  ElementType sums = ElementType::F32;    ///< of second; of Sampled, all are so
  uint64_t rows = 0, columns = 0, entries = 0; ///< of S
  uint64_t breadth = 1; ///< columns of second; of Sampled, the terms of a sum
  Operand positions, index, values, first, second;
  bool operator==(const SparseProduct &) const = default;
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_MATRIXPRODUCT_H
