// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operations of a reshard.
#include "dialect/conversion/spmd/Reshard.h"

#include "dialect/conversion/spmd/Collectives.h"

namespace mgpu::conversion {

using namespace mlir;

static Value emitStep(OpBuilder &b, Location loc, Value local,
                      const ReshardRequest &request, const ReshardStep &step,
                      ir::ReductionKind kind) {
  ArrayRef<int64_t> mesh = request.to.getMesh();
  int64_t count = countAlong(mesh, step.axes);
  Collectives among(b, loc, groupsAlong(b, mesh, step.axes), count);
  switch (step.kind) {
  case ReshardStep::Slice: {
    Value rank = rankAlong(b, loc, mesh, step.axes);
    return step.ranges.empty()
               ? sliceOf(b, loc, local, step.dim, rank, count)
               : sliceOf(b, loc, local, step.dim, rank, step.ranges);
  }
  case ReshardStep::AllToAll:
    return among.allToAll(local, step.dim, step.other);
  case ReshardStep::AllGather:
    return among.allGather(local, step.dim);
  case ReshardStep::ReduceScatter:
    return among.reduceScatter(local, kind, step.dim);
  case ReshardStep::AllReduce:
    return among.allReduce(local, kind);
  case ReshardStep::Move: {
    ArrayRef<int64_t> full = request.full.getShape();
    Value init =
        emptyPart(b, loc, full, request.full.getElementType(), request.to);
    return spmd::MoveOp::create(b, loc, TypeRange(init.getType()), local, init,
                                step.from, request.to, full)
        ->getResult(0);
  }
  }
  llvm_unreachable("a kind of step");
}

Value reshard(OpBuilder &b, Location loc, const ReshardRequest &request,
              Value local, const ReshardSteps &steps, ir::ReductionKind kind) {
  for (const ReshardStep &step : steps)
    local = emitStep(b, loc, local, request, step, kind);
  return local;
}

} // namespace mgpu::conversion
