// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_LOWER_SUBGROUPMATRIX_H
#define MGPU_KERNELS_LOWER_SUBGROUPMATRIX_H

// Matrices that a subgroup holds together (!gpu.mma_matrix). Each lane holds
// as many elements as any other, where the `mma.sync` instructions of PTX want
// them ("Matrix Fragments" of the PTX ISA), on every target: so what the
// gpu dialect leaves open, which lane has which element, is the same on the
// host and on a GPU.

#include "support/Types.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace mgpu::kernels {

/// A row and a column, or steps along them.
struct MatrixPlace {
  int64_t row = 0, column = 0;
};

/// Where the elements of a matrix are. Lane 4 g + t holds, as its element k,
/// the one at first[k] + g * group + t * quad.
struct MatrixLayout {
  llvm::SmallVector<MatrixPlace> first;
  MatrixPlace group, quad;
  /// The size of `mma.sync`'s tiles of this matrix (A, B or C). A lane has
  /// `perTile` elements of each, row by row.
  int64_t tileRows = 0, tileColumns = 0, perTile = 0;
  /// The matrix is held as its transpose, with A and B in each other's place:
  /// a product of 8 x 32 is one of 32 x 8.
  bool isTurned = false;

  int64_t numElements() const { return int64_t(first.size()); }
};

/// The layout of a matrix, or why there is none.
std::optional<MatrixLayout> layoutOf(mlir::gpu::MMAMatrixType type,
                                     std::string *reason = nullptr);

/// The type of an element where signs are the operation's: i8 for si8 and ui8.
mlir::Type storedElement(mlir::gpu::MMAMatrixType type);

/// Whether the kernel has operations on such matrices.
bool usesSubgroupMatrices(mlir::ModuleOp module);

/// Fails, with a diagnostic at the operation, where one on such matrices is not
/// one that both targets have: types and shapes, memory of another type, a
/// block that is not of whole subgroups.
mlir::LogicalResult checkSubgroupMatrices(mlir::ModuleOp module, Dim3 block);

/// Replaces them by host code, for @entry, without calls: a matrix is a vector
/// of the lane's elements, and a product goes through workgroup memory. Each
/// element adds its products in order of k to what it held; in f32 for f16,
/// rounded once at the end where C is f16, and for f32, whose A and B are
/// rounded to tf32 first, to nearest, ties away from zero.
void lowerSubgroupMatrices(mlir::ModuleOp module, Dim3 block);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_LOWER_SUBGROUPMATRIX_H
