// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Systems of equations with triangular matrices: a thread for each right side,
// which finds its unknowns one after the other.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

class Substitution {
public:
  Substitution(Lowering &low, TriangularSolveOp op)
      : low(low), op(op), matrix(low[op.getA()]),
        type(signlessTensor(op.getB())), rank(type.getRank()),
        along(rank - (op.getLeftSide() ? 2 : 1)),
        isSwapped(op.getLeftSide() ==
                  (op.getTransposeA() != Transpose::NO_TRANSPOSE)),
        isForward(op.getLower() != isSwapped) {}
  Value make();

private:
  ThreadPart partOf(Value thread);
  SmallVector<Value> solve(Value part);
  /// The place of unknown `number` of those that are found.
  Value unknown(Value number) {
    if (isForward)
      return number;
    Value last = low.index(type.getDimSize(along) - 1);
    return arith::SubIOp::create(low.b, last, number);
  }
  Value coefficient(Value row, Value column) {
    SmallVector<Value> at = batch;
    at.push_back(isSwapped ? column : row);
    at.push_back(isSwapped ? row : column);
    return tensor::ExtractOp::create(low.b, matrix, at);
  }
  SmallVector<Value> inPart(Value place) {
    SmallVector<Value> at(rank, low.index(0));
    at[along] = place;
    return at;
  }
  /// A loop from 0 to `end` that carries one value.
  Value loop(Value end, Value init,
             llvm::function_ref<Value(Value i, Value carried)> body);

  Lowering &low;
  TriangularSolveOp op;
  Value matrix;
  RankedTensorType type;
  int64_t rank, along; ///< the dimension of unknowns
  bool isSwapped, isForward;
  SmallVector<Value> batch;
};

Value Substitution::loop(Value end, Value init,
                         llvm::function_ref<Value(Value, Value)> body) {
  ImplicitLocOpBuilder &b = low.b;
  auto made = scf::ForOp::create(
      b, low.index(0), end, low.index(1), init,
      [&](OpBuilder &nested, Location, Value i, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        scf::YieldOp::create(b, body(i, carried[0]));
      });
  return made.getResult(0);
}

ThreadPart Substitution::partOf(Value thread) {
  ImplicitLocOpBuilder &b = low.b;
  ThreadPart part;
  part.offsets.assign(rank, b.getIndexAttr(0));
  part.sizes.assign(rank, b.getIndexAttr(1));
  part.sizes[along] = b.getIndexAttr(type.getDimSize(along));
  SmallVector<Value> at(rank);
  for (int64_t k = rank - 1; k >= 0; --k) {
    if (k == along)
      continue;
    Value size = low.index(type.getDimSize(k));
    at[k] = arith::RemUIOp::create(b, thread, size);
    thread = arith::DivUIOp::create(b, thread, size);
    part.offsets[k] = at[k];
  }
  batch.assign(at.begin(), at.begin() + rank - 2);
  return part;
}

SmallVector<Value> Substitution::solve(Value part) {
  ImplicitLocOpBuilder &b = low.b;
  Value size = low.index(type.getDimSize(along));
  return {loop(size, part, [&](Value number, Value found) -> Value {
    Value row = unknown(number);
    Value side = tensor::ExtractOp::create(b, found, inPart(row));
    Value rest = loop(number, side, [&](Value other, Value sum) -> Value {
      Value column = unknown(other);
      Value x = tensor::ExtractOp::create(b, found, inPart(column));
      Value product = arith::MulFOp::create(b, coefficient(row, column), x);
      return arith::SubFOp::create(b, sum, product);
    });
    if (!op.getUnitDiagonal())
      rest = arith::DivFOp::create(b, rest, coefficient(row, row));
    return tensor::InsertOp::create(b, rest, found, inPart(row));
  })};
}

Value Substitution::make() {
  int64_t threads = type.getNumElements();
  if (threads == 0)
    return low[op.getB()];
  threads /= type.getDimSize(along);
  return low.inThreads(
      threads, low[op.getB()], [&](Value thread) { return partOf(thread); },
      [&](ValueRange parts) { return solve(parts[0]); })[0];
}

LogicalResult lowerTriangularSolve(Lowering &low, TriangularSolveOp op) {
  low.set(op.getResult(), Substitution(low, op).make());
  return success();
}

} // namespace

ArrayRef<NamedFamily> solveFamily() {
  static const NamedFamily all[] = {
      family<TriangularSolveOp, lowerTriangularSolve>()};
  return all;
}

} // namespace mgpu::conversion
