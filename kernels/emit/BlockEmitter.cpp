// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/emit/BlockEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "kernels/emit/ThreadLoops.h"

using namespace mlir;

namespace mgpu::kernels {

/// Blocks run on the stack of a worker of the host device.
static constexpr int64_t scratchLimit = int64_t(4) << 20;

static int64_t sizeOf(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * sizeOf(vector.getElementType());
  if (type.isIntOrFloat())
    return (type.getIntOrFloatBitWidth() + 7) / 8;
  return 8;
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

LogicalResult BlockEmitter::checkScratch(int64_t bytes, Operation *op) {
  scratchBytes += bytes;
  if (scratchBytes <= scratchLimit)
    return success();
  return op->emitOpError(
      "makes the block need more than 4 MiB of private and workgroup "
      "memory, the limit of the host target; use fewer threads per "
      "block or smaller arrays");
}

FailureOr<Value> BlockEmitter::newArray(Type type, Operation *op) {
  if (!MemRefType::isValidElementType(type) || isa<MemRefType>(type))
    return op->emitOpError() << "gives each thread a value of type " << type
                             << " that is used past a barrier or a shared "
                                "branch, which the host target cannot keep";
  if (failed(checkScratch(numThreads * sizeOf(type), op)))
    return failure();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&target.getBody().front());
  return memref::AllocaOp::create(b, op->getLoc(),
                                  MemRefType::get({numThreads}, type),
                                  b.getI64IntegerAttr(64))
      .getResult();
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
  if (isa<gpu::ThreadIdOp>(op) || isPrivateAlloca(op))
    return true;
  if (op->getNumRegions() != 0 || op->getNumResults() != 1 ||
      isConvergent(op) || !isMemoryEffectFree(op))
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

bool BlockEmitter::pendingWrites() const {
  return llvm::any_of(pending, [](Operation *op) {
    return op
        ->walk([](Operation *inner) {
          if (inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
              isa<memref::LoadOp>(inner) || isMemoryEffectFree(inner) ||
              inner->hasTrait<OpTrait::IsTerminator>())
            return WalkResult::advance();
          return WalkResult::interrupt();
        })
        .wasInterrupted();
  });
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
  OpBuilder::InsertionGuard guard(b);
  Location loc = kernel.getLoc();
  int64_t extents[3] = {block.x, block.y, block.z};
  Thread thread;
  bool inLoop = false;
  for (int k = 2; k >= 0; --k) {
    if (extents[k] == 1) {
      thread.ids[k] = constant(0);
      continue;
    }
    Value low = constant(0), high = constant(extents[k]), one = constant(1);
    auto loop = scf::ForOp::create(b, loc, low, high, one);
    b.setInsertionPointToStart(loop.getBody());
    thread.ids[k] = loop.getInductionVar();
    inLoop = true;
  }
  if (inLoop && pendingIsParallel())
    func::CallOp::create(b, loc, parallelMarker, TypeRange(), ValueRange());
  auto times = [&](Value x, int64_t y) -> Value {
    return arith::MulIOp::create(b, loc, x, constant(y));
  };
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  };
  thread.linear =
      plus(thread.ids[0],
           times(plus(thread.ids[1], times(thread.ids[2], block.y)), block.x));
  if (failed(emitThread(thread)))
    return failure();
  pending.clear();
  stores.clear();
  for (auto [value, array] : kept)
    arrays[value] = array;
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
                            thread.linear);
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
    result =
        memref::LoadOp::create(b, value.getLoc(), array->second, thread.linear);
  } else if (auto id = dyn_cast_if_present<gpu::ThreadIdOp>(op)) {
    result = thread.ids[unsigned(id.getDimension())];
  } else if (op && isPrivateAlloca(op)) {
    auto type = cast<MemRefType>(value.getType());
    int64_t bytes = llvm::alignTo(std::max<int64_t>(type.getNumElements(), 1) *
                                      sizeOf(type.getElementType()),
                                  16);
    Value &array = privateArrays[op];
    if (!array) {
      if (failed(checkScratch(numThreads * bytes, op)))
        return failure();
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
    b.clone(*op, thread.map);
  return success();
}

// ---- control that all threads share

LogicalResult BlockEmitter::emitBlock(Block &source) {
  for (Operation &op : source.without_terminator()) {
    if (isConvergent(&op)) {
      if (failed(emitConvergent(&op)))
        return failure();
    } else if (uniformity.isUniformOp(&op)) {
      if (isa<memref::LoadOp>(op) && pendingWrites() && failed(flush(&source)))
        return failure();
      b.clone(op, uniform);
    } else if (isRecomputed(&op)) {
      continue;
    } else if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
      MemRefType type = alloca.getType();
      if (failed(checkScratch(
              type.getNumElements() * sizeOf(type.getElementType()), &op)))
        return failure();
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(&target.getBody().front());
      int64_t alignment =
          std::max<int64_t>(64, alloca.getAlignment().value_or(0));
      uniform.map(alloca.getResult(),
                  memref::AllocaOp::create(b, op.getLoc(), type,
                                           b.getI64IntegerAttr(alignment))
                      .getResult());
    } else if (isa<scf::ForOp, scf::IfOp, scf::WhileOp>(op) &&
               uniformity.hasUniformControl(&op)) {
      LogicalResult done = failure();
      if (auto loop = dyn_cast<scf::ForOp>(op))
        done = emitFor(loop);
      else if (auto branch = dyn_cast<scf::IfOp>(op))
        done = emitIf(branch);
      else
        done = emitWhile(cast<scf::WhileOp>(op));
      if (failed(done))
        return failure();
    } else {
      if (Operation *bad = findConvergent(&op)) {
        auto error = bad->emitOpError(
            "is under control flow that is not the same for all threads of "
            "the block");
        error.attachNote(op.getLoc()) << "threads may part here";
        return failure();
      }
      pending.insert(&op);
    }
  }
  return success();
}

LogicalResult BlockEmitter::emitFor(scf::ForOp loop) {
  ValueRange iters = loop.getRegionIterArgs();
  auto iterArrays = arraysFor(iters, loop);
  if (failed(iterArrays))
    return failure();
  storeVarying(loop.getInitArgs(), iters, *iterArrays);
  if (failed(flush(loop->getBlock())))
    return failure();
  SmallVector<Value> inits;
  for (auto [init, array] : llvm::zip_equal(loop.getInitArgs(), *iterArrays))
    if (!array)
      inits.push_back(uniform.lookup(init));
  auto copy =
      scf::ForOp::create(b, loop.getLoc(), uniform.lookup(loop.getLowerBound()),
                         uniform.lookup(loop.getUpperBound()),
                         uniform.lookup(loop.getStep()), inits);
  copy->setAttrs(loop->getAttrs());
  if (copy.getBody()->mightHaveTerminator())
    copy.getBody()->getTerminator()->erase();
  uniform.map(loop.getInductionVar(), copy.getInductionVar());
  unsigned next = 0;
  for (auto [k, array] : llvm::enumerate(*iterArrays)) {
    if (array) {
      arrays[loop.getResult(k)] = array;
      continue;
    }
    uniform.map(iters[k], copy.getRegionIterArgs()[next]);
    uniform.map(loop.getResult(k), copy.getResult(next++));
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(copy.getBody());
  if (failed(emitBlock(*loop.getBody())))
    return failure();
  storeVarying(loop.getYieldedValues(), iters, *iterArrays);
  if (failed(flush(loop.getBody(), /*last=*/true)))
    return failure();
  SmallVector<Value> yields;
  for (auto [value, array] :
       llvm::zip_equal(loop.getYieldedValues(), *iterArrays))
    if (!array)
      yields.push_back(uniform.lookup(value));
  scf::YieldOp::create(b, loop.getLoc(), yields);
  return success();
}

LogicalResult BlockEmitter::emitIf(scf::IfOp branch) {
  if (failed(flush(branch->getBlock())))
    return failure();
  auto resultArrays = arraysFor(branch.getResults(), branch);
  if (failed(resultArrays))
    return failure();
  SmallVector<Type> types;
  for (auto [result, array] :
       llvm::zip_equal(branch.getResults(), *resultArrays))
    if (!array)
      types.push_back(result.getType());
  bool hasElse = !branch.getElseRegion().empty();
  auto copy = scf::IfOp::create(b, branch.getLoc(), types,
                                uniform.lookup(branch.getCondition()),
                                /*addThenBlock=*/true, hasElse);
  unsigned next = 0;
  for (auto [k, array] : llvm::enumerate(*resultArrays))
    if (!array)
      uniform.map(branch.getResult(k), copy.getResult(next++));
  auto emitSide = [&](Region &from, Region &to) -> LogicalResult {
    OpBuilder::InsertionGuard guard(b);
    if (to.front().mightHaveTerminator())
      to.front().getTerminator()->erase();
    b.setInsertionPointToEnd(&to.front());
    if (failed(emitBlock(from.front())))
      return failure();
    ValueRange values = from.front().getTerminator()->getOperands();
    storeVarying(values, branch.getResults(), *resultArrays);
    if (failed(flush(&from.front(), /*last=*/true)))
      return failure();
    SmallVector<Value> yields;
    for (auto [value, array] : llvm::zip_equal(values, *resultArrays))
      if (!array)
        yields.push_back(uniform.lookup(value));
    scf::YieldOp::create(b, branch.getLoc(), yields);
    return success();
  };
  if (failed(emitSide(branch.getThenRegion(), copy.getThenRegion())))
    return failure();
  return hasElse ? emitSide(branch.getElseRegion(), copy.getElseRegion())
                 : success();
}

LogicalResult BlockEmitter::emitWhile(scf::WhileOp loop) {
  ValueRange before = loop.getBeforeArguments();
  ValueRange after = loop.getAfterArguments();
  auto beforeArrays = arraysFor(before, loop);
  auto afterArrays = arraysFor(after, loop);
  if (failed(beforeArrays) || failed(afterArrays))
    return failure();
  storeVarying(loop.getInits(), before, *beforeArrays);
  if (failed(flush(loop->getBlock())))
    return failure();
  auto uniformOf = [&](ValueRange values, ArrayRef<Value> kept) {
    SmallVector<Value> result;
    for (auto [value, array] : llvm::zip_equal(values, kept))
      if (!array)
        result.push_back(uniform.lookup(value));
    return result;
  };
  SmallVector<Type> resultTypes;
  for (auto [value, array] : llvm::zip_equal(after, *afterArrays))
    if (!array)
      resultTypes.push_back(value.getType());
  auto copy = scf::WhileOp::create(b, loop.getLoc(), resultTypes,
                                   uniformOf(loop.getInits(), *beforeArrays));
  unsigned next = 0;
  for (auto [k, array] : llvm::enumerate(*afterArrays))
    if (array)
      arrays[loop.getResult(k)] = array;
    else
      uniform.map(loop.getResult(k), copy.getResult(next++));
  auto emitSide = [&](Block &from, Region &to, ValueRange arguments,
                      ArrayRef<Value> kept) -> LogicalResult {
    Block *block = new Block;
    to.push_back(block);
    for (auto [argument, array] : llvm::zip_equal(arguments, kept))
      if (!array)
        uniform.map(argument,
                    block->addArgument(argument.getType(), loop.getLoc()));
    b.setInsertionPointToEnd(block);
    return emitBlock(from);
  };
  OpBuilder::InsertionGuard guard(b);
  scf::ConditionOp condition = loop.getConditionOp();
  if (failed(emitSide(*loop.getBeforeBody(), copy.getBefore(), before,
                      *beforeArrays)))
    return failure();
  storeVarying(condition.getArgs(), after, *afterArrays);
  if (failed(flush(loop.getBeforeBody(), /*last=*/true)))
    return failure();
  scf::ConditionOp::create(b, loop.getLoc(),
                           uniform.lookup(condition.getCondition()),
                           uniformOf(condition.getArgs(), *afterArrays));
  if (failed(
          emitSide(*loop.getAfterBody(), copy.getAfter(), after, *afterArrays)))
    return failure();
  ValueRange yielded = loop.getYieldOp().getOperands();
  storeVarying(yielded, before, *beforeArrays);
  if (failed(flush(loop.getAfterBody(), /*last=*/true)))
    return failure();
  scf::YieldOp::create(b, loop.getLoc(), uniformOf(yielded, *beforeArrays));
  return success();
}

} // namespace mgpu::kernels
