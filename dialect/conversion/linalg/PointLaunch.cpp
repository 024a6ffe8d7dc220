// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/linalg/PointLaunch.h"

#include "dialect/conversion/linalg/ForwardStores.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

using namespace mlir;

static constexpr int64_t mostY = 8; ///< threads of a block along y

int64_t threadsAlong(int64_t extent, int64_t most) {
  if (extent <= most)
    return extent;
  for (int64_t threads = most; 2 * threads >= most; --threads)
    if (extent % threads == 0)
      return threads;
  return most;
}

/// "matmul" of linalg.matmul.
static StringRef shortName(Operation *op) {
  return op->getName().stripDialect();
}

ir::LaunchOp makeLaunch(OpBuilder &b, Operation *op, Value device,
                        ValueRange grid, ValueRange block) {
  auto launch =
      ir::LaunchOp::create(b, op->getLoc(), device, grid, block, Value());
  launch->setAttr("mgpu.name", b.getStringAttr(shortName(op)));
  if (auto name = op->getAttrOfType<StringAttr>("mgpu.name"))
    launch->setAttr("mgpu.name", name);
  return launch;
}

static void joinNames(ir::LaunchOp launch, const LaunchGroup &run) {
  constexpr size_t most = 4;
  std::string name;
  SmallVector<Location> locations;
  for (Operation *op : run) {
    auto given = op->getAttrOfType<StringAttr>("mgpu.name");
    if (locations.size() < most)
      name += (name.empty() ? "" : "_") +
              (given ? given.getValue() : shortName(op)).str();
    locations.push_back(op->getLoc());
  }
  if (run.size() > most)
    name += "_and_" + std::to_string(run.size() - most);
  launch->setAttr("mgpu.name", StringAttr::get(launch.getContext(), name));
  launch->setLoc(FusedLoc::get(launch.getContext(), locations));
}

void replaceByLaunch(const LaunchGroup &group, ir::LaunchOp launch) {
  if (group.size() > 1) {
    joinNames(launch, group);
    forwardStores(launch);
  }
  for (Operation *op : group)
    op->erase();
}

Value globalId(OpBuilder &b, Location loc, unsigned axis, Value threads) {
  auto dimension = gpu::Dimension(axis);
  Value block = gpu::BlockIdOp::create(b, loc, dimension);
  Value thread = gpu::ThreadIdOp::create(b, loc, dimension);
  Value base = arith::MulIOp::create(b, loc, block, threads);
  return arith::AddIOp::create(b, loc, base, thread);
}

void guard(OpBuilder &b, Location loc, Value id, Value extent) {
  Value isInside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, id, extent);
  auto branch = scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
}

/// The number of outer dimensions that one axis counts together: those before
/// the last two along z, or all along x where CUDA has not as many blocks.
static size_t countedTogether(ArrayRef<int64_t> extents) {
  constexpr int64_t mostBlocks = 65535; // along y and z
  const size_t rank = extents.size();
  int64_t outer = 1;
  for (int64_t extent : extents.drop_back(std::min<size_t>(rank, 2)))
    outer *= extent;
  const int64_t inner = rank > 1 ? extents[rank - 2] : 1;
  if (outer > mostBlocks ||
      llvm::divideCeil(inner, threadsAlong(inner, mostY)) > mostBlocks)
    return rank;
  return rank - std::min<size_t>(rank, 2);
}

std::array<int64_t, 3> sizesOf(ArrayRef<int64_t> extents) {
  const bool areAllTogether = countedTogether(extents) == extents.size();
  std::array<int64_t, 3> sizes{1, 1, 1};
  for (auto [k, extent] : llvm::enumerate(llvm::reverse(extents)))
    sizes[areAllTogether ? 0 : std::min<size_t>(k, 2)] *= extent;
  return sizes;
}

SmallVector<Value> pointOf(OpBuilder &b, Location loc,
                           ArrayRef<int64_t> extents, const Value (&ids)[3]) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  const size_t rank = extents.size(), together = countedTogether(extents);
  SmallVector<Value> point(rank);
  for (size_t k = 0; k < rank; ++k) {
    if (k >= together) {
      point[k] = ids[rank - 1 - k];
      continue;
    }
    // The last of them goes fastest.
    int64_t below = 1;
    for (size_t j = k + 1; j < together; ++j)
      below *= extents[j];
    Value at = ids[together == rank ? 0 : 2];
    if (below > 1)
      at = arith::DivUIOp::create(b, loc, at, index(below));
    if (k > 0)
      at = arith::RemUIOp::create(b, loc, at, index(extents[k]));
    point[k] = at;
  }
  return point;
}

PointLaunch::PointLaunch(Operation *op, Value device,
                         ArrayRef<int64_t> extents) {
  Location location = op->getLoc();
  constexpr int64_t mostAlone = 256, mostX = 32;
  std::array<int64_t, 3> size = sizesOf(extents);
  const bool isAlone =
      extents.size() < 2 || countedTogether(extents) == extents.size();
  int64_t threads[3] = {1, 1, 1};
  threads[0] = threadsAlong(size[0], isAlone ? mostAlone : mostX);
  threads[1] = threadsAlong(size[1], mostY);
  OpBuilder b(op);
  llvm::SmallDenseMap<int64_t, Value, 4> numbers; // few differ
  auto constant = [&](int64_t number) {
    Value &known = numbers[number];
    if (!known)
      known = arith::ConstantIndexOp::create(b, location, number);
    return known;
  };
  SmallVector<Value> grid, block;
  for (unsigned axis = 0; axis < 3; ++axis) {
    grid.push_back(constant(llvm::divideCeil(size[axis], threads[axis])));
    block.push_back(constant(threads[axis]));
  }
  launch = makeLaunch(b, op, device, grid, block);
  inside.emplace(launch.getBody().front().getTerminator());
  Value ids[3];
  for (unsigned axis = 0; axis < std::min<size_t>(extents.size(), 3); ++axis)
    ids[axis] = globalId(
        *inside, location, axis,
        arith::ConstantIndexOp::create(*inside, location, threads[axis]));
  for (unsigned axis = 0; axis < 3; ++axis)
    if (size[axis] % threads[axis] != 0)
      guard(*inside, location, ids[axis],
            arith::ConstantIndexOp::create(*inside, location, size[axis]));
  point = pointOf(*inside, location, extents, ids);
}

SmallVector<Value> makeLoop(
    OpBuilder &b, Location loc, int64_t trips, ValueRange carried,
    function_ref<SmallVector<Value>(OpBuilder &, Value, ValueRange)> make) {
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value end = arith::ConstantIndexOp::create(b, loc, trips);
  auto loop = scf::ForOp::create(
      b, loc, zero, end, one, carried,
      [&](OpBuilder &inner, Location, Value counter, ValueRange values) {
        scf::YieldOp::create(inner, loc, make(inner, counter, values));
      });
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> countersOf(OpBuilder &b, scf::ParallelOp op,
                              ValueRange ids) {
  SmallVector<Value> counters(ids);
  Location loc = op.getLoc();
  for (auto [k, counter] : llvm::enumerate(counters)) {
    Value lower = op.getLowerBound()[k], step = op.getStep()[k];
    if (!isConstantIntValue(step, 1))
      counter = arith::MulIOp::create(b, loc, counter, step);
    if (!isConstantIntValue(lower, 0))
      counter = arith::AddIOp::create(b, loc, lower, counter);
  }
  return counters;
}

void buildLoopBody(OpBuilder &b, scf::ParallelOp op, ValueRange counters) {
  IRMapping map;
  map.map(op.getInductionVars(), counters);
  for (Operation &each : op.getBody()->without_terminator())
    b.clone(each, map);
}

} // namespace mgpu::conversion
