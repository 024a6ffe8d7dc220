// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/WarpExecute.h"

#include "facts/Uniformity.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// A value that lane 0 and the other lanes of a subgroup see through memory:
/// `whole` is lane 0's type, `piece` that of each lane.
struct Passage {
  Type whole, piece;
  Value buffer; ///< subgroups x elements
  bool isDealt() const { return whole != piece; }
};

class Rewriter {
public:
  Rewriter(gpu::WarpExecuteOnLane0Op op, Dim3 block)
      : op(op), block(block), b(op), loc(op.getLoc()) {}

  LogicalResult run();

private:
  using Passages = SmallVector<std::optional<Passage>>;
  LogicalResult makePassages(Passages &in, Passages &out);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// The name that a text gives the value that is made there.
  Location named(StringRef name) {
    return NameLoc::get(b.getStringAttr(name), op.getLoc());
  }
  /// Its buffer, in the function of the operation.
  FailureOr<Passage> passage(Type whole, Type piece, StringRef name);
  /// The type that stands in memory for a value of `type`: i1 takes a byte
  /// there.
  static Type storedType(Type type);
  Value toStored(Value value);
  Value fromStored(Value value, Type type);
  void storeWhole(const Passage &to, Value value);
  Value loadWhole(const Passage &from);
  void storePiece(const Passage &to, Value value);
  Value loadPiece(const Passage &from);
  /// Calls `visit` for each row of a piece: its place in the piece, and where
  /// its first element is in the buffer.
  void forRows(const Passage &passage,
               function_ref<void(ArrayRef<int64_t>, Value)> visit);

  gpu::WarpExecuteOnLane0Op op;
  Dim3 block;
  OpBuilder b;
  Location loc;
  Value subgroup;
};

int64_t countOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

/// A vector's elements in one row, or the scalar.
Type flat(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return type;
  return VectorType::get({vector.getNumElements()}, vector.getElementType());
}

Type Rewriter::storedType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isInteger(1))
    return type;
  Type byte = IntegerType::get(type.getContext(), 8);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(byte);
  return byte;
}

Value Rewriter::toStored(Value value) {
  Type type = storedType(value.getType());
  return type == value.getType()
             ? value
             : arith::ExtUIOp::create(b, loc, type, value).getResult();
}

Value Rewriter::fromStored(Value value, Type type) {
  return type == value.getType()
             ? value
             : arith::TruncIOp::create(b, loc, type, value).getResult();
}

FailureOr<Passage> Rewriter::passage(Type whole, Type piece, StringRef name) {
  Type element = storedType(getElementTypeOrSelf(whole));
  auto vector = dyn_cast<VectorType>(whole);
  if (!element.isIntOrIndexOrFloat() ||
      (vector && (vector.isScalable() || vector.getRank() == 0)))
    return op.emitOpError("passes a value of type ")
           << whole << " between lanes, which is not supported";
  auto space =
      gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
  int64_t numSubgroups =
      int64_t(block.volume() + subgroupSize - 1) / subgroupSize;
  auto function = op->getParentOfType<func::FuncOp>();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  auto buffer = memref::AllocaOp::create(
      b, named(name),
      MemRefType::get({numSubgroups, countOf(whole)}, element,
                      MemRefLayoutAttrInterface(), space));
  markMadeFor(buffer, op);
  return Passage{whole, piece, buffer};
}

void Rewriter::storeWhole(const Passage &to, Value value) {
  if (!isa<VectorType>(to.whole)) {
    memref::StoreOp::create(b, loc, toStored(value), to.buffer,
                            ValueRange{subgroup, constant(0)});
    return;
  }
  if (flat(to.whole) != to.whole)
    value = vector::ShapeCastOp::create(b, loc, flat(to.whole), value);
  vector::StoreOp::create(b, loc, toStored(value), to.buffer,
                          ValueRange{subgroup, constant(0)});
}

Value Rewriter::loadWhole(const Passage &from) {
  SmallVector<Value> at{subgroup, constant(0)};
  if (!isa<VectorType>(from.whole))
    return fromStored(memref::LoadOp::create(b, loc, from.buffer, at),
                      from.whole);
  Type type = flat(from.whole);
  Value value = fromStored(
      vector::LoadOp::create(b, loc, cast<VectorType>(storedType(type)),
                             from.buffer, at),
      type);
  if (type != from.whole)
    value = vector::ShapeCastOp::create(b, loc, from.whole, value);
  return value;
}

void Rewriter::forRows(const Passage &passage,
                       function_ref<void(ArrayRef<int64_t>, Value)> visit) {
  ArrayRef<int64_t> whole = cast<VectorType>(passage.whole).getShape(),
                    piece = cast<VectorType>(passage.piece).getShape();
  // The lane's place along each dimension, the last one fastest.
  Value rest = op.getLaneid(), first;
  SmallVector<int64_t> strides(whole.size(), 1);
  for (size_t d = whole.size() - 1; d-- > 0;)
    strides[d] = strides[d + 1] * whole[d + 1];
  int64_t left = subgroupSize;
  for (size_t d = whole.size(); d-- > 0;) {
    int64_t lanes = whole[d] / piece[d];
    if (lanes == 1)
      continue;
    left /= lanes;
    Value at = left == 1 ? rest
                         : arith::RemUIOp::create(b, named("place"), rest,
                                                  constant(lanes));
    if (int64_t step = piece[d] * strides[d]; step > 1)
      at = arith::MulIOp::create(b, named("place"), at, constant(step));
    first = first ? arith::AddIOp::create(b, named("place"), first, at) : at;
    if (left > 1)
      rest = arith::DivUIOp::create(b, loc, rest, constant(lanes));
  }
  SmallVector<int64_t> row(piece.size() - 1, 0);
  while (true) {
    int64_t offset = 0;
    for (auto [at, stride] : llvm::zip(row, strides))
      offset += at * stride;
    visit(row,
          offset ? Value(arith::AddIOp::create(b, loc, first, constant(offset)))
                 : first);
    size_t d = row.size();
    while (d > 0 && ++row[d - 1] == piece[d - 1])
      row[--d] = 0;
    if (d == 0)
      return;
  }
}

void Rewriter::storePiece(const Passage &to, Value value) {
  value = toStored(value);
  forRows(to, [&](ArrayRef<int64_t> row, Value at) {
    Value part =
        row.empty() ? value
                    : vector::ExtractOp::create(b, loc, value, row).getResult();
    vector::StoreOp::create(b, loc, part, to.buffer, ValueRange{subgroup, at});
  });
}

Value Rewriter::loadPiece(const Passage &from) {
  auto type = cast<VectorType>(storedType(from.piece));
  auto rowType =
      VectorType::get({type.getShape().back()}, type.getElementType());
  Value value;
  if (type.getRank() > 1)
    value = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  forRows(from, [&](ArrayRef<int64_t> row, Value at) {
    Value part = vector::LoadOp::create(b, loc, rowType, from.buffer,
                                        ValueRange{subgroup, at});
    value =
        row.empty()
            ? part
            : vector::InsertOp::create(b, loc, part, value, row).getResult();
  });
  return fromStored(value, from.piece);
}

/// How the operands and results go between lane 0 and the others; none where
/// lane 0 takes its own.
LogicalResult Rewriter::makePassages(Passages &in, Passages &out) {
  Block &body = op.getWarpRegion().front();
  for (auto [argument, value] :
       llvm::zip_equal(body.getArguments(), ValueRange(op.getArgs()))) {
    in.emplace_back();
    if (argument.getType() == value.getType())
      continue; // lane 0 has its own
    if (block.volume() % subgroupSize != 0)
      return op.emitOpError("takes a vector from all 32 lanes of a subgroup, "
                            "and a block here has ")
             << block.volume() << " threads";
    FailureOr<Passage> made =
        passage(argument.getType(), value.getType(), "gathered");
    if (failed(made))
      return failure();
    in.back() = *made;
  }
  for (auto [yielded, result] :
       llvm::zip_equal(body.getTerminator()->getOperands(), op.getResults())) {
    FailureOr<Passage> made =
        passage(yielded.getType(), result.getType(), "dealt");
    if (failed(made))
      return failure();
    out.push_back(*made);
  }
  return success();
}

LogicalResult Rewriter::run() {
  if (op.getWarpSize() != uint64_t(subgroupSize))
    return op.emitOpError("is for subgroups of ")
           << op.getWarpSize() << " lanes; those of the targets have 32";
  Block &body = op.getWarpRegion().front();
  for (Operation &each : body)
    if (Operation *meeting = facts::findConvergent(&each))
      return meeting->emitOpError("is inside gpu.warp_execute_on_lane_0, where "
                                  "there is one lane alone; move it out");
  Passages in, out;
  if (failed(makePassages(in, out)))
    return failure();
  auto yield = cast<gpu::YieldOp>(body.getTerminator());
  bool isShared = !out.empty() ||
                  llvm::any_of(in, [](auto &each) { return each.has_value(); });
  if (isShared)
    subgroup = gpu::SubgroupIdOp::create(b, named("subgroup"), IntegerAttr());
  for (auto [each, value] : llvm::zip_equal(in, ValueRange(op.getArgs())))
    if (each)
      storePiece(*each, value);
  // In a loop, the first of the two also keeps lane 0 from writing results that
  // others have not read yet, and the second operands that it has not read.
  if (isShared)
    createSubgroupBarrier(b, op);
  Value isFirst =
      arith::CmpIOp::create(b, named("isFirst"), arith::CmpIPredicate::eq,
                            op.getLaneid(), constant(0));
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *inside = branch.thenBlock();
    b.setInsertionPointToStart(inside);
    for (auto [each, argument, value] :
         llvm::zip_equal(in, body.getArguments(), ValueRange(op.getArgs())))
      argument.replaceAllUsesWith(each ? loadWhole(*each) : value);
    inside->getOperations().splice(inside->getTerminator()->getIterator(),
                                   body.getOperations(), body.begin(),
                                   yield->getIterator());
    b.setInsertionPoint(inside->getTerminator());
    for (auto [each, value] : llvm::zip_equal(out, yield.getOperands()))
      storeWhole(*each, value);
  }
  if (isShared)
    createSubgroupBarrier(b, op);
  for (auto [each, result] : llvm::zip_equal(out, op.getResults()))
    result.replaceAllUsesWith(each->isDealt() ? loadPiece(*each)
                                              : loadWhole(*each));
  op.erase();
  return success();
}

} // namespace

LogicalResult lowerWarpExecution(ModuleOp module, Dim3 block) {
  SmallVector<gpu::WarpExecuteOnLane0Op> found; // inner ones first
  module.walk([&](gpu::WarpExecuteOnLane0Op op) { found.push_back(op); });
  for (gpu::WarpExecuteOnLane0Op op : found)
    if (failed(Rewriter(op, block).run()))
      return failure();
  return success();
}

} // namespace mgpu::kernels
