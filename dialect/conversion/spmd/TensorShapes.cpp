// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/TensorShapes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

namespace mgpu::conversion {

using namespace mlir;

Value transposedTensor(OpBuilder &b, Location loc, Value input,
                       ArrayRef<int64_t> order) {
  if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
    return input;
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape =
      llvm::map_to_vector(order, [&](int64_t k) { return type.getDimSize(k); });
  Value init = tensor::EmptyOp::create(b, loc, shape, type.getElementType());
  return linalg::TransposeOp::create(b, loc, input, init, order)->getResult(0);
}

Value reshapedTensor(OpBuilder &b, Location loc, Value input,
                     ArrayRef<int64_t> shape) {
  auto from = cast<RankedTensorType>(input.getType());
  const RankedTensorType to = from.clone(shape);
  if (from == to)
    return input;
  if (from.getNumElements() == 0)
    return tensor::EmptyOp::create(b, loc, shape, from.getElementType());
  if (auto groups = getReassociationIndicesForReshape(from, to)) {
    if (from.getRank() > to.getRank())
      return tensor::CollapseShapeOp::create(b, loc, to, input, *groups);
    return tensor::ExpandShapeOp::create(b, loc, to, input, *groups);
  }
  // Through a tensor of one dimension.
  return reshapedTensor(
      b, loc, reshapedTensor(b, loc, input, {from.getNumElements()}), shape);
}

} // namespace mgpu::conversion
