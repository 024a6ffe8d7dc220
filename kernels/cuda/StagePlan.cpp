// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/StagePlan.h"

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

/// constant + sum of thread[k] * thread id + block[k] * block id.
struct Linear {
  Axes thread{}, block{};
  int64_t constant = 0;

  void add(const Linear &other, int64_t factor) {
    for (size_t k = 0; k < 3; ++k) {
      thread[k] += factor * other.thread[k];
      block[k] += factor * other.block[k];
    }
    constant += factor * other.constant;
  }
};

// Numbers of programs; sums of products of them do not overflow.
constexpr int64_t mostNumber = int64_t(1) << 31;

std::optional<int64_t> numberOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) ||
      !constant.isSignedIntN(32))
    return std::nullopt;
  return constant.getSExtValue();
}

std::optional<Linear> linearOf(Value value, Dim3 block, unsigned depth = 0) {
  Linear result;
  if (std::optional<int64_t> number = numberOf(value)) {
    result.constant = *number;
    return result;
  }
  Operation *op = value.getDefiningOp();
  if (!op || depth == 16)
    return std::nullopt;
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op)) {
    result.thread[size_t(id.getDimension())] = 1;
    return result;
  }
  if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
    result.block[size_t(id.getDimension())] = 1;
    return result;
  }
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op)) {
    result.thread[size_t(id.getDimension())] = 1;
    result.block[size_t(id.getDimension())] =
        int64_t(sizeAlong(block, id.getDimension()));
    return result;
  }
  if (!value.getType().isIndex() ||
      !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  auto a = linearOf(op->getOperand(0), block, depth + 1),
       b = linearOf(op->getOperand(1), block, depth + 1);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::MulIOp>(op)) {
    auto isNumber = [](const Linear &l) {
      return l.thread == Axes{} && l.block == Axes{};
    };
    if (!isNumber(*b))
      std::swap(a, b);
    if (!isNumber(*b) || std::abs(b->constant) > mostNumber)
      return std::nullopt;
    result.add(*a, b->constant);
  } else {
    result.add(*a, 1);
    result.add(*b, isa<arith::SubIOp>(op) ? -1 : 1);
  }
  for (const Axes &each : {result.thread, result.block})
    for (int64_t factor : each)
      if (std::abs(factor) > mostNumber)
        return std::nullopt;
  return std::abs(result.constant) > mostNumber ? std::nullopt
                                                : std::optional(result);
}

/// The position in `buffer` that a load reads, as elements from the first one.
std::optional<Linear> positionOf(memref::LoadOp load, Dim3 block) {
  MemRefType type = load.getMemRefType();
  Linear result;
  int64_t stride = 1;
  for (size_t k = load.getIndices().size(); k-- > 0;) {
    auto at = linearOf(load.getIndices()[k], block);
    if (!at || stride > mostNumber)
      return std::nullopt;
    result.add(*at, stride);
    stride *= type.getDimSize(unsigned(k));
  }
  return result;
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
  const uint64_t extents[] = {uint64_t(block.x) * maxGrid.x,
                              uint64_t(block.y) * maxGrid.y,
                              uint64_t(block.z) * maxGrid.z};
  const int64_t sizes[] = {block.x, block.y, block.z};
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
      auto at = load ? positionOf(load, block) : std::nullopt;
      if (!at || llvm::any_of(stores, [&](Operation *store) {
            return mayPrecede(store, load);
          }))
        continue;
      bool isGlobal = true;
      for (size_t k = 0; k < 3; ++k) {
        if (extents[k] == 1) // its ids are 0
          at->thread[k] = at->block[k] = 0;
        isGlobal &=
            at->block[k] == sizes[k] * at->thread[k] && at->thread[k] >= 0;
      }
      if (isGlobal && orderOf(at->thread))
        groups[at->thread].loads.push_back({load, at->constant});
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
