// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Collectives.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mgpu::conversion {

using namespace mlir;

/// A tensor as `input` but for dimension `longer`, which has `size` times as
/// many elements, and `shorter`, which has as many times fewer.
static Value emptyFor(OpBuilder &b, Location loc, Value input, int64_t size,
                      std::optional<unsigned> longer,
                      std::optional<unsigned> shorter) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (shorter)
    shape[*shorter] /= size;
  if (longer)
    shape[*longer] *= size;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, input);
  for (std::optional<unsigned> dim : {longer, shorter})
    if (dim)
      sizes[*dim] = b.getIndexAttr(shape[*dim]);
  return tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
}

Value Collectives::allGather(Value input, unsigned dim) {
  Value init = emptyFor(b, loc, input, size, dim, std::nullopt);
  return spmd::AllGatherOp::create(b, loc, init.getType(), input, init, dim,
                                   groups)
      ->getResult(0);
}

Value Collectives::reduceScatter(Value input, ir::ReductionKind kind,
                                 unsigned dim) {
  Value init = emptyFor(b, loc, input, size, std::nullopt, dim);
  return spmd::ReduceScatterOp::create(b, loc, init.getType(), kind, input,
                                       init, dim, groups)
      ->getResult(0);
}

Value Collectives::allToAll(Value input, unsigned split, unsigned concat) {
  Value init = emptyFor(b, loc, input, size, concat, split);
  return spmd::AllToAllOp::create(b, loc, init.getType(), input, init, split,
                                  concat, groups)
      ->getResult(0);
}

Value Collectives::broadcast(Value input, int64_t root) {
  Value init = emptyFor(b, loc, input, size, std::nullopt, std::nullopt);
  return spmd::BroadcastOp::create(b, loc, init.getType(), input, init, root,
                                   groups)
      ->getResult(0);
}

Value Collectives::allReduce(Value input, ir::ReductionKind kind) {
  return spmd::AllReduceOp::create(b, loc, input.getType(), kind, input, input,
                                   groups)
      ->getResult(0);
}

Value permute(OpBuilder &b, Location loc, Value input, ArrayAttr pairs) {
  Value init = emptyFor(b, loc, input, 1, std::nullopt, std::nullopt);
  return spmd::PermuteOp::create(b, loc, init.getType(), input, init, pairs)
      ->getResult(0);
}

} // namespace mgpu::conversion
