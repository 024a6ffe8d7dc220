// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_STABLEHLORULES_H
#define MGPU_DIALECT_STABLEHLO_STABLEHLORULES_H

// Rules that the verifiers share. Sizes that are not known agree with all
// others.

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::stablehlo {

using Shape = llvm::SmallVector<int64_t>;

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType()).getShape();
}
inline mlir::Type elementOf(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType()).getElementType();
}
inline bool isDynamic(int64_t size) {
  return mlir::ShapedType::isDynamic(size);
}

inline bool sizesAgree(int64_t left, int64_t right) {
  return left == right || isDynamic(left) || isDynamic(right);
}
bool shapesAgree(llvm::ArrayRef<int64_t> left, llvm::ArrayRef<int64_t> right);

/// Quantized elements agree with all others: how they are converted is not
/// checked.
bool elementsAgree(mlir::Type left, mlir::Type right);

/// Whether a value of type `from` may be combined as one of type `to`: the same
/// kind of number, of the same width or less.
bool isPromotable(mlir::Type from, mlir::Type to);

/// Whether `dims` are different dimensions of a tensor of rank `rank`; `name`
/// is for the message.
mlir::LogicalResult checkDims(mlir::Operation *op, llvm::StringRef name,
                              llvm::ArrayRef<int64_t> dims, int64_t rank);

/// Checks dimensions that must be in ascending order.
mlir::LogicalResult checkSortedDims(mlir::Operation *op, llvm::StringRef name,
                                    llvm::ArrayRef<int64_t> dims, int64_t rank);

/// Whether `name` has `count` numbers.
mlir::LogicalResult checkCount(mlir::Operation *op, llvm::StringRef name,
                               size_t found, size_t count);

mlir::LogicalResult checkScalar(mlir::Operation *op, llvm::StringRef name,
                                mlir::Value value);

/// Whether a result has this shape and, where it is given, element type.
mlir::LogicalResult checkResult(mlir::Operation *op, mlir::Value result,
                                llvm::ArrayRef<int64_t> shape,
                                mlir::Type element = {});

/// How a window moves over a dimension.
struct WindowDim {
  int64_t size = 1, stride = 1, low = 0, high = 0, base = 1, dilation = 1;
};

/// The windows of an operation, one for each of `sizes`: null attributes are
/// the defaults.
mlir::FailureOr<llvm::SmallVector<WindowDim>>
windowOf(mlir::Operation *op, llvm::ArrayRef<int64_t> sizes,
         std::optional<llvm::ArrayRef<int64_t>> strides,
         std::optional<mlir::DenseIntElementsAttr> padding,
         std::optional<llvm::ArrayRef<int64_t>> base,
         std::optional<llvm::ArrayRef<int64_t>> dilation);

/// How many windows a dimension of `size` has.
int64_t windowsIn(int64_t size, const WindowDim &window);

/// Whether a region of one block takes scalars of the given element types and
/// returns scalars of `results`.
mlir::LogicalResult checkComputation(mlir::Operation *op, mlir::Region &region,
                                     llvm::ArrayRef<mlir::Type> arguments,
                                     llvm::ArrayRef<mlir::Type> results);

} // namespace mgpu::stablehlo

#endif // MGPU_DIALECT_STABLEHLO_STABLEHLORULES_H
