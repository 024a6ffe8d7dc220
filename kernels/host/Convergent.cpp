// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that all threads of a block or subgroup execute together.
#include "kernels/host/BlockEmitter.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/Utils/GPUUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace mgpu::kernels {

static Value combine(OpBuilder &b, gpu::AllReduceOperation kind, Value x,
                     Value y, Location loc) {
  return vector::makeArithReduction(b, loc, gpu::convertReductionKind(kind), x,
                                    y);
}

LogicalResult BlockEmitter::emitConvergent(Operation *op) {
  Block *source = op->getBlock();
  if (isa<gpu::BarrierOp>(op))
    return flush(source);
  if (auto reduce = dyn_cast<gpu::AllReduceOp>(op))
    return emitAllReduce(reduce);
  if (auto reduce = dyn_cast<gpu::SubgroupReduceOp>(op))
    return emitSubgroupReduce(reduce);
  // Lanes read what others stored in the segment before. The array is used
  // for nothing else: the segment that reads it must not write it.
  FailureOr<Value> values = storeToArray(op->getOperand(0), op);
  if (failed(values) || failed(flush(source)))
    return failure();
  exchange[op] = *values;
  pending.insert(op);
  return success();
}

// The order of a reduction is a stated one (docs/numerics.md), which emitted
// CUDA C++ has too: neighbours, then neighbouring pairs, up to the 32 threads
// of a subgroup; then the subgroups one after the other.

/// Neighbours of two vectors, one behind the other, or of one.
static Value combineNeighbours(OpBuilder &b, gpu::AllReduceOperation kind,
                               Value low, Value high, Location loc) {
  const int64_t lanes = cast<VectorType>(low.getType()).getNumElements();
  SmallVector<int64_t> first, second;
  for (int64_t lane = 0; lane < (low == high ? lanes : 2 * lanes); lane += 2) {
    first.push_back(lane);
    second.push_back(lane + 1);
  }
  Value x = vector::ShuffleOp::create(b, loc, low, high, first),
        y = vector::ShuffleOp::create(b, loc, low, high, second);
  return combine(b, kind, x, y, loc);
}

/// Whether folded() takes values of all threads.
bool BlockEmitter::canFold(Type type) const {
  const unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  return shape.makesVectors && numThreads % subgroupSize == 0 &&
         (bits == 32 || bits == 64);
}

FailureOr<Value> BlockEmitter::folded(Value values,
                                      gpu::AllReduceOperation kind,
                                      Operation *op) {
  Location loc = op->getLoc();
  Type type = cast<MemRefType>(values.getType()).getElementType();
  FailureOr<Value> results = newArray(type, op);
  if (failed(results))
    return failure();
  // So many subgroups are folded together that they end as one vector.
  const int64_t lanes = 64 / sizeOf(type), count = numThreads / subgroupSize,
                together = std::min(count & -count, lanes);
  OpBuilder::InsertionGuard guard(b);
  Value first = openLoop(count / together);
  Value begin = times(first, together * subgroupSize);
  auto fold = [&](auto &self, int64_t at, int64_t vectors) -> Value {
    if (vectors == 1)
      return vector::LoadOp::create(b, loc, VectorType::get({lanes}, type),
                                    values, plus(begin, constant(at * lanes)));
    Value low = self(self, at, vectors / 2),
          high = self(self, at + vectors / 2, vectors / 2);
    return combineNeighbours(b, kind, low, high, loc);
  };
  Value sums = fold(fold, 0, together * subgroupSize / lanes);
  while (cast<VectorType>(sums.getType()).getNumElements() > together)
    sums = combineNeighbours(b, kind, sums, sums, loc);
  vector::StoreOp::create(b, loc, sums, *results, times(first, together));
  return results;
}

/// Folds values of any type and number of threads. Each step leaves its results
/// side by side in another array, so that the loops become vectors.
FailureOr<Value> BlockEmitter::foldedOneByOne(
    Value values, llvm::function_ref<Value(Value, Value)> join, Operation *op) {
  Location loc = op->getLoc();
  FailureOr<Value> others =
      newArray(cast<MemRefType>(values.getType()).getElementType(), op);
  if (failed(others))
    return failure();
  Value from = values, to = *others;
  auto load = [&](Value at) -> Value {
    return memref::LoadOp::create(b, loc, from, at);
  };
  int64_t left = numThreads;
  for (int64_t step = 1; step < std::min(subgroupSize, numThreads); step *= 2) {
    auto loop = scf::ForOp::create(b, loc, constant(0), constant(left / 2),
                                   constant(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVar();
    Value x = times(at, 2), y = plus(x, constant(1));
    memref::StoreOp::create(b, loc, join(load(x), load(y)), to, at);
    b.setInsertionPointAfter(loop);
    if (left % 2 != 0)
      memref::StoreOp::create(b, loc, load(constant(left - 1)), to,
                              constant(left / 2));
    left = (left + 1) / 2;
    std::swap(from, to);
  }
  return from;
}

LogicalResult BlockEmitter::emitAllReduce(gpu::AllReduceOp op) {
  Location loc = op.getLoc();
  FailureOr<Value> values = storeToArray(op.getValue(), op);
  if (failed(values) || failed(flush(op->getBlock())))
    return failure();
  Region &body = op.getBody(); // isolated: it uses no value from outside
  auto join = [&](Value x, Value y) -> Value {
    if (body.empty())
      return combine(b, *op.getOp(), x, y, loc);
    IRMapping map;
    map.map(body.getArgument(0), x);
    map.map(body.getArgument(1), y);
    for (Operation &inner : body.front().without_terminator())
      b.clone(inner, map);
    return map.lookup(body.front().getTerminator()->getOperand(0));
  };
  auto subgroups = body.empty() && canFold(op.getType())
                       ? folded(*values, *op.getOp(), op)
                       : foldedOneByOne(*values, join, op);
  if (failed(subgroups))
    return failure();
  auto load = [&](Value at) -> Value {
    return memref::LoadOp::create(b, loc, *subgroups, at);
  };
  Value first = load(constant(0)),
        count = constant(llvm::divideCeil(numThreads, subgroupSize));
  auto loop =
      scf::ForOp::create(b, loc, constant(1), count, constant(1), first);
  uniform.map(op.getResult(), loop.getResult(0));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value next = load(loop.getInductionVar());
  scf::YieldOp::create(b, loc, join(loop.getRegionIterArg(0), next));
  return success();
}

LogicalResult BlockEmitter::emitSubgroupReduce(gpu::SubgroupReduceOp op) {
  Location loc = op.getLoc();
  int64_t stride = op.getClusterStride();
  int64_t size = op.getClusterSize().value_or(subgroupSize / stride);
  if (stride < 1 || size < 1 || size * stride > subgroupSize ||
      subgroupSize % (size * stride) != 0)
    return op.emitOpError("has clusters that do not divide a subgroup of 32");
  FailureOr<Value> values = storeToArray(op.getValue(), op);
  FailureOr<Value> results = newArray(op.getType(), op);
  if (failed(values) || failed(results) || failed(flush(op->getBlock())))
    return failure();
  arrays[op.getResult()] = *results;
  if (size == subgroupSize && canFold(op.getType())) {
    auto subgroups = folded(*values, op.getOp(), op);
    if (failed(subgroups))
      return failure();
    OpBuilder::InsertionGuard guard(b);
    Value subgroup = openLoop(numThreads / subgroupSize);
    Value all = memref::LoadOp::create(b, loc, *subgroups, subgroup);
    auto type = VectorType::get({subgroupSize}, op.getType());
    all = vector::BroadcastOp::create(b, loc, type, all);
    vector::StoreOp::create(b, loc, all, *results,
                            times(subgroup, subgroupSize));
    return success();
  }
  // Clusters start at every multiple of size * stride and the stride - 1 lanes
  // after it; threads past the end of the block take no part. The order is that
  // of emitAllReduce, whose neighbours are here `stride` apart.
  OpBuilder::InsertionGuard guard(b);
  Value zero = constant(0), one = constant(1), end = constant(numThreads),
        strideValue = constant(stride);
  for (int64_t apart = stride; apart < size * stride; apart *= 2) {
    if (apart >= numThreads)
      break;
    OpBuilder::InsertionGuard guard(b);
    Value last = constant(numThreads - apart), apartValue = constant(apart);
    auto pairs = scf::ForOp::create(b, loc, zero, last, constant(2 * apart));
    b.setInsertionPointToStart(pairs.getBody());
    Value begin = pairs.getInductionVar();
    Value stop = arith::MinUIOp::create(
        b, loc, arith::AddIOp::create(b, loc, begin, strideValue), last);
    auto each = scf::ForOp::create(b, loc, begin, stop, one);
    b.setInsertionPointToStart(each.getBody());
    Value at = each.getInductionVar();
    Value x = memref::LoadOp::create(b, loc, *values, at);
    Value y = memref::LoadOp::create(
        b, loc, *values,
        arith::AddIOp::create(b, loc, at, apartValue).getResult());
    memref::StoreOp::create(b, loc, combine(b, op.getOp(), x, y, loc), *values,
                            at);
  }
  auto groups = scf::ForOp::create(b, loc, zero, end, constant(size * stride));
  b.setInsertionPointToStart(groups.getBody());
  Value start = groups.getInductionVar();
  Value stop = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, start, constant(size * stride)),
      end);
  Value heads = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, start, strideValue), end);
  auto clusters = scf::ForOp::create(b, loc, start, heads, one);
  b.setInsertionPointToStart(clusters.getBody());
  Value head = clusters.getInductionVar();
  Value all = memref::LoadOp::create(b, loc, *values, head);
  auto spread = scf::ForOp::create(b, loc, head, stop, strideValue);
  b.setInsertionPointToStart(spread.getBody());
  memref::StoreOp::create(b, loc, all, *results, spread.getInductionVar());
  return success();
}

// The lane read is defined by the dialect's documentation; where that leaves
// the value undefined, a lane keeps its own, as CUDA's shuffles do.
void BlockEmitter::emitShuffle(Operation *op, Thread &thread) {
  Location loc = op->getLoc();
  auto compare = [&](arith::CmpIPredicate predicate, Value x,
                     Value y) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  };
  auto both = [&](Value x, Value y) -> Value {
    return arith::AndIOp::create(b, loc, x, y);
  };
  Value lane =
      arith::RemUIOp::create(b, loc, thread.linear, constant(subgroupSize));
  Value base = arith::SubIOp::create(b, loc, thread.linear, lane);
  Value from, valid;
  if (auto rotate = dyn_cast<gpu::RotateOp>(op)) {
    int64_t width = rotate.getWidth();
    Value moved =
        arith::AddIOp::create(b, loc, lane, constant(rotate.getOffset()));
    Value inside = arith::RemUIOp::create(b, loc, moved, constant(width));
    Value segment = arith::SubIOp::create(
        b, loc, lane, arith::RemUIOp::create(b, loc, lane, constant(width)));
    from = arith::AddIOp::create(b, loc, segment, inside);
    valid = compare(arith::CmpIPredicate::ult, lane, constant(width));
  } else {
    auto shuffle = cast<gpu::ShuffleOp>(op);
    auto asIndex = [&](Value value) -> Value {
      return arith::IndexCastUIOp::create(b, loc, b.getIndexType(),
                                          thread.map.lookup(value));
    };
    Value offset = asIndex(shuffle.getOffset());
    Value width = asIndex(shuffle.getWidth());
    switch (shuffle.getMode()) {
    case gpu::ShuffleMode::XOR:
      from = arith::XOrIOp::create(b, loc, lane, offset);
      break;
    case gpu::ShuffleMode::DOWN:
      from = arith::AddIOp::create(b, loc, lane, offset);
      break;
    case gpu::ShuffleMode::UP:
      from = arith::SubIOp::create(b, loc, lane, offset);
      break;
    case gpu::ShuffleMode::IDX:
      from = offset;
      break;
    }
    // Unsigned: a lane below 0 is not below the width either.
    valid = both(compare(arith::CmpIPredicate::ult, from, width),
                 compare(arith::CmpIPredicate::ult, lane, width));
  }
  Value source = arith::AddIOp::create(b, loc, base, from);
  valid = both(
      valid,
      both(compare(arith::CmpIPredicate::ult, from, constant(subgroupSize)),
           compare(arith::CmpIPredicate::ult, source, constant(numThreads))));
  Value index = arith::SelectOp::create(b, loc, valid, source, thread.linear);
  Value value = memref::LoadOp::create(b, loc, exchange.lookup(op), index);
  thread.map.map(op->getResult(0), value);
  thread.map.map(op->getResult(1), valid);
}

} // namespace mgpu::kernels
