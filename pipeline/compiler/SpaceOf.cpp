// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/compiler/SpaceOf.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/cuda/Matmul.h"
#include "kernels/cuda/StagePlan.h"
#include "kernels/cuda/VectorForm.h"
#include "kernels/lower/LaunchShape.h"
#include "kernels/lower/Normalise.h"

#include "mlir/IR/BuiltinOps.h"

#include <set>

namespace mgpu::kernels {

using namespace mlir;
using planner::KernelSpace;
using planner::KernelTarget;
using P = planner::KernelParameter;

namespace {

/// Collects the values of each parameter.
class SpaceBuilder {
public:
  SpaceBuilder(KernelSpace &space, const LaunchShape &shape,
               std::string vectorReason)
      : space(space), shape(shape), vectorReason(std::move(vectorReason)) {}

  void build();

private:
  void offer(P parameter, std::set<uint32_t> values,
             const std::string &reason = "");
  void offerBlocks(const std::set<uint32_t> &x);
  bool isLong(unsigned axis) const {
    const uint32_t *block = &space.block.x, *grid = &space.maxGrid.x;
    return uint64_t(block[axis]) * grid[axis] > 1;
  }
  void host();
  void cuda();

  KernelSpace &space;
  const LaunchShape &shape;
  std::string vectorReason; ///< why the text has no form for several threads
};

void SpaceBuilder::offer(P parameter, std::set<uint32_t> values,
                         const std::string &reason) {
  values.insert(space.defaults[parameter]);
  space.choices[size_t(parameter)] = {parameter,
                                      {values.begin(), values.end()},
                                      values.size() == 1 ? reason : ""};
}

void SpaceBuilder::offerBlocks(const std::set<uint32_t> &x) {
  if (!space.reshapable) {
    for (P each : {P::BlockX, P::BlockY, P::BlockZ})
      offer(each, {}, space.reason);
    return;
  }
  offer(P::BlockX, x);
  const char *flat = "the launch is one thread long along it";
  offer(P::BlockY,
        isLong(1) ? std::set<uint32_t>{1, 2, 4, 8, 16} : std::set<uint32_t>{},
        flat);
  offer(P::BlockZ,
        isLong(2) ? std::set<uint32_t>{1, 2, 4} : std::set<uint32_t>{}, flat);
}

void SpaceBuilder::host() {
  if (!shape.ordered.empty()) {
    space.reshapable = false;
    space.reason = "keeps the order of its threads: " + shape.ordered;
  }
  offerBlocks({8, 16, 32, 64, 128, 256, 512, 1024});
  std::set<uint32_t> items;
  if (shape.ordered.empty())
    for (uint32_t each : {2, 4})
      if (space.reshapable || space.block.x % each == 0)
        items.insert(each);
  if (!space.reshapable) {
    std::set<uint32_t> x;
    for (uint32_t each : items)
      x.insert(space.block.x / each);
    offer(P::BlockX, x, space.reason);
  }
  offer(P::Items, items, space.reason);
  offer(P::Vector, {1, 4, 8, 16});
  offer(P::Unroll,
        shape.hasLoops ? std::set<uint32_t>{2, 4, 8} : std::set<uint32_t>{},
        "the kernel has no loop");
  offer(P::MinBlocks, {}, "a processor has no such bound");
  offer(P::ClusterX, {}, "a processor has no clusters");
  const char *noTile = "no loop of the kernel hands values on";
  std::set<uint32_t> tileX, tileY;
  if (shape.hasCarryingLoops) {
    tileX = {8, 16, 32, 64, 128};
    tileY = {1, 2, 4, 8};
  }
  offer(P::TileX, tileX, noTile);
  offer(P::TileY, tileY, noTile);
}

void SpaceBuilder::cuda() {
  offerBlocks({8, 16, 32, 64, 128, 256, 512, 1024});
  offer(P::Items, {1, 2, 4, 8});
  std::set<uint32_t> vectors;
  if (vectorReason.empty())
    for (uint32_t each : {2, 4})
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
    offer(P::BlockX, x, space.reason);
  }
  offer(P::Vector, vectors,
        vectorReason.empty() ? "has too few threads" : vectorReason);
  offer(P::Unroll,
        shape.hasCountedLoops ? std::set<uint32_t>{1, 2, 4, 8}
                              : std::set<uint32_t>{},
        "the kernel has no counted loop");
  offer(P::MinBlocks, {1, 2, 3, 4, 6, 8, 16});
  // 8 is the most that every GPU with clusters takes.
  offer(P::ClusterX, {1, 2, 4, 8});
  for (P each : {P::TileX, P::TileY})
    offer(each, {}, "threads of a GPU run by themselves");
}

void SpaceBuilder::build() {
  space.choices.resize(planner::numKernelParameters);
  space.defaults[P::BlockX] = space.block.x;
  space.defaults[P::BlockY] = space.block.y;
  space.defaults[P::BlockZ] = space.block.z;
  if (space.target == KernelTarget::Host) {
    host();
  } else {
    space.defaults[P::Vector] = 1;
    cuda();
  }
}

} // namespace

Result<KernelSpace> spaceOf(ModuleOp kernel, Dim3 block, Dim3 maxGrid,
                            KernelTarget target) {
  if (target == KernelTarget::Cuda && isMatmul(kernel))
    return matmulSpace(kernel, block, maxGrid);
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration())
    return fail(ErrorKind::Invalid, "a kernel module needs a function @entry");
  ir::FirstError first(kernel.getContext(), ir::FirstError::Others::Miss);
  if (failed(normaliseKernel(kernel, block)))
    return fail(first.error("its affine operations could not be lowered"));
  LaunchShape shape = launchShapeOf(kernel, block);
  KernelSpace space;
  space.target = target;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reshapable = shape.reshapable;
  space.reason = shape.reason;
  space.sharedBytes = shape.sharedBytes;
  std::string vectorReason;
  if (target == KernelTarget::Cuda)
    vectorReason = cuda::vectorRefusal(shape, entry, block);
  SpaceBuilder(space, shape, std::move(vectorReason)).build();
  if (target == KernelTarget::Cuda) {
    eraseDeadCode(kernel); // as the emitter does
    for (const cuda::StageTile &tile :
         cuda::stagePlanOf(entry, shape, block, maxGrid).tiles)
      space.tiles.push_back({tile.elementBytes, tile.along, tile.halo});
    if (!space.tiles.empty()) {
      space.tunables.push_back({"MGPU_STAGE", {0, 1}});
      space.defaults.numTunables = 1;
    }
  }
  return space;
}

} // namespace mgpu::kernels
