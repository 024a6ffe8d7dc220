// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// spmd.move: copies of boxes from device to device.
#include "dialect/conversion/spmd/Spread.h"
#include "dialect/conversion/spmd/Transfers.h"

namespace mgpu::conversion {

using namespace mlir;

/// `box` of a buffer that holds `whole`.
static Value viewOf(OpBuilder &b, Location loc, Value buffer,
                    const TensorBox &whole, const TensorBox &box) {
  if (box == whole)
    return buffer;
  SmallVector<OpFoldResult> offsets, sizes;
  for (size_t dim = 0; dim < box.sizes.size(); ++dim) {
    offsets.push_back(b.getIndexAttr(box.offsets[dim] - whole.offsets[dim]));
    sizes.push_back(b.getIndexAttr(box.sizes[dim]));
  }
  SmallVector<OpFoldResult> ones(sizes.size(), b.getIndexAttr(1));
  return memref::SubViewOp::create(b, loc, buffer, offsets, sizes, ones);
}

void Spread::spreadMove(spmd::MoveOp op) {
  for (int64_t device = op.getFrom().firstDevice();
       device < op.getFrom().endDevice(); ++device)
    if (!checkBuffers(device, op))
      return;
  Location loc = op.getLoc();
  for (const Transfer &each :
       transfersOf(op.getFull(), op.getFrom(), op.getTo()))
    ir::MemcpyOp::create(
        b, loc,
        viewOf(b, loc, on(each.target, op.getInit()), each.to, each.piece),
        viewOf(b, loc, on(each.source, op.getInput()), each.from, each.piece),
        devices[each.target], devices[each.source], Value());
}

} // namespace mgpu::conversion
