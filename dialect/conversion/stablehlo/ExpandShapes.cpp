// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations whose shapes are operands, where these are constants or the result
// says them; and others that are a broadcast or a gather.
#include "dialect/conversion/stablehlo/Expansion.h"
#include "dialect/stablehlo/Companions.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/Sequence.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

using Values = FailureOr<SmallVector<Value>>;

namespace {

/// The elements of a constant; none where it is not one.
std::optional<SmallVector<int64_t>> numbersOf(Value value) {
  DenseIntElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)))
    return std::nullopt;
  return llvm::map_to_vector(
      elements.getValues<APInt>(),
      [](const APInt &each) { return each.getSExtValue(); });
}

bool isStatic(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape();
}

/// Whether `shape`, if it is a constant, is that of the result.
LogicalResult checkShape(Operation *op, Value shape) {
  auto numbers = numbersOf(shape);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  if (numbers && ArrayRef<int64_t>(*numbers) != type.getShape())
    return op->emitOpError("has a result of type ")
           << type << ", which is not the shape of its operand";
  return success();
}

Values expandBroadcastInDim(ImplicitLocOpBuilder &b,
                            DynamicBroadcastInDimOp op) {
  if (!isStatic(op.getResult()) || !isStatic(op.getOperand()))
    return SmallVector<Value>();
  if (failed(checkShape(op, op.getOutputDimensions())))
    return failure();
  return SmallVector<Value>{
      BroadcastInDimOp::create(b, op.getResult().getType(), op.getOperand(),
                               op.getBroadcastDimensions())};
}

Values expandReshape(ImplicitLocOpBuilder &b, DynamicReshapeOp op) {
  if (!isStatic(op.getResult()) || !isStatic(op.getOperand()))
    return SmallVector<Value>();
  if (failed(checkShape(op, op.getOutputShape())))
    return failure();
  return SmallVector<Value>{
      ReshapeOp::create(b, op.getResult().getType(), op.getOperand())};
}

Values expandIota(ImplicitLocOpBuilder &b, DynamicIotaOp op) {
  if (!isStatic(op.getResult()))
    return SmallVector<Value>();
  if (failed(checkShape(op, op.getOutputShape())))
    return failure();
  return SmallVector<Value>{
      IotaOp::create(b, op.getResult().getType(), op.getIotaDimension())};
}

Values expandSize(ImplicitLocOpBuilder &b, GetDimensionSizeOp op) {
  if (!isStatic(op.getOperand()))
    return SmallVector<Value>();
  auto operand = cast<RankedTensorType>(op.getOperand().getType());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  return SmallVector<Value>{ConstantOp::create(
      b, DenseElementsAttr::get(
             type, int32_t(operand.getDimSize(op.getDimension()))))};
}

Values expandPad(ImplicitLocOpBuilder &b, DynamicPadOp op) {
  auto low = numbersOf(op.getEdgePaddingLow());
  auto high = numbersOf(op.getEdgePaddingHigh());
  auto interior = numbersOf(op.getInteriorPadding());
  if (!low || !high || !interior || !isStatic(op.getResult()))
    return SmallVector<Value>();
  return SmallVector<Value>{PadOp::create(b, op.getResult().getType(),
                                          op.getOperand(), op.getPaddingValue(),
                                          *low, *high, *interior)};
}

Values expandSlice(ImplicitLocOpBuilder &b, RealDynamicSliceOp op) {
  auto start = numbersOf(op.getStartIndices());
  auto limit = numbersOf(op.getLimitIndices());
  auto strides = numbersOf(op.getStrides());
  if (!start || !limit || !strides || !isStatic(op.getResult()))
    return SmallVector<Value>();
  return SmallVector<Value>{SliceOp::create(
      b, op.getResult().getType(), op.getOperand(), *start, *limit, *strides)};
}

Values expandGather(ImplicitLocOpBuilder &b, DynamicGatherOp op) {
  auto sizes = numbersOf(op.getSliceSizes());
  if (!sizes || !isStatic(op.getResult()))
    return SmallVector<Value>();
  return SmallVector<Value>{GatherOp::create(
      b, op.getResult().getType(), op.getOperand(), op.getStartIndices(),
      op.getDimensionNumbers(), *sizes, op.getIndicesAreSorted())};
}

Values expandBroadcast(ImplicitLocOpBuilder &b, BroadcastOp op) {
  const int64_t added = op.getBroadcastSizes().size();
  const int64_t rank = cast<RankedTensorType>(op.getType()).getRank();
  return SmallVector<Value>{
      BroadcastInDimOp::create(b, op.getResult().getType(), op.getOperand(),
                               llvm::to_vector(llvm::seq(added, rank)))};
}

/// result[batch, before, place, after] =
/// operand[batch, before, index[batch, place], after]
Values expandIndexSelect(ImplicitLocOpBuilder &b, TorchIndexSelectOp op) {
  auto operand = cast<RankedTensorType>(op.getOperand().getType());
  auto index = cast<RankedTensorType>(op.getIndex().getType());
  auto result = cast<RankedTensorType>(op.getResult().getType());
  const int64_t dim = op.getDim(), batches = op.getBatchDims();
  const int64_t places = index.getRank() - batches;
  SmallVector<int64_t> shape(operand.getShape().take_front(dim));
  if (batches >= 0 && places >= 0 && batches <= dim &&
      dim < operand.getRank()) {
    llvm::append_range(shape, index.getShape().drop_front(batches));
    llvm::append_range(shape, operand.getShape().drop_front(dim + 1));
  }
  if (batches < 0 || places < 0 || batches > dim || dim >= operand.getRank() ||
      operand.getShape().take_front(batches) !=
          index.getShape().take_front(batches) ||
      ArrayRef<int64_t>(shape) != result.getShape())
    return op.emitOpError("cannot select of ")
           << operand << " by " << index << " along dimension " << dim
           << " with " << batches << " batch dimensions";
  SmallVector<int64_t> batch = llvm::to_vector(llvm::seq<int64_t>(0, batches));
  SmallVector<int64_t> offsets = llvm::to_vector(llvm::seq(batches, dim));
  llvm::append_range(offsets, llvm::seq(dim + places, result.getRank()));
  SmallVector<int64_t> sizes(operand.getShape());
  sizes[dim] = 1;
  for (int64_t k : batch)
    sizes[k] = 1;
  auto numbers = GatherDimensionNumbersAttr::get(
      b.getContext(), offsets, {dim}, batch, batch, {dim}, index.getRank());
  return SmallVector<Value>{GatherOp::create(b, result, op.getOperand(),
                                             op.getIndex(), numbers, sizes)};
}

/// Aligned as NumPy does, from the last dimension; or, of the operand of less
/// dimensions, where `dimensions` says.
Value broadcastTo(ImplicitLocOpBuilder &b, Value operand,
                  ArrayRef<int64_t> shape,
                  std::optional<ArrayRef<int64_t>> dimensions) {
  auto type = cast<RankedTensorType>(operand.getType());
  if (type.getShape() == shape)
    return operand;
  const int64_t rank = shape.size();
  SmallVector<int64_t> dims =
      llvm::to_vector(llvm::seq(rank - type.getRank(), rank));
  if (dimensions && int64_t(dimensions->size()) == type.getRank())
    dims = llvm::to_vector(*dimensions);
  return BroadcastInDimOp::create(
      b, RankedTensorType::get(shape, type.getElementType()), operand, dims);
}

} // namespace

Values expandBroadcasting(ImplicitLocOpBuilder &b, Operation *op) {
  Value result = op->getResult(0);
  if (!isStatic(result) || !llvm::all_of(op->getOperands(), isStatic))
    return SmallVector<Value>();
  auto shape = cast<RankedTensorType>(result.getType()).getShape();
  std::optional<ArrayRef<int64_t>> dimensions;
  if (auto given = op->getAttrOfType<DenseI64ArrayAttr>("broadcast_dimensions"))
    dimensions = given.asArrayRef();
  SmallVector<Value> in;
  for (Value each : op->getOperands()) {
    if (cast<RankedTensorType>(each.getType()).getRank() >
        int64_t(shape.size()))
      return op->emitOpError("has an operand of more dimensions than its "
                             "result");
    in.push_back(broadcastTo(b, each, shape, dimensions));
  }
  if (auto compare = dyn_cast<chlo::BroadcastCompareOp>(op)) {
    ComparisonTypeAttr kind;
    if (auto given = compare.getCompareType())
      kind = ComparisonTypeAttr::get(b.getContext(), ComparisonType(*given));
    return SmallVector<Value>{CompareOp::create(
        b, result.getType(), in[0], in[1],
        ComparisonDirection(compare.getComparisonDirection()), kind)};
  }
  // The operation that chlo.broadcast_X broadcasts for is X.
  const StringRef name =
      op->getName().stripDialect().drop_front(StringRef("broadcast_").size());
  for (StringRef dialect : {"stablehlo.", "chlo."})
    if (auto plain = RegisteredOperationName::lookup((dialect + name).str(),
                                                     b.getContext())) {
      OperationState state(b.getLoc(), *plain);
      state.addOperands(in);
      state.addTypes(result.getType());
      return SmallVector<Value>{b.create(state)->getResult(0)};
    }
  return SmallVector<Value>();
}

ArrayRef<NamedExpansion> shapeExpansions() {
  static const NamedExpansion all[] = {
      expansion<DynamicBroadcastInDimOp, expandBroadcastInDim>(),
      expansion<DynamicReshapeOp, expandReshape>(),
      expansion<DynamicIotaOp, expandIota>(),
      expansion<GetDimensionSizeOp, expandSize>(),
      expansion<DynamicPadOp, expandPad>(),
      expansion<RealDynamicSliceOp, expandSlice>(),
      expansion<DynamicGatherOp, expandGather>(),
      expansion<BroadcastOp, expandBroadcast>(),
      expansion<TorchIndexSelectOp, expandIndexSelect>()};
  return all;
}

} // namespace mgpu::conversion
