// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu operations that copy.
#include "planner/import/Commands.h"

namespace mgpu::planner {

using namespace mlir;

Result<View> Commands::partOn(Operation *op, Value value, Value device,
                              const char *what) {
  MGPU_TRY_ASSIGN(auto view, host.memrefOf(op, value));
  if (auto *named = std::get_if<DeviceId>(&host.valueOf(device)))
    recorder.checkOwner(view.buffer, *named, what, host.placeOf(op->getLoc()));
  return view;
}

Result<void> Commands::copy(Operation *op, const View &destination,
                            const View &source, Value stream) {
  MGPU_TRY_ASSIGN(auto site, host.siteOf(op, stream));
  return recorder.copy(
      {destination, source, op->getName().stripDialect().str()}, site);
}

Result<void> Commands::issue(ir::MemcpyOp op) {
  MGPU_TRY_ASSIGN(auto target,
                  partOn(op, op.getDst(), op.getDstDevice(), "destination"));
  MGPU_TRY_ASSIGN(auto source,
                  partOn(op, op.getSrc(), op.getSrcDevice(), "source"));
  return copy(op, target, source, op.getStream());
}

Result<void> Commands::copyShards(Operation *op, const Shards &parts) {
  MGPU_TRY_ASSIGN(auto view, partOn(op, parts.whole, parts.wholeDevice,
                                    parts.toShards ? "source" : "destination"));
  const auto axis = size_t(parts.axis);
  int64_t start = 0;
  for (auto [k, shard] : llvm::enumerate(parts.shards)) {
    MGPU_TRY_ASSIGN(auto part, partOn(op, shard, parts.devices[k], "shard"));
    // The verifier checks the same for static types; these may be dynamic.
    View slice = view;
    slice.offset += start * slice.strides[axis];
    slice.sizes[axis] = parts.sizes.empty() ? part.sizes[axis] : parts.sizes[k];
    start += slice.sizes[axis];
    if (start > view.sizes[axis])
      return reported(op->emitOpError("the shards reach to ")
                      << start << " along axis " << axis << ", past the "
                      << view.sizes[axis] << " of the whole");
    for (auto [dim, size] : llvm::enumerate(slice.sizes))
      if (part.sizes[dim] != size)
        return reported(op->emitOpError("slice ")
                        << k << " has size " << part.sizes[dim]
                        << " in dimension " << dim << ", expected " << size);
    Value stream = parts.streams.empty() ? Value() : parts.streams[k];
    MGPU_TRY(parts.toShards ? copy(op, part, slice, stream)
                            : copy(op, slice, part, stream));
  }
  if (start != view.sizes[axis])
    return reported(op->emitOpError("slices add up to ")
                    << start << " along dimension " << axis
                    << ", but the whole has size " << view.sizes[axis]);
  return {};
}

Result<void> Commands::issue(ir::ScatterOp op) {
  MGPU_TRY_ASSIGN(auto whole, host.memrefOf(op, op.getSrc()));
  // The verifier knows that it divides, unless the type is dynamic.
  int64_t axis = op.getAxis();
  auto count = int64_t(op.getDstBufs().size());
  int64_t size = whole.sizes[size_t(axis)];
  if (size % count != 0)
    return reported(op.emitOpError("size ")
                    << size << " of dimension " << axis
                    << " does not divide among " << count << " devices");
  SmallVector<int64_t> sizes(size_t(count), size / count);
  return copyShards(op, {op.getSrc(), op.getSrcDevice(), op.getDstBufs(),
                         op.getDevices(), op.getStreams(), axis, sizes, true});
}

Result<void> Commands::issue(ir::UnevenScatterOp op) {
  return copyShards(op, {op.getSrc(), op.getSrcDevice(), op.getDstBufs(),
                         op.getDevices(), op.getStreams(), op.getAxis(),
                         op.getSliceSizes(), true});
}

Result<void> Commands::issue(ir::GatherOp op) {
  return copyShards(op, {op.getDst(),
                         op.getDstDevice(),
                         op.getSrcBufs(),
                         op.getDevices(),
                         op.getStreams(),
                         op.getAxis(),
                         {},
                         false});
}

Result<void> Commands::issue(ir::ReplicateOp op) {
  MGPU_TRY_ASSIGN(auto source,
                  partOn(op, op.getSrc(), op.getSrcDevice(), "source"));
  for (auto [k, target] : llvm::enumerate(op.getDstBufs())) {
    MGPU_TRY_ASSIGN(auto view,
                    partOn(op, target, op.getDevices()[k], "destination"));
    Value stream = op.getStreams().empty() ? Value() : op.getStreams()[k];
    MGPU_TRY(copy(op, view, source, stream));
  }
  return {};
}

} // namespace mgpu::planner
