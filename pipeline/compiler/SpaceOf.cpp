// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/SpaceOf.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/ProductForms.h"
#include "kernels/cuda/StagePlan.h"
#include "kernels/cuda/VectorForm.h"
#include "kernels/lower/LaunchShape.h"
#include "kernels/lower/Normalise.h"
#include "planner/import/KernelSteps.h"

#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace mgpu::kernels {

using namespace mlir;
using P = KernelParameter;

namespace {

bool isLong(const KernelSpace &space, unsigned axis) {
  const uint32_t *block = &space.block.x, *grid = &space.maxGrid.x;
  return uint64_t(block[axis]) * grid[axis] > 1;
}

void offerBlocks(KernelSpace &space) {
  if (!space.reshapable) {
    for (P each : {P::BlockX, P::BlockY, P::BlockZ})
      space.offer(each, {}, space.reason);
    return;
  }
  space.offer(P::BlockX, {8, 16, 32, 64, 128, 256, 512, 1024});
  const char *flat = "the launch is one thread long along it";
  space.offer(P::BlockY,
              isLong(space, 1) ? std::set<uint32_t>{1, 2, 4, 8, 16}
                               : std::set<uint32_t>{},
              flat);
  space.offer(P::BlockZ,
              isLong(space, 2) ? std::set<uint32_t>{1, 2, 4}
                               : std::set<uint32_t>{},
              flat);
}

void offerHost(KernelSpace &space, const LaunchShape &shape) {
  if (!shape.ordered.empty()) {
    space.reshapable = false;
    space.reason = "keeps the order of its threads: " + shape.ordered;
  }
  offerBlocks(space);
  std::set<uint32_t> items;
  if (shape.ordered.empty())
    for (uint32_t each : {2, 4})
      if (space.reshapable || space.block.x % each == 0)
        items.insert(each);
  if (!space.reshapable) {
    std::set<uint32_t> x;
    for (uint32_t each : items)
      x.insert(space.block.x / each);
    space.offer(P::BlockX, x, space.reason);
  }
  space.offer(P::Items, items, space.reason);
  space.offer(P::Vector, {1, 4, 8, 16});
  space.offer(P::Unroll,
              shape.hasLoops ? std::set<uint32_t>{2, 4, 8}
                             : std::set<uint32_t>{},
              "the kernel has no loop");
  space.offer(P::MinBlocks, {}, "a processor has no such bound");
  space.offer(P::ClusterX, {}, "a processor has no clusters");
  const char *noTile = "no loop of the kernel hands values on";
  std::set<uint32_t> tileX, tileY;
  if (shape.hasCarryingLoops) {
    tileX = {8, 16, 32, 64, 128};
    tileY = {1, 2, 4, 8};
  }
  space.offer(P::TileX, tileX, noTile);
  space.offer(P::TileY, tileY, noTile);
  const Formula row = Formula(P::BlockX) * P::Items;
  space.covers[0] = row;
  space.requireLaunch();
  if (!space.reshapable)
    space.require("the source's block", row, Relation::Equal, space.block.x,
                  "block_x * items is $left, not the $right threads along x of "
                  "the source's block, which the kernel keeps");
  space.require("tiles of two sizes", P::TileX, Relation::ZeroTogether,
                P::TileY,
                "tile_x = $left and tile_y = $right: both are 0 or neither");
  const char *tiles = "tiles that divide the block";
  space.require(tiles, row, Relation::MultipleOf, P::TileX,
                "a tile of $right does not divide a block of $left along x");
  space.require(tiles, P::BlockY, Relation::MultipleOf, P::TileY,
                "a tile of $right does not divide a block of $left along y");
}

/// Bytes of the smallest element that a kernel loads or stores.
uint32_t smallestElement(func::FuncOp entry) {
  unsigned bits = 32;
  entry.walk([&](Operation *op) {
    if (isa<memref::LoadOp, memref::StoreOp>(op))
      for (Value operand : op->getOperands())
        if (auto type = dyn_cast<MemRefType>(operand.getType()))
          if (type.getElementType().isIntOrFloat())
            bits = std::min(bits, type.getElementTypeBitWidth());
  });
  return std::max(bits / 8, 1u);
}

/// Blocks of the source that are a warp each may lie beside each other in one.
void offerRows(KernelSpace &space) {
  constexpr int64_t warp = 32;
  space.offer(P::BlockY, {1, 2, 4, 8});
  space.covers[0] = space.covers[0] * P::BlockY;
  space.covers[1] = 1;
  space.require("blocks beside each other",
                (Formula(P::BlockY) + -1) * (Formula(P::BlockX) + -warp),
                Relation::Equal, 0,
                "several blocks of the source lie beside each other in a block "
                "only where each is a warp: block_x = 32");
}

/// Makes the form that is right for most kernels of this kind the default,
/// where the space has it.
void takeForm(KernelSpace &space, planner::LaunchWidth form) {
  auto has = [&](P parameter, uint32_t value) {
    return std::ranges::count(space.choice(parameter).values, value) > 0;
  };
  if (form.vector == 1 || !has(P::Vector, form.vector))
    return;
  KernelConfig wide = space.defaults;
  wide[P::Vector] = form.vector;
  if (!space.reshapable)
    wide[P::BlockX] = space.block.x / form.vector;
  else if (has(P::BlockX, form.blockX))
    wide[P::BlockX] = form.blockX;
  if (has(P::BlockY, form.rows) && form.rows > 1)
    wide[P::BlockY] = form.rows;
  if (has(P::MinBlocks, form.minBlocks))
    wide[P::MinBlocks] = form.minBlocks;
  if (has(P::Unroll, form.unroll))
    wide[P::Unroll] = form.unroll;
  if (has(P::BlockX, wide[P::BlockX]) && !space.broken(wide))
    space.defaults = wide;
}

/// `vectorReason`: why the text has no form for several threads, or empty.
/// `elementBytes` is of the smallest element.
void offerCuda(KernelSpace &space, const LaunchShape &shape,
               const std::string &vectorReason, uint32_t elementBytes) {
  offerBlocks(space);
  const char *clusters = "the launch has clusters of blocks";
  const bool isHeld = shape.cluster || shape.awaitsOthers;
  std::set<uint32_t> items{1, 2, 4, 8};
  if (space.reshapable) // so many that all blocks are there at once
    items.insert({16, 32, 64});
  space.offer(P::Items, isHeld ? std::set<uint32_t>{} : items,
              shape.cluster ? clusters : "its blocks wait for each other");
  std::set<uint32_t> vectors;
  if (vectorReason.empty())
    for (uint32_t each = 2; each * elementBytes <= 16; each *= 2)
      if (space.block.x % each == 0)
        vectors.insert(each);
  if (!space.reshapable) { // fewer threads, that each are several
    constexpr uint64_t warp = 32;
    std::erase_if(vectors, [&](uint32_t each) {
      return space.block.volume() % (each * warp) != 0;
    });
    if (!vectors.empty() && space.block.volume() % (8 * warp) == 0 &&
        space.block.x % 8 == 0)
      vectors.insert(8);
    std::set<uint32_t> x;
    for (uint32_t each : vectors)
      x.insert(space.block.x / each);
    space.offer(P::BlockX, x, space.reason);
  }
  space.offer(P::Vector, vectors,
              vectorReason.empty() ? "has too few threads" : vectorReason);
  space.offer(P::Unroll,
              shape.hasCountedLoops ? std::set<uint32_t>{1, 2, 4, 8}
                                    : std::set<uint32_t>{},
              "the kernel has no counted loop");
  space.offer(P::MinBlocks, {1, 2, 3, 4, 6, 8, 16});
  // 8 is the most that every GPU with clusters takes.
  space.offer(P::ClusterX,
              shape.cluster ? std::set<uint32_t>{}
                            : std::set<uint32_t>{1, 2, 4, 8},
              clusters);
  for (P each : {P::TileX, P::TileY})
    space.offer(each, {}, "threads of a GPU run by themselves");
  const Formula threads = Formula(P::BlockX) * P::Vector;
  space.covers[0] = threads * P::Items;
  if (cuda::mayLieBeside(shape, vectorReason.empty(), space.block))
    offerRows(space);
  space.requireLaunch();
  if (!space.reshapable)
    space.require("the source's block", threads, Relation::Equal, space.block.x,
                  "block_x * vector is $left, not the $right threads along x "
                  "of the source's block, which the kernel keeps");
}

/// With MGPU_STAGE, the bytes of all tiles; a GPU gives shared memory in units.
Formula bytesOf(const std::vector<cuda::StageTile> &tiles) {
  constexpr int64_t alignment = 16, unit = 128;
  const Formula threads[] = {Formula(P::BlockX) * P::Vector, P::BlockY,
                             P::BlockZ};
  Formula all = 0;
  for (const cuda::StageTile &tile : tiles) {
    const size_t first = tile.order[0];
    Formula bytes = tile.elementBytes;
    bytes = bytes * (threads[first] + tile.halo[first] + tile.isTransposed());
    for (size_t k : {tile.order[1], tile.order[2]})
      if (tile.along[k])
        bytes = bytes * (threads[k] + tile.halo[k]);
    all = all + std::move(bytes).roundedUp(alignment);
  }
  return std::move(all).roundedUp(unit);
}

/// Rows of a tile that are long along y or z are as long as a warp.
void offerTransposed(KernelSpace &space, const cuda::StagePlan &plan) {
  for (const cuda::StageTile &tile : plan.tiles) {
    if (!tile.isTransposed())
      continue;
    const P along = tile.order[0] == 1 ? P::BlockY : P::BlockZ;
    const std::vector<uint32_t> &offered = space.choice(along).values;
    std::set<uint32_t> values(offered.begin(), offered.end());
    values.insert({8, 16, 32});
    space.offer(along, values);
  }
}

} // namespace

Result<KernelSpace> spaceOf(ModuleOp kernel, Dim3 block, Dim3 maxGrid,
                            KernelTarget target) {
  if (target == KernelTarget::Cuda && isMatmul(kernel))
    return matmulSpace(kernel, block, maxGrid);
  if (target == KernelTarget::Cuda && isAttention(kernel))
    return attentionSpace(kernel, block, maxGrid);
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration())
    return fail(ErrorKind::Invalid, "a kernel module needs a function @entry");
  facts::AffineEvaluator affine(entry.getBody(), maxGrid, block);
  const planner::LaunchWidth form =
      planner::launchFormOf(entry.getBody(), maxGrid, block, affine,
                            facts::Uniformity(entry.getBody()));
  ir::FirstError first(kernel.getContext(), ir::FirstError::Others::Miss);
  if (failed(normaliseKernel(kernel, block,
                             target == KernelTarget::Cuda
                                 ? NvidiaOps::Kept
                                 : NvidiaOps::Expanded)))
    return fail(first.error("its affine operations could not be lowered"));
  LaunchShape shape = target == KernelTarget::Cuda
                          ? cuda::launchShapeOf(kernel, block)
                          : launchShapeOf(kernel, block);
  KernelSpace space;
  space.target = target;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reshapable = shape.reshapable;
  space.reason = shape.reason;
  space.sharedBytes = shape.sharedBytes;
  space.axes.resize(numKernelParameters);
  space.defaults[P::BlockX] = block.x;
  space.defaults[P::BlockY] = block.y;
  space.defaults[P::BlockZ] = block.z;
  if (target == KernelTarget::Host) {
    offerHost(space, shape);
    return space;
  }
  space.defaults[P::Vector] = 1;
  offerCuda(space, shape, cuda::vectorRefusal(shape, entry, block),
            smallestElement(entry));
  eraseDeadCode(kernel); // as the emitter does
  const cuda::StagePlan plan = cuda::stagePlanOf(entry, shape, block, maxGrid);
  if (!plan.empty()) {
    offerTransposed(space, plan);
    space.addTunable({"MGPU_STAGE", {0, 1}});
    space.sharedBytes =
        space.sharedBytes + bytesOf(plan.tiles) * Formula::tunable(0);
    space.requireStaticShared();
  }
  takeForm(space, form);
  return space;
}

} // namespace mgpu::kernels
