// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/stablehlo/Expansion.h"
#include "dialect/stablehlo/Companions.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/Sequence.h"

namespace mgpu::conversion {

// Operations whose shapes are operands, where these are constants or the result
// says them; and others that are a broadcast or a gather.

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

// batch_norm_inference, batch_norm_training and batch_norm_grad as StableHLO's
// specification defines them, in the order of its operations.

namespace {

/// An operation whose operands and result have one type.
template <typename Op, typename... Operands>
Value make(ImplicitLocOpBuilder &b, Value first, Operands... others) {
  return Op::create(b, TypeRange{first.getType()},
                    ValueRange{first, others...});
}

/// The three operations have in common a tensor, and one of its dimensions
/// whose indices are features.
class Batch {
public:
  Batch(ImplicitLocOpBuilder &b, Value operand, int64_t feature,
        const llvm::APFloat &epsilon)
      : b(b), operand(operand), feature(feature), epsilonValue(epsilon),
        type(cast<RankedTensorType>(operand.getType())) {}

  Value spread(Value ofFeatures) {
    return BroadcastInDimOp::create(b, type, ofFeatures,
                                    ArrayRef<int64_t>{feature});
  }
  Value constant(RankedTensorType like, llvm::APFloat value) {
    auto element = cast<FloatType>(like.getElementType());
    bool isRounded = false;
    value.convert(element.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &isRounded);
    return ConstantOp::create(b, DenseElementsAttr::get(like, value));
  }
  Value epsilon(RankedTensorType like) { return constant(like, epsilonValue); }
  Value elementsPerFeature(RankedTensorType like) {
    return constant(like, llvm::APFloat(double(type.getNumElements()) /
                                        double(type.getDimSize(feature))));
  }
  /// Over all dimensions but that of features.
  Value sum(Value of);
  Value mean(Value of) {
    Value total = sum(of);
    return make<DivOp>(
        b, total, elementsPerFeature(cast<RankedTensorType>(total.getType())));
  }
  Value centered(Value mean) {
    return make<SubtractOp>(b, operand, spread(mean));
  }
  Value deviation(Value variance) {
    return make<SqrtOp>(b, make<AddOp>(b, spread(variance), epsilon(type)));
  }
  Value normalized(Value mean, Value variance) {
    Value from = centered(mean);
    return make<DivOp>(b, from, deviation(variance));
  }
  Value inference(Value scale, Value offset, Value mean, Value variance) {
    Value by = spread(scale), to = spread(offset);
    Value scaled = make<MulOp>(b, by, normalized(mean, variance));
    return make<AddOp>(b, scaled, to);
  }

  ImplicitLocOpBuilder &b;
  Value operand;
  int64_t feature;
  llvm::APFloat epsilonValue;
  RankedTensorType type;
};

Value Batch::sum(Value of) {
  Type element = type.getElementType();
  auto scalar = RankedTensorType::get({}, element);
  Value zero = constant(scalar, llvm::APFloat(0.0));
  SmallVector<int64_t> others;
  for (int64_t k = 0; k < type.getRank(); ++k)
    if (k != feature)
      others.push_back(k);
  auto features = RankedTensorType::get({type.getDimSize(feature)}, element);
  auto reduce = ReduceOp::create(b, TypeRange{features}, ValueRange{of},
                                 ValueRange{zero}, others);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&reduce.getBody(), {}, {scalar, scalar},
                              {b.getLoc(), b.getLoc()});
  Value both =
      make<AddOp>(b, body->getArgument(0), Value(body->getArgument(1)));
  ReturnOp::create(b, both);
  return reduce.getResult(0);
}

FailureOr<SmallVector<Value>> expandInference(ImplicitLocOpBuilder &b,
                                              BatchNormInferenceOp op) {
  Batch batch(b, op.getOperand(), op.getFeatureIndex(), op.getEpsilon());
  return SmallVector<Value>{batch.inference(op.getScale(), op.getOffset(),
                                            op.getMean(), op.getVariance())};
}

FailureOr<SmallVector<Value>> expandTraining(ImplicitLocOpBuilder &b,
                                             BatchNormTrainingOp op) {
  Batch batch(b, op.getOperand(), op.getFeatureIndex(), op.getEpsilon());
  Value mean = batch.mean(op.getOperand());
  Value from = batch.centered(mean);
  Value variance = batch.mean(make<MulOp>(b, from, from));
  return SmallVector<Value>{
      batch.inference(op.getScale(), op.getOffset(), mean, variance), mean,
      variance};
}

FailureOr<SmallVector<Value>> expandGrad(ImplicitLocOpBuilder &b,
                                         BatchNormGradOp op) {
  Batch batch(b, op.getOperand(), op.getFeatureIndex(), op.getEpsilon());
  auto product = [&](Value left, Value right) -> Value {
    return make<MulOp>(b, left, right);
  };
  auto quotient = [&](Value left, Value right) -> Value {
    return make<DivOp>(b, left, right);
  };
  auto difference = [&](Value left, Value right) -> Value {
    return make<SubtractOp>(b, left, right);
  };
  Value gradient = op.getGradOutput();
  Value from = batch.centered(op.getMean());
  Value deviation = batch.deviation(op.getVariance());
  Value count = batch.elementsPerFeature(batch.type);
  Value sum = batch.sum(gradient);
  Value alongCentered = batch.spread(batch.sum(product(gradient, from)));
  Value variance =
      make<AddOp>(b, batch.spread(op.getVariance()), batch.epsilon(batch.type));
  Value correction = quotient(product(alongCentered, from), variance);
  Value rest = difference(
      difference(product(gradient, count), batch.spread(sum)), correction);
  Value factor =
      quotient(quotient(batch.spread(op.getScale()), deviation), count);
  Value ofScale = batch.sum(product(gradient, quotient(from, deviation)));
  return SmallVector<Value>{product(factor, rest), ofScale, sum};
}

} // namespace

ArrayRef<NamedExpansion> batchNormExpansions() {
  static const NamedExpansion all[] = {
      expansion<BatchNormInferenceOp, expandInference>(),
      expansion<BatchNormTrainingOp, expandTraining>(),
      expansion<BatchNormGradOp, expandGrad>()};
  return all;
}

#define GEN_PASS_DEF_EXPANDSTABLEHLO
#include "dialect/conversion/Passes.h.inc"

namespace {

Expansion findExpansion(OperationName name) {
  static const llvm::StringMap<Expansion> all = [] {
    llvm::StringMap<Expansion> map;
    for (auto some :
         {batchNormExpansions(), shapeExpansions(), libraryExpansions()})
      for (const NamedExpansion &each : some)
        map[each.name] = each.expand;
    return map;
  }();
  if (name.getStringRef().starts_with("chlo.broadcast_"))
    return expandBroadcasting;
  return all.lookup(name.getStringRef());
}

LogicalResult expandOne(Operation *op, Expansion expansion) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  FailureOr<SmallVector<Value>> made = expansion(b, op);
  if (failed(made))
    return failure();
  if (made->empty())
    return success();
  // Shardings are of the first result.
  if (Operation *last = made->front().getDefiningOp())
    for (NamedAttribute each : op->getDiscardableAttrs())
      last->setDiscardableAttr(each.getName(), each.getValue());
  op->replaceAllUsesWith(*made);
  op->erase();
  return success();
}

/// An element of a tuple that is made here is what it was made of.
bool unpackTuples(ModuleOp module) {
  SmallVector<stablehlo::TupleOp> tuples;
  module.walk([&](stablehlo::TupleOp tuple) { tuples.push_back(tuple); });
  for (stablehlo::TupleOp tuple : tuples)
    for (Operation *user : llvm::make_early_inc_range(tuple->getUsers()))
      if (auto element = dyn_cast<stablehlo::GetTupleElementOp>(user)) {
        element.getResult().replaceAllUsesWith(
            tuple.getVal()[element.getIndex()]);
        element.erase();
      }
  // Outer ones hold inner ones.
  for (stablehlo::TupleOp tuple : llvm::reverse(tuples))
    if (tuple->use_empty())
      tuple.erase();
  return !tuples.empty();
}

struct ExpandStablehlo : impl::ExpandStablehloBase<ExpandStablehlo> {
  using ExpandStablehloBase::ExpandStablehloBase;

  void runOnOperation() override {
    const bool hasTuples = unpackTuples(getOperation());
    SmallVector<std::pair<Operation *, Expansion>> found;
    getOperation().walk([&](Operation *op) {
      if (Expansion expansion = findExpansion(op->getName()))
        found.push_back({op, expansion});
    });
    if (found.empty() && !hasTuples)
      return markAllAnalysesPreserved();
    for (auto [op, expansion] : found)
      if (failed(expandOne(op, expansion)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace mgpu::conversion
