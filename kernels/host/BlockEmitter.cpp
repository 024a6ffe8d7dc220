// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/BlockEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "kernels/host/ThreadLoops.h"

using namespace mlir;

namespace mgpu::kernels {

/// Blocks run on the stack of a worker of the host device.
static constexpr uint64_t scratchLimit = uint64_t(1) << 30;

int64_t sizeOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * sizeOf(vector.getElementType());
  if (auto memref = dyn_cast<MemRefType>(type)) // as LLVM has it
    return 8 * (3 + 2 * memref.getRank());
  if (type.isIntOrFloat())
    return (type.getIntOrFloatBitWidth() + 7) / 8;
  return 8;
}

bool isInnermost(Operation *loop) {
  return !loop->walk([&](Operation *inner) {
                return inner != loop && isa<LoopLikeOpInterface>(inner)
                           ? WalkResult::interrupt()
                           : WalkResult::advance();
              })
              .wasInterrupted();
}

LogicalResult BlockEmitter::run(OpBuilder &at) {
  b.restoreInsertionPoint(at.saveInsertionPoint());
  Block &body = kernel.getBody().front();
  if (failed(emitBlock(body)))
    return failure();
  return flush(&body, /*last=*/true);
}

Value BlockEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, kernel.getLoc(), value);
}

// ---- per-thread arrays

LogicalResult BlockEmitter::checkScratch(uint64_t count, uint64_t size,
                                         Operation *op) {
  scratchBytes = llvm::SaturatingMultiplyAdd(count, size, scratchBytes);
  if (scratchBytes <= scratchLimit)
    return success();
  return op->emitOpError(
      "makes the block need more than 1 GiB of private and workgroup "
      "memory, the limit of the host target; use fewer threads per "
      "block or smaller arrays");
}

FailureOr<Value> BlockEmitter::newArray(Type type, Operation *op) {
  if (!MemRefType::isValidElementType(type))
    return op->emitOpError() << "gives each thread a value of type " << type
                             << " that is used past a barrier or a shared "
                                "branch, which the host target cannot keep";
  int64_t count = tile.active() ? tile.size() : numThreads;
  if (failed(checkScratch(count, sizeOf(type), op)))
    return failure();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&target.getBody().front());
  Value array = memref::AllocaOp::create(
      b, op->getLoc(), MemRefType::get({count}, type), b.getI64IntegerAttr(64));
  if (tile.active())
    tileArrays.insert(array);
  return array;
}

FailureOr<Value> BlockEmitter::storeToArray(Value value, Operation *op) {
  FailureOr<Value> array = newArray(value.getType(), op);
  if (succeeded(array))
    stores.push_back({value, *array});
  return array;
}

FailureOr<SmallVector<Value>> BlockEmitter::arraysFor(ValueRange values,
                                                      Operation *op) {
  SmallVector<Value> result;
  for (Value value : values) {
    if (uniformity.isUniform(value)) {
      result.push_back({});
      continue;
    }
    FailureOr<Value> array = newArray(value.getType(), op);
    if (failed(array))
      return failure();
    arrays[value] = *array;
    result.push_back(*array);
  }
  return result;
}

void BlockEmitter::storeVarying(ValueRange values, ValueRange targets,
                                ArrayRef<Value> targetArrays) {
  for (auto [value, destination, array] :
       llvm::zip_equal(values, targets, targetArrays))
    if (array && value != destination)
      stores.push_back({value, array});
}

// ---- segments

bool BlockEmitter::isRecomputed(Operation *op) const {
  if (!op)
    return false;
  if (isa<gpu::ThreadIdOp>(op) || facts::isPrivateAlloca(op))
    return true;
  if (op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      facts::isConvergent(op) || !isMemoryEffectFree(op))
    return false;
  Type type = op->getResult(0).getType();
  if (isa<MemRefType>(type))
    return isa<memref::MemRefDialect>(op->getDialect());
  if (!type.isIntOrIndex() ||
      !isa<arith::ArithDialect, index::IndexDialect>(op->getDialect()))
    return false;
  auto [entry, inserted] = recomputed.try_emplace(op, false);
  if (!inserted)
    return entry->second;
  bool result = llvm::all_of(op->getOperands(), [&](Value operand) {
    return uniformity.isUniform(operand) ||
           isRecomputed(operand.getDefiningOp());
  });
  return recomputed[op] = result;
}

bool BlockEmitter::livesOn(Value value, Block *source, bool last) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *here = source->findAncestorOpInBlock(*user);
    if (!here)
      return true;
    if (here->hasTrait<OpTrait::IsTerminator>())
      return !last;
    if (pending.contains(here))
      return false;
    if (here == user && isRecomputed(here))
      return llvm::any_of(here->getResults(), [&](Value result) {
        return livesOn(result, source, last);
      });
    return true;
  });
}

bool mayWrite(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        if (inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
            isa<memref::LoadOp>(inner) || isMemoryEffectFree(inner) ||
            inner->hasTrait<OpTrait::IsTerminator>())
          return WalkResult::advance();
        return WalkResult::interrupt();
      })
      .wasInterrupted();
}

bool BlockEmitter::pendingWrites() const {
  return llvm::any_of(pending, mayWrite);
}

bool BlockEmitter::pendingIsParallel() const {
  // By the rules of a GPU, threads that touch one location between two
  // barriers, one of them writing, do so by atomics or race.
  return llvm::none_of(pending, [](Operation *op) {
    return op
        ->walk([](Operation *inner) {
          return isa<memref::AtomicRMWOp, memref::GenericAtomicRMWOp,
                     gpu::PrintfOp, func::CallOp>(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  });
}

LogicalResult BlockEmitter::flush(Block *source, bool last) {
  SmallVector<std::pair<Value, Value>> kept;
  for (Operation *op : pending)
    for (Value result : op->getResults()) {
      if (!livesOn(result, source, last))
        continue;
      FailureOr<Value> array = storeToArray(result, op);
      if (failed(array))
        return failure();
      kept.push_back({result, *array});
    }
  if (pending.empty() && stores.empty())
    return success();
  if (failed(emitThreadLoops()))
    return failure();
  pending.clear();
  stores.clear();
  for (auto [value, array] : kept)
    arrays[value] = array;
  return success();
}

Value BlockEmitter::times(Value x, int64_t y) {
  return arith::MulIOp::create(b, kernel.getLoc(), x, constant(y));
}

Value BlockEmitter::plus(Value x, Value y) {
  return arith::AddIOp::create(b, kernel.getLoc(), x, y);
}

Value BlockEmitter::openLoop(int64_t extent) {
  if (extent == 1)
    return constant(0);
  Value low = constant(0), high = constant(extent), one = constant(1);
  auto loop = scf::ForOp::create(b, kernel.getLoc(), low, high, one);
  b.setInsertionPointToStart(loop.getBody());
  return loop.getInductionVar();
}

/// The number that x has where `condition` holds, if it says so.
static std::optional<int64_t> onlyXOf(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>()) {
    const auto one = onlyXOf(both.getLhs());
    return one ? one : onlyXOf(both.getRhs());
  }
  auto compare = condition.getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  auto id = compare.getLhs().getDefiningOp<gpu::ThreadIdOp>();
  return id && id.getDimension() == gpu::Dimension::x
             ? getConstantIntValue(compare.getRhs())
             : std::nullopt;
}

/// The x of the one thread of each row that `op` is for, if it is for one.
static std::optional<int64_t> onlyXOf(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  return branch && branch.getElseRegion().empty()
             ? onlyXOf(branch.getCondition())
             : std::nullopt;
}

LogicalResult BlockEmitter::insert(Operation *op) {
  auto isOther = [&](Operation *earlier) {
    return !isMemoryEffectFree(earlier) &&
           onlyXOf(earlier).has_value() != onlyXOf(op).has_value();
  };
  if (!tile.active() && !isMemoryEffectFree(op) &&
      llvm::any_of(pending, isOther) && failed(flush(op->getBlock())))
    return failure();
  pending.insert(op);
  return success();
}

std::optional<int64_t> BlockEmitter::onlyThread() const {
  std::optional<int64_t> only;
  for (Operation *op : pending) {
    if (isMemoryEffectFree(op))
      continue;
    const auto x = onlyXOf(op);
    if (!x || *x < 0 || *x >= int64_t(block.x) || (only && *only != *x))
      return std::nullopt;
    only = x;
  }
  return stores.empty() ? only : std::nullopt;
}

LogicalResult BlockEmitter::emitInnermost(Thread &thread, bool inLoop) {
  if (inLoop && pendingIsParallel())
    markLoop(b, kernel.getLoc(),
             tile.active() ? ParallelTile : ParallelThreads);
  thread.linear =
      plus(thread.ids[0],
           times(plus(thread.ids[1], times(thread.ids[2], block.y)), block.x));
  return emitThread(thread);
}

LogicalResult BlockEmitter::emitThreadLoops() {
  if (!tile.active()) {
    if (failed(packTurned()))
      return failure();
    OpBuilder::InsertionGuard guard(b);
    Thread thread;
    thread.ids[2] = openLoop(block.z);
    thread.ids[1] = openLoop(block.y);
    return rowsOf ? emitRange(thread) : emitRow(thread);
  }
  for (int64_t row = 0; row < tile.height; ++row) {
    OpBuilder::InsertionGuard guard(b);
    Thread thread;
    thread.ids[2] = tile.z;
    thread.ids[1] = plus(tile.y, constant(row));
    Value column = openLoop(tile.width);
    thread.ids[0] = plus(tile.x, column);
    thread.local = plus(constant(row * tile.width), column);
    if (failed(emitInnermost(thread, tile.width > 1)))
      return failure();
  }
  return success();
}

/// All threads of a row. Items lie far enough apart to be vectors of their own.
LogicalResult BlockEmitter::emitRow(const Thread &thread) {
  if (const auto only = onlyThread()) {
    Thread one = thread;
    one.ids[0] = constant(*only);
    return emitInnermost(one, /*inLoop=*/block.y > 1);
  }
  const int64_t row = block.x / shape.items;
  Value first = openLoop(row);
  for (uint32_t item = 0; item < shape.items; ++item) {
    Thread each = thread;
    each.ids[0] = item == 0 ? first : plus(first, constant(item * row));
    if (failed(emitInnermost(each, item == 0 && numThreads > 1)))
      return failure();
  }
  return success();
}

/// Emits the row where a guard holds for a range of it, which is found before.
LogicalResult BlockEmitter::emitRange(const Thread &thread) {
  Location loc = kernel.getLoc();
  const int64_t row = block.x / shape.items;
  auto range = rowRange(rowsGuards, thread, rowsOf);
  if (failed(range))
    return failure();
  auto [first, length] = *range;
  if (rowsOf.getElseRegion().empty()) {
    Value any = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, length,
                                      constant(0));
    auto guarded = scf::IfOp::create(b, loc, any, /*withElseRegion=*/false);
    b.setInsertionPointToStart(guarded.thenBlock());
  }
  // In 32 bits, so that one vector compares as many threads as it computes.
  auto narrow = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getI32Type(), value);
  };
  first = narrow(first);
  length = narrow(length);
  Value inRow = openLoop(row);
  for (uint32_t item = 0; item < shape.items; ++item) {
    Thread each = thread;
    each.ids[0] = item == 0 ? inRow : plus(inRow, constant(item * row));
    Value distance = arith::SubIOp::create(b, loc, narrow(each.ids[0]), first);
    each.map.map(rowsOf.getCondition(),
                 arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       distance, length)
                     .getResult());
    if (failed(emitInnermost(each, item == 0)))
      return failure();
  }
  return success();
}

LogicalResult BlockEmitter::emitThread(Thread &thread) {
  for (Operation *op : pending)
    if (failed(clonePending(op, thread)))
      return failure();
  // All are read before any is written: a loop may yield its own arguments in
  // another order.
  SmallVector<Value> values;
  for (auto [value, array] : stores) {
    FailureOr<Value> found = lookup(value, thread, array.getDefiningOp());
    if (failed(found))
      return failure();
    values.push_back(*found);
  }
  for (auto [stored, value] : llvm::zip_equal(stores, values))
    memref::StoreOp::create(b, kernel.getLoc(), value, stored.second,
                            tileArrays.contains(stored.second) ? thread.local
                                                               : thread.linear);
  return success();
}

FailureOr<Value> BlockEmitter::lookup(Value value, Thread &thread,
                                      Operation *user) {
  if (Value known = thread.map.lookupOrNull(value))
    return known;
  if (Value known = uniform.lookupOrNull(value))
    return known;
  Value result;
  Operation *op = value.getDefiningOp();
  if (auto array = arrays.find(value); array != arrays.end()) {
    result = memref::LoadOp::create(
        b, value.getLoc(), array->second,
        tileArrays.contains(array->second) ? thread.local : thread.linear);
  } else if (auto id = dyn_cast_if_present<gpu::ThreadIdOp>(op)) {
    result = thread.ids[unsigned(id.getDimension())];
  } else if (op && facts::isPrivateAlloca(op)) {
    auto type = cast<MemRefType>(value.getType());
    const int64_t elements = std::max<int64_t>(type.getNumElements(), 1);
    if (!privateArrays.contains(op) &&
        failed(checkScratch(llvm::SaturatingMultiply<uint64_t>(
                                elements, sizeOf(type.getElementType())),
                            numThreads, op)))
      return failure();
    const int64_t bytes =
        llvm::alignTo(elements * sizeOf(type.getElementType()), 16);
    Value &array = privateArrays[op];
    if (!array) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&target.getBody().front());
      array = memref::AllocaOp::create(
          b, op->getLoc(), MemRefType::get({numThreads * bytes}, b.getI8Type()),
          b.getI64IntegerAttr(64));
    }
    Value shift =
        arith::MulIOp::create(b, op->getLoc(), thread.linear, constant(bytes));
    result = memref::ViewOp::create(b, op->getLoc(), type, array, shift,
                                    ValueRange());
  } else if (isRecomputed(op)) {
    for (Value operand : op->getOperands()) {
      FailureOr<Value> known = lookup(operand, thread, op);
      if (failed(known))
        return failure();
      thread.map.map(operand, *known);
    }
    result = b.clone(*op, thread.map)->getResult(0);
  } else {
    return user->emitOpError("uses a value that was not kept for its thread; "
                             "this is a bug of the host emitter");
  }
  thread.map.map(value, result);
  return result;
}

LogicalResult BlockEmitter::clonePending(Operation *op, Thread &thread) {
  if (packed.contains(op)) {
    thread.map.map(op->getResult(0),
                   loadPacked(cast<memref::LoadOp>(op), thread));
    return success();
  }
  WalkResult walk = op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      if (op->isAncestor(operand.getParentRegion()->getParentOp()))
        continue;
      FailureOr<Value> known = lookup(operand, thread, inner);
      if (failed(known))
        return WalkResult::interrupt();
      thread.map.map(operand, *known);
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  if (isa<gpu::ShuffleOp, gpu::RotateOp>(op))
    emitShuffle(op, thread);
  else
    markSequential(b.clone(*op, thread.map));
  return success();
}

void BlockEmitter::markSequential(Operation *op) {
  if (shape.unroll == 0)
    return;
  op->walk([&](scf::ForOp loop) {
    if (!isInnermost(loop))
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    markLoop(b, kernel.getLoc(), Sequential);
  });
}

} // namespace mgpu::kernels
