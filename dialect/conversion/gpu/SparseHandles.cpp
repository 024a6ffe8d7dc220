// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/SparseHandles.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

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

SparseLaunches::SparseLaunches(gpu::AsyncOpInterface op)
    : op(op), b(op), tokens(op.getAsyncDependencies()) {}

gpu::LaunchOp
SparseLaunches::add(StringRef name, Value count,
                    function_ref<void(OpBuilder &b, Value k)> body) {
  Location loc = op->getLoc();
  constexpr int64_t most = 128; // threads of a block
  std::optional<int64_t> known = getConstantIntValue(count);
  if (known && *known <= 0)
    return {};
  const int64_t size = known ? std::min(*known, most) : most;
  Value threads = arith::ConstantIndexOp::create(b, loc, size);
  Value blocks = b.createOrFold<arith::CeilDivUIOp>(loc, count, threads);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Type token;
  if (op.getAsyncToken())
    token = gpu::AsyncTokenType::get(b.getContext());
  auto launch = gpu::LaunchOp::create(b, loc, blocks, one, one, threads, one,
                                      one, Value(), token, tokens);
  launch->setAttr("mgpu.name", b.getStringAttr(name));
  tokens.clear();
  if (token)
    tokens.push_back(launch.getAsyncToken());
  OpBuilder in = OpBuilder::atBlockBegin(&launch.getBody().front());
  auto end = gpu::TerminatorOp::create(in, loc);
  in.setInsertionPoint(end);
  Value k = gpu::GlobalIdOp::create(in, loc, gpu::Dimension::x);
  if (!known || *known % size != 0) {
    Value inside =
        arith::CmpIOp::create(in, loc, arith::CmpIPredicate::ult, k, count);
    auto guard = scf::IfOp::create(in, loc, inside, /*withElseRegion=*/false);
    in.setInsertionPointToStart(guard.thenBlock());
  }
  body(in, k);
  return launch;
}

Value SparseLaunches::countOf(const SparseMatrix &matrix) {
  Location loc = op->getLoc();
  auto type = MemRefType::get({}, b.getIndexType());
  Value memory =
      gpu::AllocOp::create(b, loc, type, Type(), ValueRange(), ValueRange(),
                           ValueRange(), /*hostShared=*/true)
          .getMemref();
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  add("count", one, [&](OpBuilder &in, Value) {
    Value count = indexAt(in, matrix.positions, matrix.rows);
    memref::StoreOp::create(in, loc, count, memory, ValueRange());
  });
  if (op.getAsyncToken())
    gpu::WaitOp::create(b, loc, Type(), tokens);
  tokens.clear();
  return memref::LoadOp::create(b, loc, memory);
}

void SparseLaunches::finish() {
  if (Value token = op.getAsyncToken()) {
    if (tokens.size() != 1)
      tokens = {gpu::WaitOp::create(b, op->getLoc(), token.getType(), tokens)
                    .getAsyncToken()};
    token.replaceAllUsesWith(tokens.front());
  } else if (!tokens.empty()) {
    gpu::WaitOp::create(b, op->getLoc(), Type(), tokens);
  }
}

const SparseMatrix *SparseHandles::matrix(Operation *op, Value handle) {
  auto found = matrices.find(handle);
  if (found != matrices.end())
    return &found->second;
  ir::emitUnsupported(op) << "uses a sparse matrix whose making the text of "
                             "this function does not show";
  return nullptr;
}

const DenseTensor *SparseHandles::tensor(Operation *op, Value handle,
                                         size_t dimensions) {
  auto found = tensors.find(handle);
  if (found == tensors.end()) {
    ir::emitUnsupported(op) << "uses a dense tensor whose making the text of "
                               "this function does not show";
    return nullptr;
  }
  if (found->second.sizes.size() == dimensions)
    return &found->second;
  ir::emitProgramError(op) << "takes a dense tensor of " << dimensions
                           << (dimensions == 1 ? " dimension" : " dimensions")
                           << ", not of " << found->second.sizes.size();
  return nullptr;
}

/// Memory as one row of indices or numbers; null, after a diagnostic, where it
/// is not.
static Value rowOf(Operation *op, Value memref, bool isIndex) {
  OpBuilder b(op);
  Value flat = flattened(b, memref);
  Type element = cast<BaseMemRefType>(memref.getType()).getElementType();
  const bool fits = isIndex ? element.isIntOrIndex()
                            : element.isIntOrFloat() && !element.isInteger(1);
  if (flat && fits)
    return flat;
  ir::emitUnsupported(op) << "takes memory of type " << memref.getType()
                          << ", not " << (isIndex ? "indices" : "numbers")
                          << " that lie side by side";
  return {};
}

LogicalResult SparseHandles::add(Operation *op, Value handle,
                                 SparseMatrix matrix) {
  for (Value *memory : {&matrix.positions, &matrix.indices})
    if (*memory && !(*memory = rowOf(op, *memory, /*isIndex=*/true)))
      return failure();
  matrix.values = rowOf(op, matrix.values, /*isIndex=*/false);
  if (!matrix.values)
    return failure();
  matrices[handle] = matrix;
  return success();
}

LogicalResult SparseHandles::make(gpu::CreateDnTensorOp op, SparseLaunches &) {
  Value values = rowOf(op, op.getMemref(), /*isIndex=*/false);
  if (!values)
    return failure();
  tensors[op.getDnTensor()] = {values, SmallVector<Value>(op.getDims())};
  return success();
}

/// The parts that operations which make matrices of single entries have alike.
template <typename Op>
static SparseMatrix matrixOf(Op op, SparseMatrix::Form form,
                             bool hasRows = true) {
  SparseMatrix matrix{form, hasRows};
  matrix.rows = op.getRows();
  matrix.columns = op.getCols();
  matrix.entries = op.getNnz();
  matrix.values = op.getValues();
  return matrix;
}

LogicalResult SparseHandles::make(gpu::CreateCooOp op, SparseLaunches &) {
  SparseMatrix matrix = matrixOf(op, SparseMatrix::Form::Coo);
  matrix.positions = op.getRowIdxs();
  matrix.indices = op.getColIdxs();
  return add(op, op.getSpmat(), matrix);
}

LogicalResult SparseHandles::make(gpu::CreateCooAoSOp op, SparseLaunches &) {
  SparseMatrix matrix = matrixOf(op, SparseMatrix::Form::Pairs);
  matrix.indices = op.getIdxs();
  return add(op, op.getSpmat(), matrix);
}

LogicalResult SparseHandles::make(gpu::CreateCsrOp op, SparseLaunches &) {
  SparseMatrix matrix = matrixOf(op, SparseMatrix::Form::Compressed);
  matrix.positions = op.getRowPos();
  matrix.indices = op.getColIdxs();
  return add(op, op.getSpmat(), matrix);
}

LogicalResult SparseHandles::make(gpu::CreateCscOp op, SparseLaunches &) {
  SparseMatrix matrix =
      matrixOf(op, SparseMatrix::Form::Compressed, /*hasRows=*/false);
  matrix.positions = op.getColPos();
  matrix.indices = op.getRowIdxs();
  return add(op, op.getSpmat(), matrix);
}

LogicalResult SparseHandles::make(gpu::CreateBsrOp op, SparseLaunches &) {
  OpBuilder b(op);
  auto product = [&](Value x, Value y) -> Value {
    return b.createOrFold<arith::MulIOp>(op.getLoc(), x, y);
  };
  SparseMatrix matrix{SparseMatrix::Form::Blocks};
  matrix.gridRows = op.getBrows();
  matrix.blockRows = op.getRBlockSize();
  matrix.blockColumns = op.getCBlockSize();
  matrix.rows = product(op.getBrows(), op.getRBlockSize());
  matrix.columns = product(op.getBcols(), op.getCBlockSize());
  matrix.entries =
      product(product(op.getBnnz(), op.getRBlockSize()), op.getCBlockSize());
  matrix.positions = op.getBRowPos();
  matrix.indices = op.getBColIdxs();
  matrix.values = op.getValues();
  return add(op, op.getSpmat(), matrix);
}

/// Keeps two of each four values side by side, those of the largest sizes, the
/// first ones where sizes are equal.
static void prune(SparseLaunches &launches, const SparseMatrix &matrix) {
  OpBuilder &b = launches.builder();
  Location loc = matrix.values.getLoc();
  Value four = arith::ConstantIndexOp::create(b, loc, 4);
  Value all = b.createOrFold<arith::MulIOp>(loc, matrix.rows, matrix.columns);
  Value strips = b.createOrFold<arith::DivUIOp>(loc, all, four);
  launches.add("prune", strips, [&](OpBuilder &in, Value strip) {
    Value first = arith::MulIOp::create(in, loc, strip, four);
    SmallVector<Value> places, sizes;
    for (int64_t k = 0; k < 4; ++k) {
      Value step = arith::ConstantIndexOp::create(in, loc, k);
      places.push_back(arith::AddIOp::create(in, loc, first, step));
      Value value =
          memref::LoadOp::create(in, loc, matrix.values, places.back());
      sizes.push_back(math::AbsFOp::create(in, loc, value));
    }
    Value one = arith::ConstantIntOp::create(in, loc, 1, 32);
    Value none = arith::ConstantIntOp::create(in, loc, 0, 32);
    Value two = arith::ConstantIntOp::create(in, loc, 2, 32);
    Value zero = arith::ConstantOp::create(
        in, loc, in.getZeroAttr(sizes.front().getType()));
    for (size_t k = 0; k < 4; ++k) {
      Value before = none; // how many of the others stay rather
      for (size_t other = 0; other < 4; ++other) {
        if (other == k)
          continue;
        Value wins = arith::CmpFOp::create(
            in, loc,
            other < k ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT,
            sizes[other], sizes[k]);
        Value counted = arith::SelectOp::create(in, loc, wins, one, none);
        before = arith::AddIOp::create(in, loc, before, counted);
      }
      Value goes = arith::CmpIOp::create(in, loc, arith::CmpIPredicate::sge,
                                         before, two);
      auto guard = scf::IfOp::create(in, loc, goes, /*withElseRegion=*/false);
      OpBuilder then = OpBuilder::atBlockBegin(guard.thenBlock());
      memref::StoreOp::create(then, loc, zero, matrix.values, places[k]);
    }
  });
}

LogicalResult SparseHandles::make(gpu::Create2To4SpMatOp op,
                                  SparseLaunches &launches) {
  SparseMatrix matrix{SparseMatrix::Form::TwoToFour};
  matrix.rows = op.getRows();
  matrix.columns = op.getCols();
  OpBuilder b(op);
  matrix.entries =
      b.createOrFold<arith::MulIOp>(op.getLoc(), matrix.rows, matrix.columns);
  matrix.values = op.getMemref();
  std::optional<int64_t> columns = getConstantIntValue(matrix.columns);
  if (columns && *columns % 4 != 0)
    return ir::emitProgramError(op)
           << "has " << *columns << " columns, which is no multiple of four";
  if (!isa<FloatType>(
          cast<BaseMemRefType>(matrix.values.getType()).getElementType()))
    return ir::emitUnsupported(op) << "has values that are not floats";
  if (failed(add(op, op.getSpMat(), matrix)))
    return failure();
  if (op.getPruneFlag() != gpu::Prune2To4SpMatFlag::NONE)
    prune(launches, matrices[op.getSpMat()]);
  return success();
}

LogicalResult SparseHandles::make(gpu::SetCsrPointersOp op, SparseLaunches &) {
  const SparseMatrix *before = matrix(op, op.getSpmat());
  if (!before)
    return failure();
  Operation *maker = op.getSpmat().getDefiningOp();
  if (!maker || maker->getBlock() != op->getBlock() ||
      before->form != SparseMatrix::Form::Compressed || !before->hasRows)
    return ir::emitUnsupported(op)
           << "gives memory to what no gpu.create_csr beside it made";
  SparseMatrix matrix = *before;
  matrix.positions = op.getPositions();
  matrix.indices = op.getCoordinates();
  matrix.values = op.getValues();
  return add(op, op.getSpmat(), matrix);
}

} // namespace mgpu::conversion
