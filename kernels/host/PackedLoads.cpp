// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loads of neighbouring threads that go along a row of memory each: in a loop,
// as those of a product whose B is stored by rows, or from one row of threads
// to the next, as those of a transposition. A vector of threads would gather
// them from as many lines, once for each row of threads. The block copies what
// all of them read, so that neighbours are neighbours, before it begins the
// loop.
#include "kernels/host/BlockEmitter.h"
#include "kernels/lower/TripCount.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <algorithm>

using namespace mlir;

namespace mgpu::kernels {

static constexpr int64_t side = 8; ///< of the squares that are turned

/// Whether the loop leaves memory as it is.
static bool onlyReads(scf::ForOp loop) {
  return !loop->walk([](Operation *op) {
                return isMemoryEffectFree(op) || isa<memref::LoadOp>(op) ||
                               op->hasTrait<
                                   OpTrait::HasRecursiveMemoryEffects>()
                           ? WalkResult::advance()
                           : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// The counter of the loop along whose trips a load goes, if it does.
static Value tripOf(memref::LoadOp load) {
  auto loop = dyn_cast<scf::ForOp>(load->getParentOp());
  return loop && load.getIndices().back() == loop.getInductionVar()
             ? loop.getInductionVar()
             : Value();
}

/// Turns a square: rows[i] gets element i of each row.
static void turn(OpBuilder &b, Location loc, SmallVectorImpl<Value> &rows) {
  for (int64_t apart = side / 2; apart > 0; apart /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < side; ++lane) {
      const bool isFirst = (lane & apart) == 0;
      low.push_back(isFirst ? lane : side + lane - apart);
      high.push_back(isFirst ? lane + apart : side + lane);
    }
    for (int64_t k = 0; k < side; ++k) {
      if ((k & apart) != 0)
        continue;
      Value &one = rows[size_t(k)], &other = rows[size_t(k + apart)];
      Value mixed = vector::ShuffleOp::create(b, loc, one, other, low);
      other = vector::ShuffleOp::create(b, loc, one, other, high);
      one = mixed;
    }
  }
}

/// `loop` is null where rows of threads go along the rows.
bool BlockEmitter::isGathered(memref::LoadOp load, scf::ForOp loop) const {
  MemRefType type = load.getMemRefType();
  ValueRange indices = load.getIndices();
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!(type.getElementType().isF32() || type.getElementType().isF64()) ||
      failed(type.getStridesAndOffset(strides, offset)) || strides.size() < 2 ||
      strides.back() != 1 || !uniform.contains(load.getMemRef()) ||
      !(loop ? indices.back() == loop.getInductionVar()
             : stridesOf(indices.back()) == std::array<int64_t, 3>{0, 1, 0}))
    return false;
  int64_t rows = 0; // indices that count the threads of a row
  for (Value index : indices.drop_back()) {
    const auto step = stridesOf(index);
    if (!step || (loop && loop.getRegion().isAncestor(index.getParentRegion())))
      return false;
    const bool isRow = *step == std::array<int64_t, 3>{1, 0, 0};
    if (!isRow && *step != std::array<int64_t, 3>{})
      return false;
    rows += isRow;
  }
  return rows == 1;
}

SmallVector<Value> BlockEmitter::rowAt(memref::LoadOp load, Value x, Value k) {
  const Value trip = tripOf(load);
  Thread thread;
  thread.ids[0] = x;
  thread.ids[1] = trip ? constant(0) : k;
  thread.ids[2] = constant(0);
  if (trip)
    thread.map.map(trip, k);
  SmallVector<Value> indices;
  for (Value index : load.getIndices()) {
    FailureOr<Value> found = lookup(index, thread, load);
    if (failed(found))
      return {};
    indices.push_back(*found);
  }
  return indices;
}

LogicalResult BlockEmitter::pack(memref::LoadOp load, int64_t trips) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = load.getLoc();
  const int64_t elements = trips * block.x, size = sizeOf(load.getType());
  if (failed(checkScratch(uint64_t(elements), uint64_t(size), load)))
    return failure();
  const auto here = b.saveInsertionPoint();
  b.setInsertionPointToStart(&target.getBody().front());
  Value panel = memref::AllocaOp::create(
      b, loc, MemRefType::get({trips, block.x}, load.getType()),
      b.getI64IntegerAttr(64));
  b.restoreInsertionPoint(here);
  packed[load] = panel;
  Value memref = uniform.lookup(load.getMemRef());
  auto open = [&](int64_t low, int64_t high, int64_t step) -> Value {
    Value from = constant(low), to = constant(high), by = constant(step);
    auto loop = scf::ForOp::create(b, loc, from, to, by);
    b.setInsertionPointToStart(loop.getBody());
    return loop.getInductionVar();
  };
  const int64_t whole = trips / side * side;
  {
    OpBuilder::InsertionGuard inner(b);
    Value k = open(0, whole, side), x = open(0, block.x, side);
    auto type = VectorType::get({side}, load.getType());
    SmallVector<Value> rows;
    for (int64_t row = 0; row < side; ++row) {
      const SmallVector<Value> indices = rowAt(load, plus(x, constant(row)), k);
      if (indices.empty())
        return failure();
      rows.push_back(vector::LoadOp::create(b, loc, type, memref, indices));
    }
    turn(b, loc, rows);
    for (int64_t row = 0; row < side; ++row)
      vector::StoreOp::create(b, loc, rows[size_t(row)], panel,
                              ValueRange{plus(k, constant(row)), x});
  }
  if (whole == trips)
    return success();
  Value x = open(0, block.x, 1), k = open(whole, trips, 1);
  const SmallVector<Value> indices = rowAt(load, x, k);
  if (indices.empty())
    return failure();
  Value element = memref::LoadOp::create(b, loc, memref, indices);
  memref::StoreOp::create(b, loc, element, panel, ValueRange{k, x});
  return success();
}

LogicalResult BlockEmitter::packLoads(scf::ForOp loop) {
  // The bytes that a core's second cache holds; copies pay where rows share
  // them.
  constexpr int64_t mostBytes = 1 << 20, leastRows = 4;
  const int64_t trips = tripsFromZero(loop);
  if (!shape.makesVectors || trips < side || block.x % side != 0 ||
      block.y < leastRows || block.z != 1 || !onlyReads(loop))
    return success();
  for (auto load : loop.getBody()->getOps<memref::LoadOp>())
    if (trips * block.x * sizeOf(load.getType()) <= mostBytes &&
        isGathered(load, loop) && failed(pack(load, trips)))
      return failure();
  return success();
}

LogicalResult BlockEmitter::packTurned() {
  if (!shape.makesVectors || rowsOf || block.x % side != 0 ||
      block.y % side != 0 || block.z != 1)
    return success();
  for (Operation *op : pending) {
    if (mayWrite(op)) // a load after it may be of what it wrote
      break;
    auto load = dyn_cast<memref::LoadOp>(op);
    if (load && isGathered(load, {}) && failed(pack(load, block.y)))
      return failure();
  }
  return success();
}

Value BlockEmitter::loadPacked(memref::LoadOp load, const Thread &thread) {
  const Value trip = tripOf(load);
  return memref::LoadOp::create(
      b, load.getLoc(), packed.lookup(load),
      ValueRange{trip ? uniform.lookup(trip) : thread.ids[1], thread.ids[0]});
}

} // namespace mgpu::kernels
