// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constants, numbers in a row, and parts one after the other, which often are
// constants.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/Matchers.h"

namespace mgpu::conversion {

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

} // namespace mgpu::conversion
