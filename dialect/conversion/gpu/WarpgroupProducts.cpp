// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of warpgroups, which are four subgroups of 32 threads.
#include "dialect/conversion/gpu/BulkOps.h"
#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

constexpr int64_t warpgroupSize = 128, tileRows = 64;

/// Index arithmetic at one place.
class Indices {
public:
  Indices(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  Value number(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value times(Value x, int64_t y) {
    return arith::MulIOp::create(b, loc, x, number(y));
  }
  Value quotient(Value x, int64_t y) {
    return arith::DivUIOp::create(b, loc, x, number(y));
  }
  Value rest(Value x, int64_t y) {
    return arith::RemUIOp::create(b, loc, x, number(y));
  }

private:
  OpBuilder &b;
  Location loc;
};

/// The row and column of element `k` of this thread, of matrices with so many
/// columns.
std::pair<Value, Value> placeOf(OpBuilder &b, Location loc, Value k,
                                int64_t columns) {
  Indices at(b, loc);
  Value lane = gpu::LaneIdOp::create(b, loc, nullptr);
  Value subgroup = gpu::SubgroupIdOp::create(b, loc, nullptr);
  const int64_t perTile = tileRows * columns / warpgroupSize;
  Value within = at.rest(k, perTile), four = at.rest(within, 4);
  Value row = at.plus(at.times(at.quotient(k, perTile), tileRows),
                      at.times(at.rest(subgroup, 4), 16));
  row = at.plus(row, at.quotient(lane, 4));
  row = at.plus(row, at.times(at.quotient(four, 2), 8));
  Value column = at.plus(at.times(at.quotient(within, 4), 8),
                         at.times(at.rest(lane, 4), 2));
  return {row, at.plus(column, at.rest(four, 2))};
}

/// Memory of this thread that holds the elements of a vector.
Value memoryOf(OpBuilder &b, Location loc, Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Value memory = memref::AllocaOp::create(
      b, loc, MemRefType::get(type.getShape(), type.getElementType()));
  vector::StoreOp::create(
      b, loc, vector, memory,
      arith::ConstantIndexOp::create(b, loc, 0).getResult());
  return memory;
}

scf::ForOp loopTo(OpBuilder &b, Location loc, int64_t end,
                  ValueRange carried = {}) {
  Indices at(b, loc);
  return scf::ForOp::create(b, loc, at.number(0), at.number(end), at.number(1),
                            carried);
}

int64_t sizeOf(const WarpgroupMatrix &matrix, unsigned dim) {
  return cast<MemRefType>(matrix.memory.getType()).getDimSize(dim);
}

Value loadWide(OpBuilder &b, Location loc, const WarpgroupMatrix &matrix,
               Value row, Value column) {
  Value value =
      memref::LoadOp::create(b, loc, matrix.memory, ValueRange{row, column});
  return arith::ExtFOp::create(b, loc, b.getF32Type(), value);
}

} // namespace

VectorType accumulatorType(nvgpu::WarpgroupAccumulatorType accumulator) {
  VectorType matrix = accumulator.getFragmented();
  return VectorType::get({matrix.getNumElements() / warpgroupSize},
                         matrix.getElementType());
}

bool hasForm(nvgpu::WarpgroupMmaOp op, const WarpgroupMatrix &a,
             const WarpgroupMatrix &b) {
  auto isFit = [](const WarpgroupMatrix &matrix) {
    auto type = dyn_cast<MemRefType>(matrix.memory.getType());
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    return type && type.hasStaticShape() && type.getRank() == 2 &&
           (type.getElementType().isF16() || type.getElementType().isBF16()) &&
           succeeded(type.getStridesAndOffset(strides, offset)) &&
           strides[1] == 1 && strides[0] == type.getDimSize(1) &&
           matrix.map.getSwizzle() == nvgpu::TensorMapSwizzleKind::SWIZZLE_128B;
  };
  constexpr int64_t span = 64; // elements of a row
  return isFit(a) && isFit(b) && !op.getTransposeA() && op.getTransposeB() &&
         cast<VectorType>(op->getResult(0).getType())
             .getElementType()
             .isF32() &&
         sizeOf(a, 0) % tileRows == 0 && sizeOf(a, 1) == span &&
         sizeOf(b, 0) == span && sizeOf(b, 1) % span == 0 &&
         b.map.getTensor().getShape() == ArrayRef<int64_t>{span, span};
}

Value warpgroupProduct(OpBuilder &b, nvgpu::WarpgroupMmaOp op,
                       const WarpgroupMatrix &left,
                       const WarpgroupMatrix &right, Value sums) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(sums.getType());
  const int64_t depth = sizeOf(left, 1), columns = sizeOf(right, 1);
  constexpr int64_t bytes = 2;
  Value memory = memoryOf(b, loc, sums);
  auto outer = loopTo(b, loc, type.getNumElements());
  ir::setMark(outer, ir::Mark::WarpgroupProduct);
  OpBuilder in = OpBuilder::atBlockBegin(outer.getBody());
  Value k = outer.getInductionVar();
  auto [row, column] = placeOf(in, loc, k, columns);
  Value before = memref::LoadOp::create(in, loc, memory, k);
  auto inner = loopTo(in, loc, depth, before);
  OpBuilder deep = OpBuilder::atBlockBegin(inner.getBody());
  Indices at(deep, loc);
  Value step = inner.getInductionVar();
  Value x = loadWide(deep, loc, left, row,
                     swizzled(deep, step, row, bytes, left.map.getSwizzle()));
  // B lies as panels of 64 columns, row after row, one after the other.
  Value place = swizzled(deep, at.rest(column, depth), step, bytes,
                         right.map.getSwizzle());
  Value line = at.plus(at.times(at.quotient(column, depth), depth), step);
  Value flat = at.plus(at.times(line, depth), place);
  Value y = loadWide(deep, loc, right, at.quotient(flat, columns),
                     at.rest(flat, columns));
  Value more = arith::AddFOp::create(deep, loc, inner.getRegionIterArg(0),
                                     arith::MulFOp::create(deep, loc, x, y));
  scf::YieldOp::create(deep, loc, more);
  in.setInsertionPointAfter(inner);
  memref::StoreOp::create(in, loc, inner.getResult(0), memory, k);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  return vector::LoadOp::create(b, loc, type, memory, zero);
}

void warpgroupStore(OpBuilder &b, nvgpu::WarpgroupMmaStoreOp op) {
  Location loc = op.getLoc();
  Value sums = op->getOperand(0), to = op->getOperand(1);
  const int64_t columns = cast<MemRefType>(to.getType()).getShape().back();
  Value memory = memoryOf(b, loc, sums);
  auto loop = loopTo(b, loc, cast<VectorType>(sums.getType()).getNumElements());
  OpBuilder in = OpBuilder::atBlockBegin(loop.getBody());
  auto [row, column] = placeOf(in, loc, loop.getInductionVar(), columns);
  Value value = memref::LoadOp::create(in, loc, memory, loop.getInductionVar());
  memref::StoreOp::create(in, loc, value, to, ValueRange{row, column});
  gpu::BarrierOp::create(b, loc);
}

} // namespace mgpu::conversion
