// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrices of a subgroup in host code.
#include "kernels/lower/SubgroupBarrier.h"
#include "kernels/lower/SubgroupMatrix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

using Elements = SmallVector<Value>;

/// Types are replaced first, so operands are asked for by number: the accessors
/// of the operations expect matrices.
class Lowering {
public:
  Lowering(func::FuncOp entry, Dim3 block)
      : entry(entry), numSubgroups(int64_t(block.volume()) / subgroupSize),
        b(entry.getContext()) {}

  void run();

private:
  /// The vectors that stand for an operation's matrices.
  struct Matrices {
    Operation *op;
    SmallVector<gpu::MMAMatrixType> operands; ///< only those that are matrices
    gpu::MMAMatrixType result;
  };

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value plus(Value x, int64_t y) {
    return y == 0 ? x : arith::AddIOp::create(b, loc, x, constant(y));
  }
  /// g * group + t * quad of this lane, in elements: a step of a row is `row`,
  /// one of a column `column`.
  Value fromLane(const MatrixLayout &layout, int64_t row, int64_t column);
  Elements elementsOf(Value vector);
  Value vectorOf(const Elements &elements);
  /// Element (row, column) of a matrix is `row * step.row + column *
  /// step.column` past the indices, along the last of them.
  void move(const Matrices &at, Value memory, ValueRange indices,
            int64_t leading, bool isTransposed, gpu::MMAMatrixType type,
            Value store);
  void product(const Matrices &at);
  /// Row and column of the matrix at which this lane's elements begin.
  std::pair<Value, Value> laneOrigin(const MatrixLayout &layout);
  /// Writes a factor, as `product` multiplies it, to workgroup memory.
  Value stage(Value matrix, gpu::MMAMatrixType type, Type wide);
  Value widen(Value value, gpu::MMAMatrixType type, Type wide);
  void elementwise(const Matrices &at);
  void lower(const Matrices &at);

  func::FuncOp entry;
  int64_t numSubgroups;
  OpBuilder b;
  Location loc = b.getUnknownLoc();
  Value lane, subgroup;
};

Value Lowering::fromLane(const MatrixLayout &layout, int64_t row,
                         int64_t column) {
  auto scaled = [&](Value value, MatrixPlace step) -> Value {
    return arith::MulIOp::create(
        b, loc, value, constant(step.row * row + step.column * column));
  };
  Value four = constant(4);
  return arith::AddIOp::create(
      b, loc, scaled(arith::DivUIOp::create(b, loc, lane, four), layout.group),
      scaled(arith::RemUIOp::create(b, loc, lane, four), layout.quad));
}

Elements Lowering::elementsOf(Value vector) {
  Elements elements;
  int64_t count = cast<VectorType>(vector.getType()).getNumElements();
  for (int64_t k = 0; k < count; ++k)
    elements.push_back(vector::ExtractOp::create(b, loc, vector, k));
  return elements;
}

Value Lowering::vectorOf(const Elements &elements) {
  auto type =
      VectorType::get({int64_t(elements.size())}, elements[0].getType());
  return vector::FromElementsOp::create(b, loc, type, elements);
}

void Lowering::move(const Matrices &at, Value memory, ValueRange indices,
                    int64_t leading, bool isTransposed, gpu::MMAMatrixType type,
                    Value store) {
  MatrixLayout layout = *layoutOf(type);
  int64_t row = isTransposed ? 1 : leading, column = isTransposed ? leading : 1;
  // The last stride is 1, so the last index counts elements.
  SmallVector<Value> place(indices);
  place.back() = arith::AddIOp::create(b, loc, place.back(),
                                       fromLane(layout, row, column));
  Value first = place.back();
  Elements elements;
  if (store)
    elements = elementsOf(store);
  for (auto [k, each] : llvm::enumerate(layout.first)) {
    place.back() = plus(first, each.row * row + each.column * column);
    if (store)
      memref::StoreOp::create(b, loc, elements[k], memory, place);
    else
      elements.push_back(memref::LoadOp::create(b, loc, memory, place));
  }
  if (!store)
    at.op->getResult(0).replaceAllUsesWith(vectorOf(elements));
}

Value Lowering::widen(Value value, gpu::MMAMatrixType type, Type wide) {
  Type element = type.getElementType();
  if (element.isUnsignedInteger())
    return arith::ExtUIOp::create(b, loc, wide, value);
  if (isa<IntegerType>(element))
    return arith::ExtSIOp::create(b, loc, wide, value);
  if (element.isF16())
    return arith::ExtFOp::create(b, loc, wide, value);
  if (!element.isF32())
    return value;
  // To tf32, which has 13 bits of mantissa less: half of the last that stays is
  // added to the magnitude. A NaN might become something else.
  Type word = b.getI32Type();
  auto number = [&](int64_t bits) -> Value {
    return arith::ConstantIntOp::create(b, loc, bits, 32);
  };
  Value bits = arith::BitcastOp::create(b, loc, word, value);
  Value sum = arith::AddIOp::create(b, loc, bits, number(1 << 12));
  Value kept =
      arith::AndIOp::create(b, loc, sum, number(~((int64_t(1) << 13) - 1)));
  Value rounded = arith::BitcastOp::create(b, loc, element, kept);
  Value isNaN =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, value, value);
  return arith::SelectOp::create(b, loc, isNaN, value, rounded);
}

std::pair<Value, Value> Lowering::laneOrigin(const MatrixLayout &layout) {
  Value four = constant(4);
  Value group = arith::DivUIOp::create(b, loc, lane, four);
  Value quad = arith::RemUIOp::create(b, loc, lane, four);
  auto along = [&](int64_t ofGroup, int64_t ofQuad) -> Value {
    return ofGroup ? group
                   : arith::MulIOp::create(b, loc, quad, constant(ofQuad));
  };
  // One of the two moves along the rows, the other along the columns.
  Value row = along(layout.group.row, layout.quad.row);
  return {row, along(layout.group.column, layout.quad.column)};
}

Value Lowering::stage(Value matrix, gpu::MMAMatrixType type, Type wide) {
  MatrixLayout layout = *layoutOf(type);
  Value buffer;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&entry.getBody().front());
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    buffer = memref::AllocaOp::create(
        b, loc,
        MemRefType::get({numSubgroups, type.getShape()[0], type.getShape()[1]},
                        wide, MemRefLayoutAttrInterface(), space));
  }
  auto [row, column] = laneOrigin(layout);
  for (auto [place, element] :
       llvm::zip_equal(layout.first, elementsOf(matrix)))
    memref::StoreOp::create(
        b, loc, widen(element, type, wide), buffer,
        ValueRange{subgroup, plus(row, place.row), plus(column, place.column)});
  return buffer;
}

void Lowering::product(const Matrices &at) {
  Operation *op = at.op;
  gpu::MMAMatrixType a = at.operands[0], b_ = at.operands[1], c = at.result;
  Type sum = c.getElementType();
  bool isHalf = sum.isF16();
  Type wide = isHalf ? Type(b.getF32Type()) : sum;
  Value left = stage(op->getOperand(0), a, wide);
  Value right = stage(op->getOperand(1), b_, wide);
  createSubgroupBarrier(b, op);
  MatrixLayout layout = *layoutOf(c);
  auto [row, column] = laneOrigin(layout);
  Elements sums = elementsOf(op->getOperand(2));
  if (isHalf)
    for (Value &each : sums)
      each = arith::ExtFOp::create(b, loc, wide, each);
  auto loop = scf::ForOp::create(b, loc, constant(0), constant(a.getShape()[1]),
                                 constant(1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    llvm::DenseMap<int64_t, Value> rows, columns;
    Value k = loop.getInductionVar();
    Elements next;
    for (auto [place, held] :
         llvm::zip_equal(layout.first, loop.getRegionIterArgs())) {
      Value &x = rows[place.row], &y = columns[place.column];
      if (!x)
        x = memref::LoadOp::create(
            b, loc, left, ValueRange{subgroup, plus(row, place.row), k});
      if (!y)
        y = memref::LoadOp::create(
            b, loc, right, ValueRange{subgroup, k, plus(column, place.column)});
      if (isa<FloatType>(wide))
        next.push_back(arith::AddFOp::create(
            b, loc, held, arith::MulFOp::create(b, loc, x, y)));
      else
        next.push_back(arith::AddIOp::create(
            b, loc, held, arith::MulIOp::create(b, loc, x, y)));
    }
    scf::YieldOp::create(b, loc, next);
  }
  Elements results(loop.getResults());
  if (isHalf)
    for (Value &each : results)
      each = arith::TruncFOp::create(b, loc, sum, each);
  op->getResult(0).replaceAllUsesWith(vectorOf(results));
}

void Lowering::elementwise(const Matrices &at) {
  auto op = cast<gpu::SubgroupMmaElementwiseOp>(at.op);
  using Kind = gpu::MMAElementwiseOp;
  Value x = op->getOperand(0);
  Value y = op->getNumOperands() > 1 ? op->getOperand(1) : Value();
  Value result;
  switch (op.getOpType()) {
  case Kind::ADDF:
    result = arith::AddFOp::create(b, loc, x, y);
    break;
  case Kind::MULF:
    result = arith::MulFOp::create(b, loc, x, y);
    break;
  case Kind::SUBF:
    result = arith::SubFOp::create(b, loc, x, y);
    break;
  case Kind::MAXF:
    result = arith::MaximumFOp::create(b, loc, x, y);
    break;
  case Kind::MINF:
    result = arith::MinimumFOp::create(b, loc, x, y);
    break;
  case Kind::DIVF:
    result = arith::DivFOp::create(b, loc, x, y);
    break;
  case Kind::ADDI:
    result = arith::AddIOp::create(b, loc, x, y);
    break;
  case Kind::MULI:
    result = arith::MulIOp::create(b, loc, x, y);
    break;
  case Kind::SUBI:
    result = arith::SubIOp::create(b, loc, x, y);
    break;
  case Kind::DIVS:
    result = arith::DivSIOp::create(b, loc, x, y);
    break;
  case Kind::DIVU:
    result = arith::DivUIOp::create(b, loc, x, y);
    break;
  case Kind::NEGATEF:
    result = arith::NegFOp::create(b, loc, x);
    break;
  case Kind::NEGATES:
    result = arith::SubIOp::create(
        b, loc, arith::ConstantOp::create(b, loc, b.getZeroAttr(x.getType())),
        x);
    break;
  case Kind::EXTF:
    result = x.getType() == op->getResult(0).getType()
                 ? x
                 : arith::ExtFOp::create(b, loc, op->getResult(0).getType(), x)
                       .getResult();
    break;
  }
  op->getResult(0).replaceAllUsesWith(result);
}

void Lowering::lower(const Matrices &at) {
  Operation *op = at.op;
  b.setInsertionPoint(op);
  loc = op->getLoc();
  if (auto load = dyn_cast<gpu::SubgroupMmaLoadMatrixOp>(op))
    move(at, load.getSrcMemref(), load.getIndices(),
         load.getLeadDimension().getSExtValue(), bool(load.getTranspose()),
         at.result, Value());
  else if (auto store = dyn_cast<gpu::SubgroupMmaStoreMatrixOp>(op))
    move(at, store.getDstMemref(), store.getIndices(),
         store.getLeadDimension().getSExtValue(), bool(store.getTranspose()),
         at.operands[0], op->getOperand(0));
  else if (isa<gpu::SubgroupMmaComputeOp>(op))
    product(at);
  else if (isa<gpu::SubgroupMmaElementwiseOp>(op))
    elementwise(at);
  else if (auto fill = dyn_cast<gpu::SubgroupMmaConstantMatrixOp>(op))
    op->getResult(0).replaceAllUsesWith(
        vector::BroadcastOp::create(b, loc, op->getResult(0).getType(),
                                    fill.getValue())
            .getResult());
  else if (auto extract = dyn_cast<gpu::SubgroupMmaExtractThreadLocalOp>(op))
    op->getResult(0).replaceAllUsesWith(
        vector::ExtractOp::create(b, loc, op->getOperand(0),
                                  OpFoldResult(extract.getIndices()[0]))
            .getResult());
  else if (auto insert = dyn_cast<gpu::SubgroupMmaInsertThreadLocalOp>(op))
    op->getResult(0).replaceAllUsesWith(
        vector::InsertOp::create(b, loc, insert.getValue(), op->getOperand(1),
                                 OpFoldResult(insert.getIndices()[0]))
            .getResult());
  else
    return; // carries matrices on
  op->erase();
}

void Lowering::run() {
  SmallVector<Matrices> found;
  entry.walk([&](Operation *op) {
    if (!isa<gpu::GPUDialect>(op->getDialect()))
      return;
    Matrices at{op, {}, {}};
    for (Type type : op->getOperandTypes())
      if (auto matrix = dyn_cast<gpu::MMAMatrixType>(type))
        at.operands.push_back(matrix);
    if (op->getNumResults() == 1)
      at.result = dyn_cast<gpu::MMAMatrixType>(op->getResult(0).getType());
    if (!at.operands.empty() || at.result)
      found.push_back(std::move(at));
  });
  AttrTypeReplacer replacer;
  replacer.addReplacement([](gpu::MMAMatrixType type) -> std::optional<Type> {
    return VectorType::get({layoutOf(type)->numElements()},
                           storedElement(type));
  });
  replacer.recursivelyReplaceElementsIn(entry, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  b.setInsertionPointToStart(&entry.getBody().front());
  loc = entry.getLoc();
  lane = gpu::LaneIdOp::create(b, loc, IntegerAttr());
  subgroup = gpu::SubgroupIdOp::create(b, loc, IntegerAttr());
  for (const Matrices &at : found)
    lower(at);
}

} // namespace

void lowerSubgroupMatrices(ModuleOp module, Dim3 block) {
  if (usesSubgroupMatrices(module))
    Lowering(module.lookupSymbol<func::FuncOp>("entry"), block).run();
}

} // namespace mgpu::kernels
