// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/PointForm.h"
#include "dialect/conversion/linalg/PointLaunch.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTPARALLELLOOPSTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Makes the launch of loops whose ranges are equal; they may be values.
ir::LaunchOp launchLoops(const LaunchGroup &run, Value device) {
  auto op = cast<scf::ParallelOp>(run.back());
  unsigned count = op.getNumLoops();
  Location loc = op.getLoc();
  OpBuilder b(op);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  SmallVector<Value> extents(count), grid(3, one), block(3, one);
  constexpr int64_t mostAlone = 256, most[] = {32, 8, 1};
  for (unsigned k = 0; k < count; ++k) { // the last dimension is x
    unsigned axis = count - 1 - k;
    Value length = b.createOrFold<arith::SubIOp>(loc, op.getUpperBound()[k],
                                                 op.getLowerBound()[k]);
    extents[k] =
        b.createOrFold<arith::CeilDivSIOp>(loc, length, op.getStep()[k]);
    const int64_t extent = getConstantIntValue(extents[k]).value_or(0);
    block[axis] = arith::ConstantIndexOp::create(
        b, loc,
        count > 1    ? most[axis]
        : extent > 0 ? threadsAlong(extent, mostAlone)
                     : mostAlone);
    Value blocks = arith::CeilDivSIOp::create(b, loc, extents[k], block[axis]);
    grid[axis] = arith::MaxSIOp::create(b, loc, blocks, one);
  }
  ir::LaunchOp launch = makeLaunch(b, op, device, grid, block);
  b.setInsertionPoint(launch.getBody().front().getTerminator());
  SmallVector<Value> ids(count);
  for (unsigned k = 0; k < count; ++k)
    ids[k] = globalId(b, loc, count - 1 - k, block[count - 1 - k]);
  for (unsigned k = 0; k < count; ++k)
    guard(b, loc, ids[k], extents[k]);
  SmallVector<Value> counters = countersOf(b, op, ids); // all have the same
  for (Operation *each : run)
    buildLoopBody(b, cast<scf::ParallelOp>(each), counters);
  return launch;
}

LogicalResult convertLoops(const LaunchGroup &group) {
  auto loop = cast<scf::ParallelOp>(group.back());
  if (loop.getNumResults() != 0 || loop.getNumLoops() > 3)
    return refuseComputation(loop);
  if (failed(checkPointGroup(group)))
    return failure();
  FailureOr<Value> device = ir::deviceOfAll(loop, ir::memrefsOf(loop));
  if (failed(device))
    return failure();
  replaceByLaunch(group, launchLoops(group, *device));
  return success();
}

struct ConvertParallelLoopsToMgpu
    : impl::ConvertParallelLoopsToMgpuBase<ConvertParallelLoopsToMgpu> {
  using ConvertParallelLoopsToMgpuBase::ConvertParallelLoopsToMgpuBase;

  void runOnOperation() override {
    bool isChanged = false;
    for (const LaunchGroup &group : launchGroupsOf(getOperation(), entry)) {
      if (!llvm::all_of(group, llvm::IsaPred<scf::ParallelOp>))
        continue;
      if (failed(convertLoops(group)))
        return signalPassFailure();
      isChanged = true;
    }
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
