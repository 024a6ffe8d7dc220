// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/StagePlan.h"

#include "facts/AffineEvaluator.h"
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/SourceText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

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

// Writes what MGPU_STAGE=1 adds to a kernel's text (StagePlan.h): tiles in
// shared memory, copies to them, and macros by which loads read there.

using llvm::StringRef;

std::string stageMacro(StringRef name) { return "MGPU_STAGED_" + name.str(); }

/// No name of the source begins so (Names).
static std::string tileName(StringRef buffer) {
  return "mgpuTile_" + buffer.str();
}

/// Elements of a tile along an axis.
static std::string sizeOfTile(const StageTile &tile, size_t axis) {
  static constexpr const char *sizes[] = {"MGPU_BLOCK_X * MGPU_VECTOR",
                                          "MGPU_BLOCK_Y", "MGPU_BLOCK_Z"};
  return tile.along[axis] ? std::string("(") + sizes[axis] + " + " +
                                std::to_string(tile.halo[axis]) + ")"
                          : "1";
}

/// The step from one row of the tile to the next.
static std::string pitchOfTile(const StageTile &tile) {
  const std::string size = sizeOfTile(tile, tile.order[0]);
  return tile.isTransposed() ? "(" + size + " + 1)" : size;
}

/// The element of a tile that is X, Y and Z from the thread's own.
static std::string placeInTile(const StageTile &tile) {
  static constexpr const char *thread[] = {"threadIdx.x * MGPU_VECTOR + (X)",
                                           "threadIdx.y + (Y)",
                                           "threadIdx.z + (Z)"};
  auto [first, next, last] = tile.order;
  std::string row;
  if (tile.along[last])
    row = std::string("(") + thread[last] + ") * " + sizeOfTile(tile, next);
  if (tile.along[next])
    row += (row.empty() ? "" : " + ") + std::string(thread[next]);
  return row.empty()
             ? thread[first]
             : "(" + row + ") * " + pitchOfTile(tile) + " + " + thread[first];
}

std::string EntryText::stageMacros() const {
  std::string staged, otherwise;
  for (const StageTile &tile : stages->tiles) {
    const std::string &name =
        kernel.parameters[tile.buffer.getArgNumber()].name;
    std::string macro = "#define " + stageMacro(name) + "(";
    for (size_t k = 0; k < 3; ++k)
      if (tile.along[k])
        macro += std::string(1, char('X' + k)) + ", ";
    macro += "otherwise) ";
    staged += macro + "(true ? " + tileName(name) + "[" + placeInTile(tile) +
              "] : otherwise)\n";
    otherwise += macro + "otherwise\n";
  }
  return "#if MGPU_STAGE // how a load reads: from a tile, or as it is written "
         "behind it\n" +
         staged + "#else\n" + otherwise + "#endif\n";
}

std::string EntryText::stageArrays() const {
  std::string text = "#if MGPU_STAGE\n";
  for (const StageTile &tile : stages->tiles) {
    const CudaParameter &buffer = kernel.parameters[tile.buffer.getArgNumber()];
    StringRef type(buffer.type); // "const float *"
    type.consume_front("const ");
    text += "  static __shared__ __align__(16) " + type.drop_back(2).str() +
            " " + tileName(buffer.name) + "[";
    for (size_t k : {tile.order[2], tile.order[1]})
      if (tile.along[k])
        text += sizeOfTile(tile, k) + " * ";
    text += pitchOfTile(tile) + "];\n";
  }
  return text + "#endif\n";
}

std::string EntryText::stageCopy(const StageTile &tile) const {
  const std::string &name = kernel.parameters[tile.buffer.getArgNumber()].name;
  auto type = llvm::cast<mlir::MemRefType>(tile.buffer.getType());
  llvm::SmallVector<int64_t> strides;
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  // A block's threads, this one's number among them, and the tile's first
  // element in the buffer.
  std::string threads, number, first = std::to_string(tile.first), sizes;
  for (const Axis &axis : axes) {
    const size_t k = size_t(axis.letter - 'x');
    const std::string thread = std::string("threadIdx.") + axis.letter;
    number += number.empty() ? thread : " + " + threads + " * " + thread;
    threads += (threads.empty() ? "MGPU_BLOCK_" : " * MGPU_BLOCK_") +
               std::string(1, axis.upper);
    if (!tile.along[k])
      continue;
    first += std::string(" + (long long)(global") + axis.upper + " - " +
             thread + (k == 0 ? " * MGPU_VECTOR)" : ")") +
             (k == tile.order[0] ? "" : " * " + std::to_string(tile.stride[k]));
  }
  for (size_t k : tile.order)
    sizes += ", " + sizeOfTile(tile, k);
  for (size_t k : {tile.order[1], tile.order[2]})
    sizes += ", " + std::to_string(tile.stride[k]) + "ll";
  return fill(
      R"(    $FUNCTION$<$THREADS$>($TILE$, $BUFFER$, $FIRST$,
              $ELEMENTS$ll$SIZES$, $NUMBER$);
)",
      {{"FUNCTION", tile.isTransposed() ? "stageColumns" : "stageTile"},
       {"THREADS", threads},
       {"TILE", tileName(name)},
       {"BUFFER", name + (offset ? " + " + std::to_string(offset) : "")},
       {"FIRST", first},
       {"ELEMENTS", std::to_string(type.getNumElements())},
       {"SIZES", sizes},
       {"NUMBER", number}});
}

std::string EntryText::stageCopies() const {
  std::string copies;
  for (const StageTile &tile : stages->tiles)
    copies += stageCopy(tile);
  return fill(R"(#if MGPU_STAGE
    if (item > 0)
      __syncthreads(); // the tiles are read no more
$COPIES$    __syncthreads();
#endif
)",
              {{"COPIES", copies}});
}

} // namespace mgpu::kernels::cuda
