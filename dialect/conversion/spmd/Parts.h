// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_SPMD_PARTS_H
#define MGPU_DIALECT_CONVERSION_SPMD_PARTS_H

// How layouts cut tensors, and the sizes and places of a device's part.

#include "dialect/spmd/SpmdDialect.h"

#include "mlir/IR/Builders.h"

namespace mgpu::conversion {

/// Axes of a mesh.
using Axes = llvm::SmallVector<int64_t, 2>;

/// How a dimension is cut.
struct Cut {
  Axes axes;
  /// Where parts begin, and where the last one ends; empty where they are as
  /// equal as they can be.
  llvm::SmallVector<int64_t> bounds;
  /// Elements before and behind a part that a device holds too.
  int64_t low = 0, high = 0;

  bool hasHalo() const { return low != 0 || high != 0; }
  bool operator==(const Cut &) const = default;
};

/// How `layout` cuts each dimension.
llvm::SmallVector<Cut> cutsOf(spmd::LayoutAttr layout);
spmd::LayoutAttr layoutOfCuts(mlir::MLIRContext *context,
                              llvm::ArrayRef<int64_t> mesh,
                              llvm::ArrayRef<Cut> cuts);
/// In equal parts, as far as they can be.
spmd::LayoutAttr layoutOfCuts(mlir::MLIRContext *context,
                              llvm::ArrayRef<int64_t> mesh,
                              llvm::ArrayRef<Axes> cuts);
/// The bounds of `parts` parts that are as equal as they can be.
llvm::SmallVector<int64_t> equalBounds(int64_t size, int64_t parts);

/// How many devices there are along `axes`.
int64_t countAlong(llvm::ArrayRef<int64_t> mesh, llvm::ArrayRef<int64_t> axes);

/// The groups of devices that differ along `axes` alone. A device's rank is its
/// place along them, row-major in the order of `axes`.
std::vector<std::vector<int64_t>> membersAlong(llvm::ArrayRef<int64_t> mesh,
                                               llvm::ArrayRef<int64_t> axes);
mlir::ArrayAttr groupsAlong(mlir::Builder &b, llvm::ArrayRef<int64_t> mesh,
                            llvm::ArrayRef<int64_t> axes);

/// The rank of the device that runs this in its group along `axes` of a mesh
/// that begins at device `first`.
mlir::Value rankAlong(mlir::OpBuilder &b, mlir::Location loc,
                      llvm::ArrayRef<int64_t> mesh,
                      llvm::ArrayRef<int64_t> axes, int64_t first = 0);

/// Part `rank` of `parts` of dimension `dim`, whose size is static.
mlir::Value sliceOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                    unsigned dim, mlir::Value rank, int64_t parts);

/// The slice of parts that are elements `begin` to `end` each.
mlir::Value sliceOf(mlir::OpBuilder &b, mlir::Location loc, mlir::Value tensor,
                    unsigned dim, mlir::Value rank,
                    llvm::ArrayRef<std::pair<int64_t, int64_t>> ranges);

/// Where part `rank` of `parts` of `size` elements begins. Parts have the same
/// size; where they cannot, the first ones have one element more.
mlir::Value beginOfPart(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value rank, int64_t size, int64_t parts);

/// The number that device `rank` has of `values`.
mlir::OpFoldResult valueOfRank(mlir::OpBuilder &b, mlir::Location loc,
                               mlir::Value rank,
                               llvm::ArrayRef<int64_t> values);

/// The sizes of a device's part of a tensor of shape `full`.
llvm::SmallVector<mlir::OpFoldResult> sizesOfPart(mlir::OpBuilder &b,
                                                  mlir::Location loc,
                                                  llvm::ArrayRef<int64_t> full,
                                                  spmd::LayoutAttr layout);

/// A tensor of undefined elements: a device's part of one of shape `full`.
mlir::Value emptyPart(mlir::OpBuilder &b, mlir::Location loc,
                      llvm::ArrayRef<int64_t> full, mlir::Type element,
                      spmd::LayoutAttr layout);

/// Bytes of a tensor of shape `shape` with elements as those of `type`.
int64_t bytesOf(mlir::RankedTensorType type, llvm::ArrayRef<int64_t> shape);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_SPMD_PARTS_H
