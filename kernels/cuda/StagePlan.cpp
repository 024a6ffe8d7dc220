// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/StagePlan.h"

#include "facts/AffineEvaluator.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <map>

using namespace mlir;

namespace mgpu::kernels::cuda {

namespace {

using Axes = std::array<int64_t, 3>;

// Numbers of programs; sums of products of them do not overflow.
constexpr int64_t mostNumber = int64_t(1) << 31;

/// A position that follows from the global index alone: constant + sum of
/// stride[k] * (block id * block size + thread id).
struct Position {
  Axes stride{};
  int64_t constant = 0;
};

/// The place in its buffer that a load reads, in elements from the first one. A
/// step along an axis on which the launch is one thread long is 0.
std::optional<Position> positionOf(memref::LoadOp load, Dim3 block, Dim3 grid,
                                   facts::AffineEvaluator &affine) {
  MemRefType type = load.getMemRefType();
  planner::AffineForm address;
  int64_t stride = 1;
  for (size_t k = load.getIndices().size(); k-- > 0;) {
    auto at = affine.evaluate(load.getIndices()[k]);
    if (!at || !affine.addScaled(address, *at, stride))
      return std::nullopt;
    stride *= type.getDimSize(unsigned(k));
  }
  Axes thread{}, blocks{};
  for (auto [counter, coefficient] : address.terms) {
    if (coefficient < 0 || coefficient > mostNumber)
      return std::nullopt;
    if (auto axis = facts::AffineEvaluator::threadAxisOf(counter))
      thread[*axis] = coefficient;
    else if (auto axis = facts::AffineEvaluator::blockAxisOf(counter))
      blocks[*axis] = coefficient;
    else
      return std::nullopt;
  }
  const int64_t sizes[] = {block.x, block.y, block.z},
                grids[] = {grid.x, grid.y, grid.z};
  for (size_t k = 0; k < 3; ++k) { // an id of one value is in no form
    if (sizes[k] == 1)
      thread[k] = blocks[k];
    if (grids[k] > 1 && blocks[k] != sizes[k] * thread[k])
      return std::nullopt;
  }
  if (std::abs(address.constant) > mostNumber)
    return std::nullopt;
  return Position{thread, address.constant};
}

/// Whether an operation may change a buffer.
bool isStore(Operation *op) {
  if (isa<gpu::PrintfOp>(op) || op->getNumRegions() != 0 ||
      op->hasTrait<OpTrait::IsTerminator>())
    return false;
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return !store.getMemRef().getDefiningOp<memref::AllocaOp>();
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects ? effects.hasEffect<MemoryEffects::Write>()
                 : !isMemoryEffectFree(op);
}

/// Whether `store` may run before `load` in one thread.
bool mayPrecede(Operation *store, Operation *load) {
  for (Operation *at = store; at; at = at->getParentOp())
    for (Operation *other = load; other; other = other->getParentOp()) {
      if (at->getBlock() != other->getBlock())
        continue;
      for (Operation *above = at->getParentOp();
           above && !isa<func::FuncOp>(above); above = above->getParentOp())
        if (!isa<scf::IfOp>(above))
          return true; // a loop comes by again
      if (at == other) // in it, the two are in different blocks
        return !isa<scf::IfOp>(at);
      return at->isBeforeInBlock(other);
    }
  return true;
}

/// Loads of one buffer that move alike with the thread.
struct Group {
  std::vector<std::pair<memref::LoadOp, int64_t>> loads; ///< and the constant
};

/// The nearest whole number of `stride` in what is left of a distance.
int64_t takeSteps(int64_t &distance, int64_t stride) {
  int64_t twice = 2 * distance + stride, steps = twice / (2 * stride);
  if (twice % (2 * stride) < 0)
    --steps;
  distance -= steps * stride;
  return steps;
}

/// No tile is so much larger than the block that neighbours could not share it.
constexpr std::array<uint32_t, 3> mostHalo{256, 16, 16};

/// The axis along which threads read neighbouring elements, then the others,
/// along which they are ever further apart.
std::optional<std::array<size_t, 3>> orderOf(const Axes &stride) {
  if (stride[0] == 1)
    return std::array<size_t, 3>{0, 1, 2};
  const size_t fast = stride[1] == 1 ? 1 : 2, other = 3 - fast;
  if (stride[0] < 1 || stride[fast] != 1)
    return std::nullopt;
  return stride[0] < stride[other] ? std::array<size_t, 3>{fast, 0, other}
                                   : std::array<size_t, 3>{fast, other, 0};
}

void addTile(StagePlan &plan, BlockArgument buffer, const Axes &stride,
             const Group &group) {
  StageTile tile;
  tile.buffer = buffer;
  tile.stride = stride;
  tile.order = *orderOf(stride);
  auto type = cast<MemRefType>(buffer.getType());
  tile.elementBytes = std::max(8u, widthOf(type.getElementType())) / 8;
  Axes low{}, high{};
  std::vector<Axes> places;
  for (const auto &[load, constant] : group.loads) {
    int64_t rest = constant;
    Axes at{};
    for (size_t k : {tile.order[2], tile.order[1]})
      if (stride[k] != 0)
        at[k] = takeSteps(rest, stride[k]);
    at[tile.order[0]] = rest;
    for (size_t k = 0; k < 3; ++k) {
      low[k] = places.empty() ? at[k] : std::min(low[k], at[k]);
      high[k] = places.empty() ? at[k] : std::max(high[k], at[k]);
    }
    places.push_back(at);
  }
  for (size_t k = 0; k < 3; ++k) {
    tile.along[k] = stride[k] != 0;
    if (high[k] - low[k] > mostHalo[k])
      return;
    tile.halo[k] = uint32_t(high[k] - low[k]);
    tile.first += low[k] * stride[k];
  }
  for (auto [each, at] : llvm::zip_equal(group.loads, places)) {
    for (size_t k = 0; k < 3; ++k)
      at[k] -= low[k];
    plan.loads[each.first] = {plan.tiles.size(), at};
  }
  plan.tiles.push_back(tile);
}

} // namespace

StagePlan stagePlanOf(func::FuncOp entry, const LaunchShape &shape, Dim3 block,
                      Dim3 maxGrid) {
  StagePlan plan;
  if (!shape.reshapable)
    return plan;
  facts::AffineEvaluator affine(entry.getBody(), maxGrid, block);
  SmallVector<Operation *> stores;
  entry.walk([&](Operation *op) {
    if (op != entry.getOperation() && isStore(op))
      stores.push_back(op);
  });
  for (BlockArgument buffer : entry.getArguments()) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (!type || !type.hasStaticShape() ||
        isa<VectorType>(type.getElementType()) ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        ShapedType::isDynamic(offset) ||
        strides != computeSuffixProduct(type.getShape()) ||
        type.getNumElements() > mostNumber)
      continue;
    if (mayBeWritten(buffer))
      continue;
    std::map<Axes, Group> groups;
    for (Operation *user : buffer.getUsers()) {
      auto load = dyn_cast<memref::LoadOp>(user);
      auto at = load ? positionOf(load, block, maxGrid, affine) : std::nullopt;
      if (at && orderOf(at->stride) &&
          llvm::none_of(stores, [&](Operation *store) {
            return mayPrecede(store, load);
          }))
        groups[at->stride].loads.push_back({load, at->constant});
    }
    const std::pair<const Axes, Group> *best = nullptr;
    for (const auto &each : groups)
      if (!best || each.second.loads.size() > best->second.loads.size())
        best = &each;
    if (!best)
      continue;
    auto differs = [&](const auto &each) {
      return each.second != best->second.loads.front().second;
    };
    if (best->first[0] != 1 || llvm::any_of(best->second.loads, differs))
      addTile(plan, buffer, best->first, best->second);
  }
  return plan;
}

} // namespace mgpu::kernels::cuda
