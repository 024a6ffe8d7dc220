// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations that move elements to places known beforehand.
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/Matchers.h"

namespace mgpu::conversion {

// Constants, numbers in a row, and parts one after the other, which often are
// constants.

using namespace mlir;
using namespace mgpu::stablehlo;

TypedAttr signlessElements(ElementsAttr value) {
  auto type = cast<RankedTensorType>(signless(value.getShapedType()));
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || type == dense.getType())
    return dense;
  Type element = dense.getElementType();
  if (isNarrow(element))
    return cast<DenseIntElementsAttr>(dense).mapValues(
        type.getElementType(),
        [&](const llvm::APInt &number) { return inMemory(number, element); });
  return DenseElementsAttr::getFromRawBuffer(type, dense.getRawData());
}

TypedAttr splatOf(Operation *op) {
  auto constant = dyn_cast<ConstantOp>(op);
  if (!constant)
    return {};
  auto splat = dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat)
    return {};
  Type type = signless(splat.getElementType());
  OpBuilder b(op->getContext());
  if (isa<FloatType>(type))
    return b.getFloatAttr(type, splat.getSplatValue<APFloat>());
  if (isa<IntegerType>(type))
    return b.getIntegerAttr(
        type, inMemory(splat.getSplatValue<APInt>(), splat.getElementType()));
  return {};
}

static LogicalResult lowerConstant(Lowering &low, ConstantOp op) {
  TypedAttr splat = splatOf(op);
  if (splat && cast<ShapedType>(op.getType()).getRank() == 0) {
    low.setNumber(op.getResult(), arith::ConstantOp::create(low.b, splat));
    return success();
  }
  TypedAttr elements = signlessElements(op.getValue());
  if (!elements)
    return refuse(op) << "has elements that are not in the file; export the "
                         "program with its constants";
  low.set(op.getResult(), arith::ConstantOp::create(low.b, elements));
  return success();
}

static LogicalResult lowerIota(Lowering &low, IotaOp op) {
  RankedTensorType type = signlessTensor(op.getResult());
  Type element = type.getElementType();
  uint64_t dimension = op.getIotaDimension();
  auto number = [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
    Value i = point[dimension];
    if (isa<IntegerType>(element))
      return wrapped(b, arith::IndexCastOp::create(b, element, i),
                     getElementTypeOrSelf(op.getResult().getType()));
    i = arith::IndexCastOp::create(b, b.getI64Type(), i);
    return arith::SIToFPOp::create(b, element, i);
  };
  low.set(op.getResult(), low.computed(type, number));
  return success();
}

/// The elements of a few constants in a row along `dimension`; null where a
/// part is not constant. Starts of gathers are written so.
static TypedAttr joinedConstants(ValueRange parts, RankedTensorType type,
                                 uint64_t dimension) {
  constexpr int64_t most = 256;
  if (type.getNumElements() == 0 || type.getNumElements() > most)
    return {};
  SmallVector<SmallVector<Attribute>> elements;
  for (Value part : parts) {
    DenseElementsAttr dense;
    if (!matchPattern(part, m_Constant(&dense)))
      return {};
    elements.emplace_back(llvm::to_vector(dense.getValues<Attribute>()));
  }
  int64_t outer = 1;
  for (int64_t size : type.getShape().take_front(dimension))
    outer *= size;
  SmallVector<Attribute> all;
  for (int64_t k = 0; k < outer; ++k)
    for (ArrayRef<Attribute> part : elements) {
      size_t run = part.size() / size_t(outer);
      llvm::append_range(all, part.slice(size_t(k) * run, run));
    }
  return DenseElementsAttr::get(type, all);
}

static LogicalResult lowerConcatenate(Lowering &low, ConcatenateOp op) {
  SmallVector<Value> parts = low.all(op.getInputs());
  RankedTensorType type = signlessTensor(op.getResult());
  if (TypedAttr known = joinedConstants(parts, type, op.getDimension())) {
    low.set(op.getResult(), arith::ConstantOp::create(low.b, known));
    return success();
  }
  Value whole =
      parts.size() == 1
          ? parts[0]
          : tensor::ConcatOp::create(low.b, type, op.getDimension(), parts)
                .getResult();
  low.set(op.getResult(), whole);
  return success();
}

ArrayRef<NamedFamily> constantFamily() {
  static const NamedFamily all[] = {
      family<ConstantOp, lowerConstant>(),
      family<IotaOp, lowerIota>(),
      family<ConcatenateOp, lowerConcatenate>(),
  };
  return all;
}

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
