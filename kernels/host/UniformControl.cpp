// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control that all threads share, or likely share.
#include "kernels/host/BlockEmitter.h"
#include "kernels/lower/KernelDialects.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "dialect/mgpu/Awaits.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Matchers.h"

#include <algorithm>

using namespace mlir;

namespace mgpu::kernels {

/// Memory of a block.
LogicalResult BlockEmitter::emitShared(memref::AllocaOp alloca) {
  MemRefType type = alloca.getType();
  if (failed(checkScratch(type.getNumElements(), sizeOf(type.getElementType()),
                          alloca)))
    return failure();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&target.getBody().front());
  int64_t alignment = std::max<int64_t>(64, alloca.getAlignment().value_or(0));
  uniform.map(alloca.getResult(),
              memref::AllocaOp::create(b, alloca.getLoc(), type,
                                       b.getI64IntegerAttr(alignment))
                  .getResult());
  return success();
}

LogicalResult BlockEmitter::emitBlock(Block &source) {
  for (Operation &op : source.without_terminator()) {
    if (facts::isConvergent(&op)) {
      if (failed(emitConvergent(&op)))
        return failure();
    } else if (uniformity.isUniformOp(&op)) {
      if (isa<memref::LoadOp>(op) && pendingWrites() && failed(flush(&source)))
        return failure();
      b.clone(op, uniform);
    } else if (isRecomputed(&op)) {
      continue;
    } else if (auto alloca = dyn_cast<memref::AllocaOp>(op)) {
      if (failed(emitShared(alloca)))
        return failure();
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
    } else if (ir::awaitsOthers(&op) && !facts::findConvergent(&op)) {
      // All threads do what stands before it first: others may await that.
      if (failed(flush(&source)))
        return failure();
      pending.insert(&op);
      if (failed(flush(&source)))
        return failure();
    } else {
      if (Operation *bad = facts::findConvergent(&op)) {
        StringRef name = askedName(bad);
        bad->emitError() << "'" << name
                         << "' op is under control flow that is not the same "
                            "for all threads of the block, and not provably "
                            "for those of each subgroup, which the host target "
                            "does not support: threads may part at the '"
                         << op.getName() << "' at "
                         << ir::describeLocation(op.getLoc())
                         << "; move it to where all threads pass";
        return failure();
      }
      // The others go as far before the kernel stops as they do on a GPU.
      if (isa<cf::AssertOp>(op) && !ir::hasMark(&op, ir::Mark::Sentence) &&
          failed(flush(&source)))
        return failure();
      SmallVector<Guard> guards;
      if (auto branch = dyn_cast<scf::IfOp>(op);
          branch && !tile.active() &&
          collectGuards(branch.getCondition(), guards)) {
        if (failed(emitLikelyIf(branch, guards)))
          return failure();
        continue;
      }
      if (failed(insert(&op)))
        return failure();
    }
  }
  return success();
}

LogicalResult BlockEmitter::emitForInDomain(scf::ForOp loop) {
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
  if (shape.unroll != 0 && isInnermost(loop))
    markLoop(b, kernel.getLoc(), Sequential);
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

int64_t divisorOf(int64_t extent, int64_t most) {
  int64_t best = std::clamp<int64_t>(most, 1, extent);
  while (extent % best != 0)
    --best;
  return best;
}

BlockEmitter::Tile BlockEmitter::chooseTile(scf::ForOp loop) const {
  constexpr int64_t registerBytes = 256; // eight vectors of 256 bits
  int64_t bytes = 0;
  for (auto [argument, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
    if (!uniformity.isUniform(argument))
      bytes += sizeOf(argument.getType());
    else if (!result.use_empty())
      return {}; // a uniform result belongs to the whole block
  }
  if (bytes == 0 || tile.active() || facts::findConvergent(loop))
    return {};
  int64_t threads = std::max<int64_t>(registerBytes / bytes, 8);
  Tile result;
  if (shape.tileX != 0) {
    result.width = shape.tileX;
    result.height = shape.tileY;
    return result;
  }
  result.width = divisorOf(block.x, threads);
  result.height = divisorOf(block.y, threads / result.width);
  return result;
}

LogicalResult BlockEmitter::emitFor(scf::ForOp loop) {
  if (isRowLoop(loop))
    return emitRowLoop(loop);
  Tile chosen = chooseTile(loop);
  if (!chosen.active())
    return emitForInDomain(loop);
  if (failed(flush(loop->getBlock())))
    return failure();
  auto results = arraysFor(loop.getResults(), loop);
  if (failed(results) || failed(packLoads(loop)))
    return failure();
  Location loc = loop.getLoc();
  OpBuilder::InsertionGuard guard(b);
  auto openLoop = [&](int64_t extent, int64_t step) -> Value {
    if (extent == step)
      return constant(0);
    Value low = constant(0), high = constant(extent), by = constant(step);
    auto tiles = scf::ForOp::create(b, loc, low, high, by);
    b.setInsertionPointToStart(tiles.getBody());
    return tiles.getInductionVar();
  };
  chosen.z = openLoop(block.z, 1);
  chosen.y = openLoop(block.y, chosen.height);
  chosen.x = openLoop(block.x, chosen.width);
  tile = chosen;
  LogicalResult done = emitForInDomain(loop);
  if (succeeded(done)) {
    storeVarying(loop.getResults(), loop.getRegionIterArgs(), *results);
    done = flush(loop->getBlock());
  }
  tile = {};
  packed.clear();
  for (auto [result, array] : llvm::zip_equal(loop.getResults(), *results))
    if (array)
      arrays[result] = array;
  return done;
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
