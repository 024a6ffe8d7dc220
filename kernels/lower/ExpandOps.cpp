// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/ExpandOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

Type withElement(Type shape, Type element) {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? Type(vector.clone(element)) : element;
}

/// A constant of `type`, of floats, in each of its lanes.
Value splat(OpBuilder &b, Location loc, Type type, const APFloat &value) {
  TypedAttr attribute = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, value);
  return arith::ConstantOp::create(b, loc, attribute);
}

void replace(Operation *op, ValueRange values) {
  op->replaceAllUsesWith(values);
  op->erase();
}

void expandMath(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  if (auto clamp = dyn_cast<math::ClampFOp>(op)) {
    Value low =
        arith::MaximumFOp::create(b, loc, clamp.getValue(), clamp.getMin());
    replace(
        op,
        arith::MinimumFOp::create(b, loc, low, clamp.getMax())->getResults());
  } else if (auto both = dyn_cast<math::SincosOp>(op)) {
    Value x = both.getOperand();
    replace(op, {math::SinOp::create(b, loc, x).getResult(),
                 math::CosOp::create(b, loc, x).getResult()});
  } else {
    using Is = arith::CmpFPredicate;
    Value x = op->getOperand(0);
    Type type = x.getType();
    const auto &format =
        cast<FloatType>(getElementTypeOrSelf(type)).getFloatSemantics();
    auto sizeIs = [&](Is is, const APFloat &limit) -> Value {
      Value size = math::AbsFOp::create(b, loc, x);
      return arith::CmpFOp::create(b, loc, is, size,
                                   splat(b, loc, type, limit));
    };
    Value result;
    if (isa<math::IsNaNOp>(op))
      result = arith::CmpFOp::create(b, loc, Is::UNO, x, x);
    else if (isa<math::IsInfOp>(op))
      result = sizeIs(Is::OEQ, APFloat::getInf(format));
    else
      result = sizeIs(Is::OLE, APFloat::getLargest(format));
    if (isa<math::IsNormalOp>(op))
      result = arith::AndIOp::create(
          b, loc, result,
          sizeIs(Is::OGE, APFloat::getSmallestNormalized(format)));
    replace(op, result);
  }
}

/// Lane by lane, each by an operation of the same kind on its elements.
void expandLanes(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  const int64_t count =
      cast<VectorType>(op->getResult(0).getType()).getNumElements();
  auto flat = [&](Value value) -> Value {
    auto type = dyn_cast<VectorType>(value.getType());
    if (!type || type.getRank() == 1)
      return value;
    return vector::ShapeCastOp::create(
        b, loc, VectorType::get({count}, type.getElementType()), value);
  };
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(flat(operand));
  SmallVector<SmallVector<Value>> lanes(op->getNumResults());
  for (int64_t lane = 0; lane < count; ++lane) {
    OperationState state(loc, op->getName());
    for (Value operand : operands)
      state.operands.push_back(
          isa<VectorType>(operand.getType())
              ? vector::ExtractOp::create(b, loc, operand, lane).getResult()
              : operand);
    for (Type type : op->getResultTypes())
      state.types.push_back(getElementTypeOrSelf(type));
    state.attributes = op->getAttrs();
    Operation *scalar = b.create(state);
    for (auto [all, result] : llvm::zip_equal(lanes, scalar->getResults()))
      all.push_back(result);
  }
  SmallVector<Value> results;
  for (auto [type, all] : llvm::zip_equal(op->getResultTypes(), lanes)) {
    auto vector = dyn_cast<VectorType>(type);
    if (!vector) { // whether lanes exchanged something is the same for all
      results.push_back(all.front());
      continue;
    }
    Value whole = vector::FromElementsOp::create(
        b, loc, VectorType::get({count}, vector.getElementType()), all);
    results.push_back(
        vector.getRank() == 1
            ? whole
            : vector::ShapeCastOp::create(b, loc, vector, whole).getResult());
  }
  replace(op, results);
}

/// A vector.load or vector.store as those of its rows, which follow each other
/// along the memref's dimensions before the last, or of its elements.
void expandRows(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto load = dyn_cast<vector::LoadOp>(op);
  auto store = dyn_cast<vector::StoreOp>(op);
  Value memref = load ? load.getBase() : store.getBase();
  SmallVector<Value> indices(load ? load.getIndices() : store.getIndices());
  VectorType type = load ? load.getVectorType() : store.getVectorType();
  if (type.getRank() == 0) {
    if (store) {
      Value value = vector::ExtractOp::create(b, loc, store.getValueToStore(),
                                              ArrayRef<int64_t>{});
      memref::StoreOp::create(b, loc, value, memref, indices);
      op->erase();
      return;
    }
    Value value = memref::LoadOp::create(b, loc, memref, indices);
    replace(op, vector::BroadcastOp::create(b, loc, type, value)->getResults());
    return;
  }
  // LLVM's vectors of i1 are packed, memory has a byte for each.
  const bool isBits = type.getElementType().isInteger(1);
  auto row = VectorType::get({type.getShape().back()}, type.getElementType());
  Value all;
  if (load)
    all = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  ArrayRef<int64_t> outer = type.getShape().drop_back(isBits ? 0 : 1);
  SmallVector<int64_t> strides = computeStrides(outer);
  for (int64_t k = 0; k < computeProduct(outer); ++k) {
    SmallVector<int64_t> position = delinearize(k, strides);
    SmallVector<Value> at = indices;
    const size_t first = at.size() - size_t(type.getRank());
    for (auto [dim, step] : llvm::enumerate(position))
      if (step != 0)
        at[first + dim] =
            arith::AddIOp::create(b, loc, at[first + dim],
                                  arith::ConstantIndexOp::create(b, loc, step));
    if (load) {
      Value part =
          isBits ? memref::LoadOp::create(b, loc, memref, at).getResult()
                 : vector::LoadOp::create(b, loc, row, memref, at).getResult();
      all = vector::InsertOp::create(b, loc, part, all, position);
      continue;
    }
    Value part =
        vector::ExtractOp::create(b, loc, store.getValueToStore(), position);
    if (isBits)
      memref::StoreOp::create(b, loc, part, memref, at);
    else
      vector::StoreOp::create(b, loc, part, memref, at);
  }
  if (load)
    op->replaceAllUsesWith(ValueRange{all});
  op->erase();
}

/// vector.extract and vector.insert at positions that are values, in a vector
/// of several dimensions: in one of one dimension, element by element.
void expandPosition(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto extract = dyn_cast<vector::ExtractOp>(op);
  auto insert = dyn_cast<vector::InsertOp>(op);
  VectorType type =
      extract ? extract.getSourceVectorType() : insert.getDestVectorType();
  auto flatType =
      VectorType::get({type.getNumElements()}, type.getElementType());
  Value flat = vector::ShapeCastOp::create(
      b, loc, flatType, extract ? extract.getSource() : insert.getDest());
  int64_t size = type.getNumElements();
  Value first = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [at, extent] : llvm::zip(extract ? extract.getMixedPosition()
                                             : insert.getMixedPosition(),
                                     type.getShape())) {
    size /= extent;
    first = arith::AddIOp::create(
        b, loc, first,
        arith::MulIOp::create(b, loc,
                              getValueOrCreateConstantIndexOp(b, loc, at),
                              arith::ConstantIndexOp::create(b, loc, size)));
  }
  auto lane = [&](int64_t k) -> OpFoldResult {
    return k == 0
               ? first
               : arith::AddIOp::create(
                     b, loc, first, arith::ConstantIndexOp::create(b, loc, k))
                     .getResult();
  };
  if (extract) {
    SmallVector<Value> all;
    for (int64_t k = 0; k < size; ++k)
      all.push_back(vector::ExtractOp::create(b, loc, flat, lane(k)));
    auto part = dyn_cast<VectorType>(op->getResult(0).getType());
    replace(
        op,
        part ? vector::FromElementsOp::create(b, loc, part, all)->getResults()
             : ValueRange(all.front()));
    return;
  }
  Value part = insert.getValueToStore();
  if (isa<VectorType>(part.getType()))
    part = vector::ShapeCastOp::create(
        b, loc, VectorType::get({size}, type.getElementType()), part);
  for (int64_t k = 0; k < size; ++k) {
    Value value = isa<VectorType>(part.getType())
                      ? vector::ExtractOp::create(b, loc, part, k).getResult()
                      : part;
    flat = vector::InsertOp::create(b, loc, value, flat, lane(k));
  }
  replace(op, vector::ShapeCastOp::create(b, loc, type, flat)->getResults());
}

/// A reduction of floats that are computed in f32, which rounds each step.
void expandReduction(vector::ReductionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value sum = op.getAcc();
  for (int64_t k = 0; k < op.getSourceVectorType().getNumElements(); ++k) {
    Value lane = vector::ExtractOp::create(b, loc, op.getVector(), k);
    sum = sum ? vector::makeArithReduction(b, loc, op.getKind(), lane, sum)
              : lane;
  }
  replace(op, sum);
}

/// An operation on index on i64.
void expandIndex(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  OperationState state(loc, op->getName());
  auto casted = [&](Value value, Type element) -> Value {
    return arith::IndexCastOp::create(
        b, loc, withElement(value.getType(), element), value);
  };
  for (Value operand : op->getOperands())
    state.operands.push_back(casted(operand, b.getI64Type()));
  for (Type type : op->getResultTypes())
    state.types.push_back(getElementTypeOrSelf(type).isIndex()
                              ? withElement(type, b.getI64Type())
                              : type);
  Operation *onWords = b.create(state);
  SmallVector<Value> results;
  for (auto [type, result] :
       llvm::zip_equal(op->getResultTypes(), onWords->getResults()))
    results.push_back(
        type == result.getType() ? result : casted(result, b.getIndexType()));
  replace(op, results);
}

/// An integer of 32 or 64 bits as bf16. Both emitters go by way of f32, and
/// twice rounded is not once rounded: so the integer gets 24 significant bits
/// first, of which the last says whether any of those below was set.
void expandToBrain(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  Type type = x.getType();
  const unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  auto number = [&](int64_t value) -> Value {
    TypedAttr attribute = b.getIntegerAttr(getElementTypeOrSelf(type), value);
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, Attribute(attribute));
    return arith::ConstantOp::create(b, loc, attribute);
  };
  using Is = arith::CmpIPredicate;
  const Value zero = number(0), one = number(1);
  Value isNegative;
  if (isa<arith::SIToFPOp>(op)) {
    isNegative = arith::CmpIOp::create(b, loc, Is::slt, x, zero);
    Value negated = arith::SubIOp::create(b, loc, zero, x);
    x = arith::SelectOp::create(b, loc, isNegative, negated, x);
  }
  Value zeros = math::CountLeadingZerosOp::create(b, loc, x);
  Value below = arith::MaxSIOp::create(
      b, loc, arith::SubIOp::create(b, loc, number(width - 24), zeros), zero);
  Value high = arith::ShRUIOp::create(b, loc, x, below);
  high = arith::ShLIOp::create(b, loc, high, below);
  Value rest = arith::CmpIOp::create(b, loc, Is::ne, high, x);
  Value last = arith::ShLIOp::create(b, loc, one, below);
  x = arith::OrIOp::create(b, loc, high,
                           arith::SelectOp::create(b, loc, rest, last, zero));
  Value exact =
      arith::UIToFPOp::create(b, loc, withElement(type, b.getF32Type()), x);
  if (isNegative)
    exact = arith::SelectOp::create(
        b, loc, isNegative, arith::NegFOp::create(b, loc, exact), exact);
  replace(op,
          {arith::TruncFOp::create(b, loc, op->getResult(0).getType(), exact)
               .getResult()});
}

bool isSignedOnBits(Operation *op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::FloorDivSIOp,
             arith::CeilDivSIOp, arith::ShRSIOp, math::AbsIOp, math::IPowIOp,
             arith::FPToSIOp>(op);
}

/// An operation on i1, of which -1 is the signed value of true, on i8.
void expandBits(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  if (isa<math::CtPopOp>(op))
    return replace(op, op->getOperands());
  if (isa<math::CountLeadingZerosOp, math::CountTrailingZerosOp>(op)) {
    TypedAttr one = b.getBoolAttr(true);
    if (auto vector = dyn_cast<VectorType>(type))
      one = DenseElementsAttr::get(vector, true);
    return replace(op,
                   arith::XOrIOp::create(b, loc, op->getOperand(0),
                                         arith::ConstantOp::create(b, loc, one))
                       ->getResults());
  }
  if (isa<arith::AddUIExtendedOp>(op))
    return replace(
        op,
        {arith::XOrIOp::create(b, loc, op->getOperand(0), op->getOperand(1)),
         arith::AndIOp::create(b, loc, op->getOperand(0), op->getOperand(1))});
  if (isa<arith::MulSIExtendedOp, arith::MulUIExtendedOp>(op)) {
    // The product is 0 or 1 in two bits, also that of -1 and -1.
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
    return replace(op, {arith::AndIOp::create(b, loc, op->getOperand(0),
                                              op->getOperand(1)),
                        zero});
  }
  OperationState state(loc, op->getName());
  for (Value operand : op->getOperands()) {
    Type wide = withElement(operand.getType(), b.getI8Type());
    if (getElementTypeOrSelf(operand.getType()).isInteger(1))
      operand = isSignedOnBits(op)
                    ? arith::ExtSIOp::create(b, loc, wide, operand).getResult()
                    : arith::ExtUIOp::create(b, loc, wide, operand);
    state.operands.push_back(operand);
  }
  state.types.push_back(withElement(type, b.getI8Type()));
  Operation *onBytes = b.create(state);
  replace(op, arith::TruncIOp::create(b, loc, type, onBytes->getResult(0))
                  ->getResults());
}

/// Divisions of index that round up or down, which MLIR's lowering of the index
/// dialect gets wrong at the most negative number.
void expandIndexDivision(Operation *op) {
  OpBuilder b(op);
  Value x = op->getOperand(0), y = op->getOperand(1), result;
  if (isa<index::CeilDivSOp>(op))
    result = arith::CeilDivSIOp::create(b, op->getLoc(), x, y);
  else if (isa<index::CeilDivUOp>(op))
    result = arith::CeilDivUIOp::create(b, op->getLoc(), x, y);
  else
    result = arith::FloorDivSIOp::create(b, op->getLoc(), x, y);
  replace(op, result);
}

bool isVector(Operation *op) {
  return op->getNumResults() > 0 && isa<VectorType>(op->getResult(0).getType());
}

bool needsRows(Operation *op) {
  auto load = dyn_cast<vector::LoadOp>(op);
  auto store = dyn_cast<vector::StoreOp>(op);
  if (!load && !store)
    return false;
  VectorType type = load ? load.getVectorType() : store.getVectorType();
  Type element =
      (load ? load.getMemRefType() : store.getMemRefType()).getElementType();
  return (type.getRank() != 1 || element.isInteger(1)) && !type.isScalable() &&
         !isa<VectorType>(element);
}

bool needsElements(Operation *op) {
  if (auto extract = dyn_cast<vector::ExtractOp>(op))
    return extract.getSourceVectorType().getRank() > 1 &&
           !extract.getDynamicPosition().empty();
  auto insert = dyn_cast<vector::InsertOp>(op);
  return insert && insert.getDestVectorType().getRank() > 1 &&
         !insert.getDynamicPosition().empty();
}

bool isToBrain(Operation *op) {
  return isa<arith::SIToFPOp, arith::UIToFPOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType()).isBF16() &&
         getElementTypeOrSelf(op->getOperand(0).getType())
                 .getIntOrFloatBitWidth() > 24;
}

bool needsBytes(Operation *op) {
  if (op->getNumResults() == 0 ||
      !getElementTypeOrSelf(op->getResult(0).getType()).isInteger(1))
    return false;
  return isSignedOnBits(op) ||
         isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp, arith::ShLIOp,
             arith::ShRUIOp, arith::FPToUIOp, arith::AddUIExtendedOp,
             arith::MulSIExtendedOp, arith::MulUIExtendedOp, math::CtPopOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp>(op);
}

} // namespace

static bool isExtended(Operation *op) {
  return isa<arith::AddUIExtendedOp, arith::MulSIExtendedOp,
             arith::MulUIExtendedOp>(op);
}

/// LLVM's reductions of these kinds may give either one of two zeros.
static bool isNumberOnly(vector::CombiningKind kind) {
  return kind == vector::CombiningKind::MAXNUMF ||
         kind == vector::CombiningKind::MINNUMF;
}

void expandOperations(ModuleOp module) {
  SmallVector<Operation *> words;
  module.walk([&](Operation *op) {
    if ((isExtended(op) || isa<math::IPowIOp>(op)) &&
        getElementTypeOrSelf(op->getResult(0).getType()).isIndex())
      words.push_back(op);
  });
  llvm::for_each(words, expandIndex);
  SmallVector<Operation *> maths, divisions, lanes, rows, bits, positions,
      brains;
  SmallVector<vector::ReductionOp> reductions;
  module.walk([&](Operation *op) {
    if (isa<math::ClampFOp, math::SincosOp, math::IsNaNOp, math::IsInfOp,
            math::IsFiniteOp, math::IsNormalOp>(op))
      maths.push_back(op);
    else if (isa<index::CeilDivSOp, index::CeilDivUOp, index::FloorDivSOp>(op))
      divisions.push_back(op);
    else if (isToBrain(op))
      brains.push_back(op);
    else if (needsBytes(op))
      bits.push_back(op);
    else if (isVector(op) &&
             (isExtended(op) ||
              isa<gpu::ShuffleOp, gpu::RotateOp, gpu::SubgroupReduceOp>(op)))
      lanes.push_back(op);
    else if (needsRows(op))
      rows.push_back(op);
    else if (needsElements(op))
      positions.push_back(op);
    else if (auto reduction = dyn_cast<vector::ReductionOp>(op);
             reduction && isa<FloatType>(reduction.getType()) &&
             (reduction.getType().getIntOrFloatBitWidth() < 32 ||
              isNumberOnly(reduction.getKind())))
      reductions.push_back(reduction);
  });
  llvm::for_each(maths, expandMath);
  llvm::for_each(divisions, expandIndexDivision);
  llvm::for_each(brains, expandToBrain);
  llvm::for_each(bits, expandBits);
  llvm::for_each(lanes, expandLanes);
  llvm::for_each(rows, expandRows);
  llvm::for_each(positions, expandPosition);
  llvm::for_each(reductions, expandReduction);
}

} // namespace mgpu::kernels
