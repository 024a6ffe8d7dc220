// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/SparseHandles.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mgpu::conversion {

using namespace mlir;

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
