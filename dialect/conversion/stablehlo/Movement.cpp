// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations that move elements to places known beforehand.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

/// Dimension k of the operand goes to dimension `dimensions[k]` of the result;
/// one of size 1 is repeated along it.
static LogicalResult lowerBroadcastInDim(Lowering &low, BroadcastInDimOp op) {
  RankedTensorType type = signlessTensor(op.getResult());
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  ArrayRef<int64_t> dimensions = op.getBroadcastDimensions();
  if (from.getRank() == 0 && type.getRank() == 0) {
    if (Value number = low.number(op.getOperand()))
      low.setNumber(op.getResult(), number);
    else
      low.set(op.getResult(), low[op.getOperand()]);
    return success();
  }
  Operation *source = op.getOperand().getDefiningOp();
  TypedAttr splat = source ? splatOf(source) : TypedAttr();
  if (splat) {
    low.set(op.getResult(),
            arith::ConstantOp::create(
                low.b, SplatElementsAttr::get(type, Attribute(splat))));
    return success();
  }
  if (from.getRank() == 0) {
    low.set(op.getResult(), low.filled(type, op.getOperand()));
    return success();
  }
  SmallVector<AffineExpr> places;
  for (auto [k, dimension] : llvm::enumerate(dimensions))
    places.push_back(from.getDimSize(k) == 1 && type.getDimSize(dimension) != 1
                         ? low.b.getAffineConstantExpr(0)
                         : low.dim(dimension));
  unsigned rank = type.getRank();
  Generic of;
  of.parallel = rank;
  of.inputs = {low[op.getOperand()]};
  of.inits = {low.empty(type)};
  of.maps = {AffineMap::get(rank, 0, places, low.b.getContext()),
             low.b.getMultiDimIdentityMap(rank)};
  low.set(op.getResult(),
          low.generic(of, [](ImplicitLocOpBuilder &, ValueRange in) {
            return SmallVector<Value>{in[0]};
          })[0]);
  return success();
}

static LogicalResult lowerReshape(Lowering &low, ReshapeOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  if (Value number = low.number(op.getOperand());
      number && type.getRank() == 0) {
    low.setNumber(op.getResult(), number);
    return success();
  }
  low.set(op.getResult(), low.reshaped(low[op.getOperand()], type.getShape()));
  return success();
}

static LogicalResult lowerTranspose(Lowering &low, TransposeOp op) {
  low.set(op.getResult(),
          low.transposed(low[op.getOperand()], op.getPermutation()));
  return success();
}

static LogicalResult lowerSlice(Lowering &low, SliceOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  low.set(op.getResult(), low.sliced(low[op.getOperand()], op.getStartIndices(),
                                     type.getShape(), op.getStrides()));
  return success();
}

static LogicalResult lowerPad(Lowering &low, PadOp op) {
  low.set(op.getResult(),
          low.padded(low[op.getOperand()], op.getPaddingValue(),
                     op.getEdgePaddingLow(), op.getEdgePaddingHigh(),
                     op.getInteriorPadding()));
  return success();
}

static LogicalResult lowerReverse(Lowering &low, ReverseOp op) {
  low.set(op.getResult(),
          low.reversed(low[op.getOperand()], op.getDimensions()));
  return success();
}

/// Lowers an operation that gives its operands.
static LogicalResult lowerIdentity(Lowering &low, Operation *op) {
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    if (Value number = low.number(operand))
      low.setNumber(result, number);
    else
      low.set(result, low[operand]);
  }
  return success();
}

/// Parts of one number become a dimension, the lowest bits first, or come from
/// one.
static LogicalResult lowerBitcast(Lowering &low, BitcastConvertOp op) {
  auto from = signlessTensor(op.getOperand());
  auto to = signlessTensor(op.getResult());
  Type narrow = from.getElementType(), wide = to.getElementType();
  if (from.getRank() == to.getRank()) {
    ScalarBuilder build = findScalarBuilder(op->getName());
    low.set(op.getResult(),
            low.elementwise(to, low[op.getOperand()],
                            [&](ImplicitLocOpBuilder &b, ValueRange in) {
                              return SmallVector<Value>{
                                  applied(build, {b, op, llvm::to_vector(in)})};
                            }));
    return success();
  }
  bool joins = from.getRank() > to.getRank();
  if (!joins)
    std::swap(narrow, wide);
  unsigned have = narrow.getIntOrFloatBitWidth();
  unsigned want = wide.getIntOrFloatBitWidth();
  Value input = low[op.getOperand()];
  low.set(
      op.getResult(),
      low.computed(to, [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
        Type part = b.getIntegerType(have), whole = b.getIntegerType(want);
        if (!joins) {
          Value number = tensor::ExtractOp::create(b, input, point.drop_back());
          number = arith::BitcastOp::create(b, whole, number);
          Value shift = arith::IndexCastOp::create(b, whole, point.back());
          Value width =
              arith::ConstantOp::create(b, b.getIntegerAttr(whole, have));
          number = arith::ShRUIOp::create(
              b, number, arith::MulIOp::create(b, shift, width).getResult());
          number = arith::TruncIOp::create(b, part, number);
          return arith::BitcastOp::create(b, narrow, number);
        }
        Value sum;
        for (unsigned k = 0; k < want / have; ++k) {
          SmallVector<Value> at = llvm::to_vector(point);
          at.push_back(arith::ConstantIndexOp::create(b, k));
          Value number = tensor::ExtractOp::create(b, input, at);
          number = arith::BitcastOp::create(b, part, number);
          number = arith::ExtUIOp::create(b, whole, number);
          Value shift =
              arith::ConstantOp::create(b, b.getIntegerAttr(whole, k * have));
          number = arith::ShLIOp::create(b, number, shift);
          sum = sum ? arith::OrIOp::create(b, sum, number).getResult() : number;
        }
        return arith::BitcastOp::create(b, wide, sum);
      }));
  return success();
}

ArrayRef<NamedFamily> movementFamily() {
  static const NamedFamily all[] = {
      family<BroadcastInDimOp, lowerBroadcastInDim>(),
      family<ReshapeOp, lowerReshape>(),
      family<TransposeOp, lowerTranspose>(),
      family<SliceOp, lowerSlice>(),
      family<PadOp, lowerPad>(),
      family<ReverseOp, lowerReverse>(),
      family<BitcastConvertOp, lowerBitcast>(),
      {"stablehlo.optimization_barrier", lowerIdentity},
      {"mhlo.copy", lowerIdentity},
  };
  return all;
}

} // namespace mgpu::conversion
