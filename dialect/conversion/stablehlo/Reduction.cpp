// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of whole dimensions, and maps.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

/// `inputs` without `dimensions`.
static SmallVector<Value> reduced(Lowering &low, ReduceOp op,
                                  ArrayRef<Value> inputs,
                                  ArrayRef<int64_t> dimensions) {
  auto from = cast<RankedTensorType>(inputs[0].getType());
  Generic of;
  of.inputs = llvm::to_vector(inputs);
  unsigned kept = from.getRank() - dimensions.size();
  of.parallel = kept;
  of.reduction = dimensions.size();
  // The points: dimensions that stay, then those that are reduced.
  SmallVector<AffineExpr> places(from.getRank()), out;
  SmallVector<int64_t> shape;
  unsigned nextReduced = kept;
  for (int64_t k = 0; k < from.getRank(); ++k) {
    if (llvm::is_contained(dimensions, k)) {
      places[k] = low.dim(nextReduced++);
      continue;
    }
    places[k] = low.dim(shape.size());
    out.push_back(places[k]);
    shape.push_back(from.getDimSize(k));
  }
  MLIRContext *context = low.b.getContext();
  of.maps.append(of.inputs.size(),
                 AffineMap::get(from.getRank(), 0, places, context));
  of.maps.append(of.inputs.size(),
                 AffineMap::get(from.getRank(), 0, out, context));
  for (auto [init, result] : llvm::zip(op.getInitValues(), op.getResults()))
    of.inits.push_back(low.filled(signlessTensor(result).clone(shape), init));
  size_t count = of.inputs.size();
  auto combine = [&](ImplicitLocOpBuilder &b, ValueRange elements) {
    SmallVector<Value> arguments = llvm::to_vector(elements.drop_front(count));
    llvm::append_range(arguments, elements.take_front(count));
    return low.inlined(b, op.getBody(), arguments);
  };
  return low.generic(of, combine);
}

/// How many of the last dimensions are reduced as rows of their own, as in the
/// sums of a batch norm: a dimension before them stays, one before that does
/// not, and they are long. The order is free, and sums begin with zero.
static unsigned numRowDimensions(ReduceOp op) {
  constexpr int64_t least = 32;
  auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
  Operation *body = &op.getBody().front().front();
  Type element = from.getElementType();
  if (op.getInputs().size() != 1 || !isa<AddOp>(body) ||
      !(element.isF32() || element.isF64()) ||
      body->getNextNode() != op.getBody().front().getTerminator())
    return 0;
  Operation *init = op.getInitValues()[0].getDefiningOp();
  auto zero =
      dyn_cast_if_present<FloatAttr>(init ? splatOf(init) : TypedAttr());
  auto arguments = op.getBody().front().getArguments();
  if (!zero || !zero.getValue().isZero() ||
      !llvm::equal(body->getOperands(), ValueRange(arguments)) ||
      body->getBlock()->getTerminator()->getOperand(0) != body->getResult(0))
    return 0;
  unsigned count = 0;
  int64_t length = 1;
  for (int64_t k = from.getRank(); k-- > 0; ++count) {
    if (!llvm::is_contained(op.getDimensions(), k))
      break;
    length *= from.getDimSize(k);
  }
  return count < op.getDimensions().size() && length >= least ? count : 0;
}

static LogicalResult lowerReduce(Lowering &low, ReduceOp op) {
  if (failed(checkScalars(op.getBody())))
    return failure();
  SmallVector<Value> values = low.all(op.getInputs());
  SmallVector<int64_t> dimensions = llvm::to_vector(op.getDimensions());
  if (const unsigned count = numRowDimensions(op)) {
    auto type = cast<RankedTensorType>(values[0].getType());
    const int64_t rank = type.getRank();
    SmallVector<int64_t> rows = llvm::to_vector(type.getShape());
    for (unsigned k = 1; k < count; ++k) {
      const int64_t size = rows.pop_back_val();
      rows.back() *= size;
    }
    values = reduced(low, op, low.reshaped(values[0], rows), rank - count);
    llvm::erase_if(dimensions, [&](int64_t k) { return k >= rank - count; });
  }
  low.setAll(op.getResults(), reduced(low, op, values, dimensions));
  return success();
}

static LogicalResult lowerMap(Lowering &low, MapOp op) {
  if (failed(checkScalars(op.getComputation())))
    return failure();
  low.set(op.getResult(),
          low.elementwise(signlessTensor(op.getResult()),
                          low.all(op.getInputs()),
                          [&](ImplicitLocOpBuilder &b, ValueRange in) {
                            return low.inlined(b, op.getComputation(), in);
                          }));
  return success();
}

ArrayRef<NamedFamily> reductionFamily() {
  static const NamedFamily all[] = {
      family<ReduceOp, lowerReduce>(),
      family<MapOp, lowerMap>(),
  };
  return all;
}

} // namespace mgpu::conversion
