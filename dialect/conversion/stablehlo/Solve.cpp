// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Systems of equations with triangular matrices: a thread for each right side,
// which finds its unknowns one after the other. Triangular factors: a thread
// for each matrix.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

/// A loop from 0 to `end` that carries one value; `body` builds at `b`.
Value loop(ImplicitLocOpBuilder &b, Value end, Value init,
           llvm::function_ref<Value(Value i, Value carried)> body) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value one = arith::ConstantIndexOp::create(b, 1);
  auto made = scf::ForOp::create(
      b, zero, end, one, init,
      [&](OpBuilder &nested, Location, Value i, ValueRange carried) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPoint(nested.getInsertionBlock(),
                            nested.getInsertionPoint());
        scf::YieldOp::create(b, body(i, carried[0]));
      });
  return made.getResult(0);
}

/// All of the dimensions `whole`, and one index of each other one: threads are
/// numbered along those, the last one fastest.
ThreadPart partOfThread(Lowering &low, RankedTensorType type,
                        ArrayRef<int64_t> whole, Value thread) {
  ImplicitLocOpBuilder &b = low.b;
  ThreadPart part;
  part.offsets.assign(type.getRank(), b.getIndexAttr(0));
  part.sizes.assign(type.getRank(), b.getIndexAttr(1));
  int64_t outermost = 0; // of those of which there is one index
  while (llvm::is_contained(whole, outermost))
    ++outermost;
  for (int64_t k = type.getRank() - 1; k >= 0; --k) {
    if (llvm::is_contained(whole, k)) {
      part.sizes[k] = b.getIndexAttr(type.getDimSize(k));
      continue;
    }
    if (k == outermost) {
      part.offsets[k] = thread;
      continue;
    }
    Value size = low.index(type.getDimSize(k));
    part.offsets[k] = arith::RemUIOp::create(b, thread, size).getResult();
    thread = arith::DivUIOp::create(b, thread, size);
  }
  return part;
}

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

  Lowering &low;
  TriangularSolveOp op;
  Value matrix;
  RankedTensorType type;
  int64_t rank, along; ///< the dimension of unknowns
  bool isSwapped, isForward;
  SmallVector<Value> batch;
};

ThreadPart Substitution::partOf(Value thread) {
  ThreadPart part = partOfThread(low, type, along, thread);
  batch = llvm::map_to_vector(ArrayRef(part.offsets).take_front(rank - 2),
                              [](OpFoldResult at) { return cast<Value>(at); });
  return part;
}

SmallVector<Value> Substitution::solve(Value part) {
  ImplicitLocOpBuilder &b = low.b;
  Value size = low.index(type.getDimSize(along));
  return {loop(b, size, part, [&](Value number, Value found) -> Value {
    Value row = unknown(number);
    Value side = tensor::ExtractOp::create(b, found, inPart(row));
    Value rest = loop(b, number, side, [&](Value other, Value sum) -> Value {
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

/// L with L * transposed(L) = A, by columns: L[i, j] of A[i, j] less the sum of
/// L[i, k] * L[j, k] for k < j. The other triangle is 0.
class Factor {
public:
  Factor(Lowering &low, CholeskyOp op)
      : low(low), b(low.b), isLower(op.getLower()),
        type(signlessTensor(op.getA())) {}

  ThreadPart partOf(Value thread) {
    return partOfThread(low, type, {type.getRank() - 2, type.getRank() - 1},
                        thread);
  }
  Value make(Value matrix);

private:
  SmallVector<Value> at(Value row, Value column) {
    SmallVector<Value> place(type.getRank() - 2, low.index(0));
    place.push_back(isLower ? row : column);
    place.push_back(isLower ? column : row);
    return place;
  }
  Value read(Value matrix, Value row, Value column) {
    return tensor::ExtractOp::create(b, matrix, at(row, column));
  }
  Value element(Value matrix, Value row, Value column);

  Lowering &low;
  ImplicitLocOpBuilder &b;
  bool isLower;
  RankedTensorType type;
};

Value Factor::element(Value matrix, Value row, Value column) {
  Value rest =
      loop(b, column, read(matrix, row, column), [&](Value k, Value sum) {
        Value product = arith::MulFOp::create(b, read(matrix, row, k),
                                              read(matrix, column, k));
        return arith::SubFOp::create(b, sum, product).getResult();
      });
  auto is = [&](arith::CmpIPredicate relation) -> Value {
    return arith::CmpIOp::create(b, relation, row, column);
  };
  Value root = math::SqrtOp::create(b, rest);
  Value quotient = arith::DivFOp::create(b, rest, read(matrix, column, column));
  Value zero =
      arith::ConstantOp::create(b, b.getFloatAttr(type.getElementType(), 0.0));
  Value below =
      arith::SelectOp::create(b, is(arith::CmpIPredicate::eq), root, quotient);
  return arith::SelectOp::create(b, is(arith::CmpIPredicate::ult), zero, below);
}

/// One loop over all elements by columns, as bufferization finds two that carry
/// the matrix to conflict. The element of the diagonal comes before those below
/// it.
Value Factor::make(Value matrix) {
  const int64_t rows = type.getShape().back();
  Value size = low.index(rows);
  return loop(b, low.index(rows * rows), matrix, [&](Value i, Value found) {
    Value column = arith::DivUIOp::create(b, i, size);
    Value row = arith::RemUIOp::create(b, i, size);
    return tensor::InsertOp::create(b, element(found, row, column), found,
                                    at(row, column))
        .getResult();
  });
}

LogicalResult lowerCholesky(Lowering &low, CholeskyOp op) {
  Factor factor(low, op);
  int64_t threads = 1;
  for (int64_t size : signlessTensor(op.getA()).getShape().drop_back(2))
    threads *= size;
  if (signlessTensor(op.getA()).getNumElements() == 0) {
    low.set(op.getResult(), low[op.getA()]);
    return success();
  }
  low.set(op.getResult(),
          low.inThreads(
              threads, low[op.getA()],
              [&](Value thread) { return factor.partOf(thread); },
              [&](ValueRange parts) -> SmallVector<Value> {
                return {factor.make(parts[0])};
              })[0]);
  return success();
}

} // namespace

ArrayRef<NamedFamily> solveFamily() {
  static const NamedFamily all[] = {
      family<TriangularSolveOp, lowerTriangularSolve>(),
      family<CholeskyOp, lowerCholesky>()};
  return all;
}

} // namespace mgpu::conversion
