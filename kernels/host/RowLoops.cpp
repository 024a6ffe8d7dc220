// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops by which the lanes of a subgroup go through a row each, before they
// combine what they found: sums of rows, and products of a few vectors with a
// matrix that is stored by rows. Lanes are the lanes of vectors, and a tile of
// rows by results stays in registers, so that rows share what they load. Each
// lane does what its thread does, in the same order.
#include "kernels/host/BlockEmitter.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels {

/// Whether the threads of a subgroup, or of the block, combine the value, or
/// what branches make of it, as of the elements that are left of a row.
static bool isCombined(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    if (auto all = dyn_cast<gpu::AllReduceOp>(user))
      return all.getBody().empty();
    if (auto reduce = dyn_cast<gpu::SubgroupReduceOp>(user))
      return !reduce.getClusterSize();
    auto branch = dyn_cast<scf::IfOp>(user->getParentOp());
    return branch && branch.getNumResults() != 0 &&
           llvm::all_of(branch.getResults(), isCombined);
  });
}

/// Whether elements of the type lie in memory as they do in vectors.
static bool isOfBytes(Type type) {
  const unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  return bits >= 8 && llvm::isPowerOf2_32(bits);
}

/// Whether neighbouring threads load neighbours, or all of a row one element.
bool BlockEmitter::isRowLoad(memref::LoadOp load) const {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!uniform.contains(load.getMemRef()) || !isOfBytes(load.getType()) ||
      failed(load.getMemRefType().getStridesAndOffset(strides, offset)))
    return false;
  for (auto [k, index] : llvm::enumerate(load.getIndices())) {
    const auto step = stridesOf(index);
    const bool isAlong = k + 1 == strides.size() && strides[k] == 1;
    if (!step || ((*step)[0] != 0 && !(isAlong && (*step)[0] == 1)))
      return false;
  }
  return true;
}

/// The operations of the loop's body that `results` need.
static llvm::SmallSetVector<Operation *, 16> neededBy(scf::ForOp loop,
                                                      ValueRange results) {
  llvm::SmallSetVector<Operation *, 16> found;
  auto add = [&](ValueRange values) {
    for (Value each : values)
      if (Operation *op = each.getDefiningOp();
          op && op->getBlock() == loop.getBody())
        found.insert(op);
  };
  add(results);
  for (size_t k = 0; k < found.size(); ++k)
    add(found[k]->getOperands());
  return found;
}

/// The results of a tile.
constexpr int64_t mostTogether = 4;

/// Whether results that come of several tiles need each other.
static bool meet(scf::ForOp loop) {
  if (loop.getNumResults() <= mostTogether)
    return false;
  for (auto [argument, yielded] :
       llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues())) {
    auto isOther = [&, own = argument](Value value) {
      return llvm::is_contained(loop.getRegionIterArgs(), value) &&
             value != own;
    };
    if (isOther(yielded) ||
        llvm::any_of(neededBy(loop, yielded), [&](Operation *op) {
          return llvm::any_of(op->getOperands(), isOther);
        }))
      return true;
  }
  return false;
}

bool BlockEmitter::isRowLoop(scf::ForOp loop) const {
  if (tile.active() || shape.tileX != 0 || shape.items != 1 ||
      !shape.makesVectors || block.x % subgroupSize != 0 || block.z != 1 ||
      loop.getNumResults() == 0 || meet(loop))
    return false;
  const Type type = loop.getResult(0).getType();
  for (auto [init, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getResults()))
    if (result.getType() != type || !uniform.contains(init) ||
        !isCombined(result))
      return false;
  auto isOfLanes = [&](Value operand) {
    return uniformity.isUniform(operand) ||
           (!isRecomputed(operand.getDefiningOp()) &&
            (loop.getRegion().isAncestor(operand.getParentRegion()) ||
             isOfBytes(operand.getType())));
  };
  return (type.isF32() || type.isF64()) &&
         llvm::all_of(loop.getBody()->without_terminator(), [&](Operation &op) {
           auto load = dyn_cast<memref::LoadOp>(op);
           if (uniformity.isUniformOp(&op) || isRecomputed(&op))
             return load || isMemoryEffectFree(&op);
           return load ? isRowLoad(load)
                       : OpTrait::hasElementwiseMappableTraits(&op) &&
                             llvm::all_of(op.getOperands(), isOfLanes);
         });
}

Value BlockEmitter::vectorOf(Value value, int64_t lanes, RowPart &part,
                             Operation *user) {
  if (Value known = part.vectors.lookupOrNull(value))
    return known;
  Location loc = user->getLoc();
  auto type = VectorType::get({lanes}, value.getType());
  Value found;
  if (auto array = arrays.find(value); array != arrays.end()) {
    found =
        vector::LoadOp::create(b, loc, type, array->second, part.thread.linear);
  } else {
    FailureOr<Value> scalar = lookup(value, part.thread, user);
    if (failed(scalar))
      return {};
    found = vector::BroadcastOp::create(b, loc, type, *scalar);
  }
  part.vectors.map(value, found);
  return found;
}

LogicalResult BlockEmitter::cloneForLanes(Operation &op, int64_t lanes,
                                          RowPart &part) {
  if (uniformity.isUniformOp(&op)) {
    for (Value operand : op.getOperands()) {
      FailureOr<Value> known = lookup(operand, part.thread, &op);
      if (failed(known))
        return failure();
      part.thread.map.map(operand, *known);
    }
    b.clone(op, part.thread.map);
    return success();
  }
  if (isRecomputed(&op))
    return success();
  Value result = op.getResult(0);
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    SmallVector<Value> indices;
    for (Value index : load.getIndices()) {
      FailureOr<Value> found = lookup(index, part.thread, load);
      if (failed(found))
        return failure();
      indices.push_back(*found);
    }
    Value memref = uniform.lookup(load.getMemRef());
    auto type = VectorType::get({lanes}, load.getType());
    const bool isOne =
        indices.empty() || (*stridesOf(load.getIndices().back()))[0] == 0;
    Value element =
        isOne ? vector::BroadcastOp::create(
                    b, op.getLoc(), type,
                    memref::LoadOp::create(b, op.getLoc(), memref, indices))
                    .getResult()
              : vector::LoadOp::create(b, op.getLoc(), type, memref, indices)
                    .getResult();
    part.vectors.map(result, element);
    return success();
  }
  for (Value operand : op.getOperands())
    if (!vectorOf(operand, lanes, part, &op))
      return failure();
  Operation *made = b.clone(op, part.vectors);
  for (auto [mine, theirs] :
       llvm::zip_equal(op.getResults(), made->getResults()))
    theirs.setType(VectorType::get({lanes}, mine.getType()));
  return success();
}

/// Computes results `first` to `first` + `count` for the rows of `parts`.
LogicalResult BlockEmitter::emitRowTile(scf::ForOp loop, int64_t first,
                                        int64_t count, int64_t lanes,
                                        MutableArrayRef<RowPart> parts) {
  Location loc = loop.getLoc();
  SmallVector<Value> inits;
  for (RowPart &part : parts)
    for (Value init : loop.getInitArgs().slice(first, count))
      inits.push_back(vectorOf(init, lanes, part, loop));
  auto copy = scf::ForOp::create(b, loc, uniform.lookup(loop.getLowerBound()),
                                 uniform.lookup(loop.getUpperBound()),
                                 uniform.lookup(loop.getStep()), inits);
  const auto needed =
      neededBy(loop, loop.getYieldedValues().slice(first, count));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    markLoop(b, loc, Rolled);
    SmallVector<Value> yields;
    for (auto [k, outer] : llvm::enumerate(parts)) {
      RowPart part = outer;
      part.thread.map.map(loop.getInductionVar(), copy.getInductionVar());
      for (int64_t sum = 0; sum < count; ++sum)
        part.vectors.map(
            loop.getRegionIterArg(unsigned(first + sum)),
            copy.getRegionIterArg(unsigned(int64_t(k) * count + sum)));
      for (Operation &op : loop.getBody()->without_terminator())
        if (needed.contains(&op) && failed(cloneForLanes(op, lanes, part)))
          return failure();
      for (Value each : loop.getYieldedValues().slice(first, count))
        yields.push_back(vectorOf(each, lanes, part, loop));
    }
    scf::YieldOp::create(b, loc, yields);
  }
  for (auto [k, part] : llvm::enumerate(parts))
    for (int64_t sum = 0; sum < count; ++sum)
      vector::StoreOp::create(
          b, loc, copy.getResult(unsigned(int64_t(k) * count + sum)),
          arrays.lookup(loop.getResult(unsigned(first + sum))),
          part.thread.linear);
  return success();
}

LogicalResult BlockEmitter::emitRowLoop(scf::ForOp loop) {
  if (failed(flush(loop->getBlock())) ||
      failed(arraysFor(loop.getResults(), loop)))
    return failure();
  // A tile takes half of the registers: results by rows, or by neighbours.
  const int64_t results = loop.getNumResults(),
                lanes = shape.vectorBytes / sizeOf(loop.getResult(0).getType()),
                registers = shape.vectorBytes == 64 ? 16 : 8,
                groups = llvm::divideCeil(results, mostTogether),
                together = llvm::divideCeil(results, groups);
  const int64_t vectors = registers / together,
                rows = divisorOf(block.y, vectors),
                wide = divisorOf(block.x / lanes, vectors / rows) * lanes;
  OpBuilder::InsertionGuard guard(b);
  Value row = times(openLoop(block.y / rows), rows),
        lane = times(openLoop(block.x / wide), wide);
  SmallVector<RowPart> parts;
  for (int64_t y = 0; y < rows; ++y)
    for (int64_t x = 0; x < wide; x += lanes) {
      Thread &thread = parts.emplace_back().thread;
      thread.ids[2] = constant(0);
      thread.ids[1] = plus(row, constant(y));
      thread.ids[0] = plus(lane, constant(x));
      thread.linear = plus(thread.ids[0], times(thread.ids[1], block.x));
    }
  for (int64_t first = 0; first < results; first += together)
    if (failed(emitRowTile(loop, first, std::min(together, results - first),
                           lanes, parts)))
      return failure();
  return success();
}

} // namespace mgpu::kernels
