// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scatter: threads that cannot meet at an element, each of which takes its
// updates in program order.
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/mgpu/HostCode.h"
#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

// Operations that read where tensors of indices say.

// Indices that tensors hold.

namespace {

/// Where a dynamic slice begins: numbers that host code knows, or tensors of
/// one number.
class Starts {
public:
  Starts(Lowering &low, mlir::ValueRange old);
  /// In the body of an operation: the start of dimension `k`, at most `most`.
  mlir::Value at(mlir::ImplicitLocOpBuilder &b, unsigned k, int64_t most) const;
  /// Where a part of `whole` begins, if host code knows it of each dimension.
  std::optional<llvm::SmallVector<mlir::OpFoldResult>>
  onHost(mlir::ImplicitLocOpBuilder &b, mlir::RankedTensorType whole,
         mlir::RankedTensorType part) const;

private:
  llvm::SmallVector<mlir::Value> numbers, tensors;
  llvm::SmallVector<mlir::Type> types;
};

} // namespace

/// `number` as an index; it has an integer type with a sign or none.
static Value indexOf(ImplicitLocOpBuilder &b, Value number, Type type) {
  if (isUnsigned(type))
    return arith::IndexCastUIOp::create(b, b.getIndexType(), number);
  return arith::IndexCastOp::create(b, b.getIndexType(), number);
}

/// The index from 0 to `most` that is nearest to `number`.
static Value clampIndex(ImplicitLocOpBuilder &b, Value number, Type type,
                        int64_t most) {
  Value last = arith::ConstantIndexOp::create(b, most);
  Value i = indexOf(b, number, type);
  if (isUnsigned(type)) // what is past 2^63 is as far off as what is past most
    return arith::MinUIOp::create(b, i, last);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, i, zero), last);
}

static Value addIndex(ImplicitLocOpBuilder &b, Value i, Value j) {
  return arith::AddIOp::create(b, i, j);
}

Starts::Starts(Lowering &low, ValueRange old) {
  for (Value each : old) {
    Value number = low.number(each);
    numbers.push_back(number);
    tensors.push_back(number ? Value() : low[each]);
    types.push_back(getElementTypeOrSelf(each.getType()));
  }
}

Value Starts::at(ImplicitLocOpBuilder &b, unsigned k, int64_t most) const {
  Value number = numbers[k];
  if (!number)
    number = tensor::ExtractOp::create(b, tensors[k], ValueRange());
  return clampIndex(b, number, types[k], most);
}

/// Whether `number` is an induction of a loop of the function itself, or starts
/// as one. Such a loop may stay rolled if only kernels compute further with it
/// (findNoInduction() of planner/import).
static bool mayStayRolled(Value number) {
  if (auto carried = dyn_cast<BlockArgument>(number)) {
    auto loop = dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp());
    if (loop && carried != loop.getInductionVar())
      return mayStayRolled(loop.getTiedLoopInit(carried)->get());
    return loop && isa<FunctionOpInterface>(loop->getParentOp());
  }
  Operation *op = number.getDefiningOp();
  return ir::mayKeepInduction(op) &&
         llvm::any_of(op->getOperands(), mayStayRolled);
}

std::optional<SmallVector<OpFoldResult>>
Starts::onHost(ImplicitLocOpBuilder &b, RankedTensorType whole,
               RankedTensorType part) const {
  if (llvm::is_contained(numbers, Value()) ||
      llvm::any_of(numbers, mayStayRolled))
    return std::nullopt;
  SmallVector<OpFoldResult> starts;
  for (int64_t k = 0; k < whole.getRank(); ++k)
    if (int64_t most = whole.getDimSize(k) - part.getDimSize(k))
      starts.push_back(at(b, k, most));
    else
      starts.push_back(b.getIndexAttr(0));
  return starts;
}

static SmallVector<OpFoldResult> indices(ImplicitLocOpBuilder &b,
                                         ArrayRef<int64_t> numbers) {
  return getAsIndexOpFoldResult(b.getContext(), numbers);
}

/// The difference between neighbours in a constant row of numbers, if all have
/// the same: the places of parts that a loop goes through are written so.
static std::optional<APInt> stepOf(DenseIntElementsAttr row) {
  auto numbers = row.getValues<APInt>();
  if (row.getType().getRank() != 1 || numbers.size() < 2)
    return std::nullopt;
  const APInt step = numbers[1] - numbers[0];
  APInt next = numbers[0];
  for (const APInt &number : numbers) {
    if (number != next)
      return std::nullopt;
    next += step;
  }
  return step;
}

/// The one number of a slice of such a row that begins where host code knows;
/// null for other slices.
static Value hostNumberOf(Lowering &low, DynamicSliceOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  DenseIntElementsAttr row;
  if (type.getNumElements() != 1 || isNarrow(type.getElementType()) ||
      !matchPattern(low[op.getOperand()], m_Constant(&row)))
    return {};
  std::optional<APInt> step = stepOf(row);
  Value start = low.number(op.getStartIndices()[0]);
  if (!step || !start || mayStayRolled(start))
    return {};
  ImplicitLocOpBuilder &b = low.b;
  auto constant = [&](const APInt &number) -> Value {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(row.getElementType(), number));
  };
  Value at =
      Starts(low, op.getStartIndices()).at(b, 0, row.getNumElements() - 1);
  Value count = arith::IndexCastOp::create(b, row.getElementType(), at);
  Value grown = arith::MulIOp::create(b, count, constant(*step));
  return arith::AddIOp::create(b, grown,
                               constant(*row.getValues<APInt>().begin()));
}

static LogicalResult lowerDynamicSlice(Lowering &low, DynamicSliceOp op) {
  if (Value number = hostNumberOf(low, op)) {
    low.setNumber(op.getResult(), number);
    return success();
  }
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  RankedTensorType type = signlessTensor(op.getResult());
  Value input = low[op.getOperand()];
  Starts starts(low, op.getStartIndices());
  if (auto at = starts.onHost(low.b, from, type)) {
    low.set(
        op.getResult(),
        tensor::ExtractSliceOp::create(
            low.b, type, input, *at, indices(low.b, type.getShape()),
            SmallVector<OpFoldResult>(type.getRank(), low.b.getIndexAttr(1))));
    return success();
  }
  low.set(
      op.getResult(),
      low.computed(
          type, [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
            SmallVector<Value> at;
            for (auto [k, i] : llvm::enumerate(point))
              at.push_back(addIndex(
                  b, i,
                  starts.at(b, k, from.getDimSize(k) - type.getDimSize(k))));
            return tensor::ExtractOp::create(b, input, at);
          }));
  return success();
}

/// Whether a loop carries the tensor, and nothing but parts of it is read, and
/// that before: its memory is the result's. Elsewhere a kernel may take the
/// update in, or the tensor would be copied.
static bool isWrittenInPlace(DynamicUpdateSliceOp op) {
  auto carried = dyn_cast<BlockArgument>(op.getOperand());
  const bool isOfLoop =
      carried
          ? isa<WhileOp>(carried.getOwner()->getParentOp())
          : isa<WhileOp, DynamicUpdateSliceOp>(op.getOperand().getDefiningOp());
  return isOfLoop &&
         llvm::all_of(op.getOperand().getUsers(), [&](Operation *user) {
           return user == op || (isa<DynamicSliceOp>(user) &&
                                 user->getBlock() == op->getBlock() &&
                                 user->isBeforeInBlock(op));
         });
}

static LogicalResult lowerDynamicUpdateSlice(Lowering &low,
                                             DynamicUpdateSliceOp op) {
  RankedTensorType type = signlessTensor(op.getResult());
  auto part = cast<RankedTensorType>(op.getUpdate().getType());
  Value update = low[op.getUpdate()];
  if (part.getNumElements() == 0) {
    low.set(op.getResult(), low[op.getOperand()]);
    return success();
  }
  Starts starts(low, op.getStartIndices());
  if (auto at = isWrittenInPlace(op) ? starts.onHost(low.b, type, part)
                                     : std::nullopt) {
    low.set(op.getResult(), tensor::InsertSliceOp::create(
                                low.b, update, low[op.getOperand()], *at,
                                indices(low.b, part.getShape()),
                                SmallVector<OpFoldResult>(
                                    type.getRank(), low.b.getIndexAttr(1))));
    return success();
  }
  auto choose = [&](ImplicitLocOpBuilder &b, ValueRange in) {
    SmallVector<Value> at;
    Value isInside;
    for (int64_t k = 0; k < type.getRank(); ++k) {
      int64_t size = part.getDimSize(k);
      Value i = linalg::IndexOp::create(b, k);
      Value from = arith::SubIOp::create(
          b, i, starts.at(b, k, type.getDimSize(k) - size));
      Value last = arith::ConstantIndexOp::create(b, size - 1);
      // An index before the first is, as an unsigned number, past the last.
      Value fits =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ule, from, last);
      isInside = isInside ? arith::AndIOp::create(b, isInside, fits) : fits;
      at.push_back(arith::MinUIOp::create(b, from, last));
    }
    Value next = tensor::ExtractOp::create(b, update, at);
    if (isInside)
      next = arith::SelectOp::create(b, isInside, next, in[0]);
    return SmallVector<Value>{next};
  };
  low.set(op.getResult(), low.elementwise(type, low[op.getOperand()], choose));
  return success();
}

/// The elements of a gather: dimensions of the result that `offset_dims` lists
/// go through a slice, the others through the tensor of indices.
static LogicalResult lowerGather(Lowering &low, GatherOp op) {
  auto from = cast<RankedTensorType>(op.getOperand().getType());
  auto places = cast<RankedTensorType>(op.getStartIndices().getType());
  RankedTensorType type = signlessTensor(op.getResult());
  auto numbers = op.getDimensionNumbers();
  Value input = low[op.getOperand()], indices = low[op.getStartIndices()];
  int64_t vectorDim = numbers.getIndexVectorDim();
  auto element = [&](ImplicitLocOpBuilder &b, ValueRange point) -> Value {
    SmallVector<Value> batch, offsets;
    for (auto [k, i] : llvm::enumerate(point))
      (llvm::is_contained(numbers.getOffsetDims(), k) ? offsets : batch)
          .push_back(i);
    SmallVector<Value> at(from.getRank());
    for (auto [k, dimension] : llvm::enumerate(numbers.getStartIndexMap())) {
      SmallVector<Value> of = batch;
      if (vectorDim < places.getRank())
        of.insert(of.begin() + vectorDim, arith::ConstantIndexOp::create(b, k));
      at[dimension] = clampIndex(
          b, tensor::ExtractOp::create(b, indices, of), places.getElementType(),
          from.getDimSize(dimension) - op.getSliceSizes()[dimension]);
    }
    for (auto [own, ofIndices] :
         llvm::zip(numbers.getOperandBatchingDims(),
                   numbers.getStartIndicesBatchingDims()))
      at[own] = batch[ofIndices - (ofIndices > vectorDim ? 1 : 0)];
    unsigned next = 0;
    for (int64_t k = 0; k < from.getRank(); ++k) {
      bool isGone = llvm::is_contained(numbers.getCollapsedSliceDims(), k) ||
                    llvm::is_contained(numbers.getOperandBatchingDims(), k);
      if (!isGone)
        at[k] = at[k] ? addIndex(b, at[k], offsets[next]) : offsets[next];
      next += !isGone;
      if (!at[k])
        at[k] = arith::ConstantIndexOp::create(b, 0);
    }
    return tensor::ExtractOp::create(b, input, at);
  };
  low.set(op.getResult(), low.computed(type, element));
  return success();
}

ArrayRef<NamedFamily> indexingFamily() {
  static const NamedFamily all[] = {
      family<DynamicSliceOp, lowerDynamicSlice>(),
      family<DynamicUpdateSliceOp, lowerDynamicUpdateSlice>(),
      family<GatherOp, lowerGather>(),
  };
  return all;
}

namespace {

class ScatterLoops {
public:
  ScatterLoops(Lowering &low, ScatterOp op);
  SmallVector<Value> make();

private:
  bool isParallel(unsigned dimension);
  int64_t countOf(ArrayRef<unsigned> dimensions) const;
  ThreadPart partOf(Value thread);
  void setPoint(ArrayRef<unsigned> dimensions, Value i);
  SmallVector<Value> makeLoop(ValueRange parts);
  SmallVector<Value> makeUpdate(ValueRange parts);
  SmallVector<Value> place();
  Value isInside(ValueRange at);

  Lowering &low;
  ScatterOp op;
  ScatterDimensionNumbersAttr numbers;
  RankedTensorType type, updateType, indexType;
  SmallVector<Value> inputs, updates;
  Value indices;
  /// Dimensions of the updates: those that go through a window, and the others,
  /// which go through the tensor of indices.
  SmallVector<unsigned> windowDims, scatterDims;
  /// By dimension of the operand: the dimension of the updates that moves it
  /// within a window or from batch to batch.
  SmallVector<std::optional<unsigned>> movedBy;
  SmallVector<unsigned> parallel, serial; ///< dimensions of the updates
  SmallVector<Value> at;                  ///< the point of the updates
};

ScatterLoops::ScatterLoops(Lowering &low, ScatterOp op)
    : low(low), op(op), numbers(op.getScatterDimensionNumbers()),
      type(signlessTensor(op.getInputs()[0])),
      updateType(cast<RankedTensorType>(op.getUpdates()[0].getType())),
      indexType(cast<RankedTensorType>(op.getScatterIndices().getType())),
      inputs(low.all(op.getInputs())), updates(low.all(op.getUpdates())),
      indices(low[op.getScatterIndices()]), movedBy(type.getRank()),
      at(updateType.getRank()) {
  for (int64_t k = 0; k < updateType.getRank(); ++k)
    (llvm::is_contained(numbers.getUpdateWindowDims(), k) ? windowDims
                                                          : scatterDims)
        .push_back(k);
  unsigned next = 0;
  for (int64_t k = 0; k < type.getRank(); ++k)
    if (!llvm::is_contained(numbers.getInsertedWindowDims(), k) &&
        !llvm::is_contained(numbers.getInputBatchingDims(), k))
      movedBy[k] = windowDims[next++];
  for (auto [own, ofIndices] :
       llvm::zip(numbers.getInputBatchingDims(),
                 numbers.getScatterIndicesBatchingDims()))
    movedBy[own] =
        scatterDims[ofIndices - (ofIndices > numbers.getIndexVectorDim())];
  for (int64_t k = 0; k < updateType.getRank(); ++k)
    (isParallel(k) ? parallel : serial).push_back(k);
}

/// Whether two updates that differ in this dimension go to different elements.
bool ScatterLoops::isParallel(unsigned dimension) {
  if (op.getUniqueIndices())
    return true;
  for (auto [k, by] : llvm::enumerate(movedBy))
    if (by == dimension)
      return !llvm::is_contained(numbers.getScatterDimsToOperandDims(), k);
  return false;
}

/// How many points `dimensions` of the updates have.
int64_t ScatterLoops::countOf(ArrayRef<unsigned> dimensions) const {
  int64_t count = 1;
  for (unsigned dimension : dimensions)
    count *= updateType.getDimSize(dimension);
  return count;
}

/// The element of the operand that an update goes to.
SmallVector<Value> ScatterLoops::place() {
  ImplicitLocOpBuilder &b = low.b;
  SmallVector<Value> to(type.getRank());
  for (auto [k, by] : llvm::enumerate(movedBy))
    to[k] = by ? at[*by] : low.index(0);
  int64_t vectorDim = numbers.getIndexVectorDim();
  for (auto [k, dimension] :
       llvm::enumerate(numbers.getScatterDimsToOperandDims())) {
    SmallVector<Value> of;
    for (unsigned each : scatterDims)
      of.push_back(at[each]);
    if (vectorDim < indexType.getRank())
      of.insert(of.begin() + vectorDim, low.index(k));
    Type number = indexType.getElementType();
    Value start = indexOf(b, tensor::ExtractOp::create(b, indices, of), number);
    // An index past the end stays there when a place in a window is added.
    if (isUnsigned(number))
      start = arith::MinUIOp::create(b, start,
                                     low.index(type.getDimSize(dimension)));
    to[dimension] = addIndex(b, start, to[dimension]);
  }
  return to;
}

Value ScatterLoops::isInside(ValueRange to) {
  ImplicitLocOpBuilder &b = low.b;
  Value inside;
  for (int64_t dimension : numbers.getScatterDimsToOperandDims()) {
    // A negative index is, as an unsigned number, past the end.
    Value fits =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, to[dimension],
                              low.index(type.getDimSize(dimension)));
    inside = inside ? arith::AndIOp::create(b, inside, fits) : fits;
  }
  return inside;
}

SmallVector<Value> ScatterLoops::makeUpdate(ValueRange parts) {
  ImplicitLocOpBuilder &b = low.b;
  SmallVector<Value> to = place();
  Value inside = isInside(to);
  // Along dimensions that a thread keeps to, its part has one element.
  for (auto [k, by] : llvm::enumerate(movedBy))
    if (by && llvm::is_contained(parallel, *by) && !op.getUniqueIndices())
      to[k] = low.index(0);
  auto store = [&](OpBuilder &nested) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
    SmallVector<Value> elements, results;
    for (Value part : parts)
      elements.push_back(tensor::ExtractOp::create(b, part, to));
    for (Value update : updates)
      elements.push_back(tensor::ExtractOp::create(b, update, at));
    SmallVector<Value> made =
        low.inlined(b, op.getUpdateComputation(), elements);
    for (auto [element, part] : llvm::zip(made, parts))
      results.push_back(tensor::InsertOp::create(b, element, part, to));
    if (inside)
      scf::YieldOp::create(b, results);
    return results;
  };
  if (!inside)
    return store(b);
  auto branch = scf::IfOp::create(
      b, inside, [&](OpBuilder &nested, Location) { store(nested); },
      [&](OpBuilder &nested, Location loc) {
        scf::YieldOp::create(nested, loc, parts);
      });
  return SmallVector<Value>(branch.getResults());
}

/// Says at which point of `dimensions` the number `i` is, the last dimension
/// first.
void ScatterLoops::setPoint(ArrayRef<unsigned> dimensions, Value i) {
  ImplicitLocOpBuilder &b = low.b;
  for (auto [k, dimension] : llvm::enumerate(llvm::reverse(dimensions))) {
    Value size = low.index(updateType.getDimSize(dimension));
    const bool isOutermost = k + 1 == dimensions.size();
    at[dimension] =
        isOutermost ? i : arith::RemUIOp::create(b, i, size).getResult();
    i = isOutermost ? i : arith::DivUIOp::create(b, i, size).getResult();
  }
}

/// One loop over all updates of a thread in program order: bufferization finds
/// the parts that nested loops carry to conflict.
SmallVector<Value> ScatterLoops::makeLoop(ValueRange parts) {
  if (serial.empty())
    return makeUpdate(parts);
  ImplicitLocOpBuilder &b = low.b;
  auto loop = scf::ForOp::create(
      b, low.index(0), low.index(countOf(serial)), low.index(1), parts,
      [&](OpBuilder &nested, Location, Value i, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        setPoint(serial, i);
        scf::YieldOp::create(b, makeUpdate(carried));
      });
  return SmallVector<Value>(loop.getResults());
}

/// The part of the results that a thread alone writes.
ThreadPart ScatterLoops::partOf(Value thread) {
  ImplicitLocOpBuilder &b = low.b;
  // A second thread where one is enough has nothing to do.
  setPoint(parallel, countOf(parallel) == 1 ? low.index(0) : thread);
  ThreadPart part;
  part.offsets.assign(type.getRank(), b.getIndexAttr(0));
  for (int64_t size : type.getShape())
    part.sizes.push_back(b.getIndexAttr(size));
  for (auto [k, by] : llvm::enumerate(movedBy)) {
    if (op.getUniqueIndices() || !by || !llvm::is_contained(parallel, *by))
      continue;
    part.offsets[k] = at[*by];
    part.sizes[k] = b.getIndexAttr(1);
  }
  return part;
}

SmallVector<Value> ScatterLoops::make() {
  if (updateType.getNumElements() == 0 || type.getNumElements() == 0)
    return inputs;
  return low.inThreads(
      countOf(parallel), inputs, [&](Value thread) { return partOf(thread); },
      [&](ValueRange parts) { return makeLoop(parts); });
}

LogicalResult lowerScatter(Lowering &low, ScatterOp op) {
  if (failed(checkScalars(op.getUpdateComputation())))
    return failure();
  low.setAll(op.getResults(), ScatterLoops(low, op).make());
  return success();
}

} // namespace

ArrayRef<NamedFamily> scatterFamily() {
  static const NamedFamily all[] = {family<ScatterOp, lowerScatter>()};
  return all;
}

} // namespace mgpu::conversion
