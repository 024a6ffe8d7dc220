// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/SparseMatrix.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <numeric>

namespace mgpu::conversion {

using namespace mlir;

Value flattened(OpBuilder &b, Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || type.getRank() == 0)
    return {};
  if (type.getRank() == 1)
    return memref;
  if (!type.getLayout().isIdentity())
    return {};
  ReassociationIndices all(size_t(type.getRank()));
  std::iota(all.begin(), all.end(), 0);
  return memref::CollapseShapeOp::create(b, memref.getLoc(), memref,
                                         SmallVector{all});
}

Value indexAt(OpBuilder &b, Value memory, Value at) {
  Location loc = at.getLoc();
  Value value = memref::LoadOp::create(b, loc, memory, at);
  return value.getType().isIndex()
             ? value
             : arith::IndexCastOp::create(b, loc, b.getIndexType(), value)
                   .getResult();
}

Value numberAt(OpBuilder &b, Value memory, Value at, Type type) {
  Value value = memref::LoadOp::create(b, at.getLoc(), memory, at);
  return converted(b, value, type);
}

Value converted(OpBuilder &b, Value number, Type type) {
  Location loc = number.getLoc();
  Type from = number.getType();
  if (from == type)
    return number;
  const unsigned before = from.getIntOrFloatBitWidth(),
                 after = type.getIntOrFloatBitWidth();
  if (isa<IntegerType>(from) && isa<FloatType>(type))
    return arith::SIToFPOp::create(b, loc, type, number);
  if (isa<IntegerType>(from))
    return before < after
               ? arith::ExtSIOp::create(b, loc, type, number).getResult()
               : arith::TruncIOp::create(b, loc, type, number).getResult();
  if (before == after) { // f16 and bf16
    Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), number);
    return arith::TruncFOp::create(b, loc, type, wide);
  }
  return before < after
             ? arith::ExtFOp::create(b, loc, type, number).getResult()
             : arith::TruncFOp::create(b, loc, type, number).getResult();
}

namespace {

using Values = SmallVector<Value>;

/// The loops over the entries of a row, with what they share.
class RowLoops {
public:
  RowLoops(const SparseMatrix &matrix, Location loc, EntryBody body)
      : matrix(matrix), loc(loc), body(body) {}

  Values inOrder(OpBuilder &b, Value row, ValueRange carried);
  Values byLooking(OpBuilder &b, Value row, ValueRange carried);
  Values dense(OpBuilder &b, Value row, ValueRange carried, bool isTransposed);
  Values pairs(OpBuilder &b, Value row, ValueRange carried, bool isTransposed);
  Values blocks(OpBuilder &b, Value row, ValueRange carried);
  Values blocksByLooking(OpBuilder &b, Value row, ValueRange carried);

private:
  using LoopBody =
      function_ref<Values(OpBuilder &b, Value k, ValueRange carried)>;
  Values loop(OpBuilder &b, Value from, Value to, ValueRange carried,
              LoopBody inner);
  /// Loops over a row, or a column, of the form's own order.
  Values along(OpBuilder &b, Value major, ValueRange carried, LoopBody inner);
  Values where(OpBuilder &b, Value first, Value second, ValueRange carried,
               function_ref<Values(OpBuilder &b)> then);

  Value constant(OpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value plus(OpBuilder &b, Value x, Value y) {
    return arith::AddIOp::create(b, loc, x, y);
  }
  Value times(OpBuilder &b, Value x, Value y) {
    return arith::MulIOp::create(b, loc, x, y);
  }
  Value quotient(OpBuilder &b, Value x, Value y) {
    return arith::DivUIOp::create(b, loc, x, y);
  }
  Value rest(OpBuilder &b, Value x, Value y) {
    return arith::RemUIOp::create(b, loc, x, y);
  }

  const SparseMatrix &matrix;
  Location loc;
  EntryBody body;
};

Values RowLoops::loop(OpBuilder &b, Value from, Value to, ValueRange carried,
                      LoopBody inner) {
  auto made = scf::ForOp::create(
      b, loc, from, to, constant(b, 1), carried,
      [&](OpBuilder &in, Location, Value k, ValueRange values) {
        scf::YieldOp::create(in, loc, inner(in, k, values));
      });
  return Values(made.getResults());
}

Values RowLoops::along(OpBuilder &b, Value major, ValueRange carried,
                       LoopBody inner) {
  Value from = indexAt(b, matrix.positions, major);
  Value to = indexAt(b, matrix.positions, plus(b, major, constant(b, 1)));
  return loop(b, from, to, carried, inner);
}

Values RowLoops::where(OpBuilder &b, Value first, Value second,
                       ValueRange carried,
                       function_ref<Values(OpBuilder &b)> then) {
  Value same =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, first, second);
  Values before(carried);
  auto made = scf::IfOp::create(
      b, loc, same,
      [&](OpBuilder &in, Location) { scf::YieldOp::create(in, loc, then(in)); },
      [&](OpBuilder &in, Location) { scf::YieldOp::create(in, loc, before); });
  return Values(made.getResults());
}

Values RowLoops::inOrder(OpBuilder &b, Value row, ValueRange carried) {
  return along(b, row, carried,
               [&](OpBuilder &in, Value at, ValueRange values) {
                 return body(in, indexAt(in, matrix.indices, at), at, values);
               });
}

Values RowLoops::byLooking(OpBuilder &b, Value row, ValueRange carried) {
  Value majors = matrix.hasRows ? matrix.rows : matrix.columns;
  return loop(b, constant(b, 0), majors, carried,
              [&](OpBuilder &outer, Value major, ValueRange values) {
                return along(outer, major, values,
                             [&](OpBuilder &in, Value at, ValueRange inside) {
                               return where(in, indexAt(in, matrix.indices, at),
                                            row, inside, [&](OpBuilder &then) {
                                              return body(then, major, at,
                                                          inside);
                                            });
                             });
              });
}

Values RowLoops::dense(OpBuilder &b, Value row, ValueRange carried,
                       bool isTransposed) {
  Value end = isTransposed ? matrix.rows : matrix.columns;
  return loop(b, constant(b, 0), end, carried,
              [&](OpBuilder &in, Value column, ValueRange values) {
                Value line = isTransposed ? column : row;
                Value place = isTransposed ? row : column;
                Value at = plus(in, times(in, line, matrix.columns), place);
                return body(in, column, at, values);
              });
}

Values RowLoops::pairs(OpBuilder &b, Value row, ValueRange carried,
                       bool isTransposed) {
  return loop(b, constant(b, 0), matrix.entries, carried,
              [&](OpBuilder &in, Value at, ValueRange values) {
                Value first, second;
                if (matrix.form == SparseMatrix::Form::Coo) {
                  first = indexAt(in, matrix.positions, at);
                  second = indexAt(in, matrix.indices, at);
                } else {
                  Value pair = times(in, at, constant(in, 2));
                  first = indexAt(in, matrix.indices, pair);
                  second = indexAt(in, matrix.indices,
                                   plus(in, pair, constant(in, 1)));
                }
                if (isTransposed)
                  std::swap(first, second);
                return where(in, first, row, values, [&](OpBuilder &then) {
                  return body(then, second, at, values);
                });
              });
}

Values RowLoops::blocks(OpBuilder &b, Value row, ValueRange carried) {
  Value inside = rest(b, row, matrix.blockRows);
  return along(
      b, quotient(b, row, matrix.blockRows), carried,
      [&](OpBuilder &outer, Value block, ValueRange values) {
        Value first = times(outer, indexAt(outer, matrix.indices, block),
                            matrix.blockColumns);
        Value line = plus(outer, times(outer, block, matrix.blockRows), inside);
        Value start = times(outer, line, matrix.blockColumns);
        return loop(outer, constant(outer, 0), matrix.blockColumns, values,
                    [&](OpBuilder &in, Value k, ValueRange inner) {
                      return body(in, plus(in, first, k), plus(in, start, k),
                                  inner);
                    });
      });
}

Values RowLoops::blocksByLooking(OpBuilder &b, Value row, ValueRange carried) {
  Value wanted = quotient(b, row, matrix.blockColumns);
  Value inside = rest(b, row, matrix.blockColumns);
  return loop(
      b, constant(b, 0), matrix.gridRows, carried,
      [&](OpBuilder &outer, Value major, ValueRange values) {
        return along(
            outer, major, values,
            [&](OpBuilder &middle, Value block, ValueRange found) {
              Value column = indexAt(middle, matrix.indices, block);
              return where(middle, column, wanted, found, [&](OpBuilder &then) {
                return loop(
                    then, constant(then, 0), matrix.blockRows, found,
                    [&](OpBuilder &in, Value k, ValueRange inner) {
                      Value line =
                          plus(in, times(in, block, matrix.blockRows), k);
                      Value at = plus(in, times(in, line, matrix.blockColumns),
                                      inside);
                      Value place =
                          plus(in, times(in, major, matrix.blockRows), k);
                      return body(in, place, at, inner);
                    });
              });
            });
      });
}

} // namespace

SmallVector<Value> forEntriesOfRow(OpBuilder &b, const SparseMatrix &matrix,
                                   bool isTransposed, Value row,
                                   ValueRange carried, EntryBody body) {
  RowLoops loops(matrix, row.getLoc(), body);
  const bool isOrdered = matrix.hasRows != isTransposed;
  switch (matrix.form) {
  case SparseMatrix::Form::Coo:
  case SparseMatrix::Form::Pairs:
    return loops.pairs(b, row, carried, isTransposed);
  case SparseMatrix::Form::Compressed:
    return isOrdered ? loops.inOrder(b, row, carried)
                     : loops.byLooking(b, row, carried);
  case SparseMatrix::Form::Blocks:
    return isOrdered ? loops.blocks(b, row, carried)
                     : loops.blocksByLooking(b, row, carried);
  case SparseMatrix::Form::TwoToFour:
    return loops.dense(b, row, carried, isTransposed);
  }
  llvm_unreachable("all forms are covered");
}

} // namespace mgpu::conversion
