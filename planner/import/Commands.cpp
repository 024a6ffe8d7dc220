// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/Commands.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::planner {

using namespace mlir;

Result<void> Commands::visit(Operation *op) {
  return llvm::TypeSwitch<Operation *, Result<void>>(op)
      .Case<ir::LaunchOp, ir::AllReduceOp, ir::AllGatherOp, ir::ReduceScatterOp,
            ir::AllToAllOp, ir::PermuteOp, ir::BroadcastOp, ir::SendOp,
            ir::RecvOp, ir::CreateCommunicatorOp, ir::MemcpyOp, ir::ScatterOp,
            ir::UnevenScatterOp, ir::GatherOp, ir::ReplicateOp, ir::GetDeviceOp,
            ir::AllocOp, ir::ShardedAllocOp, ir::FreeOp, ir::ShardedFreeOp,
            ir::CreateStreamOp, ir::DestroyStreamOp, ir::SyncStreamOp,
            ir::SyncDeviceOp, ir::StreamWaitOp, ir::OutputOp>(
          [&](auto command) { return issue(command); })
      .Default([&](Operation *) {
        return notSupported(op, "cannot be captured here");
      });
}

//===----------------------------------------------------------------------===//
// Devices and memory
//===----------------------------------------------------------------------===//

Result<void> Commands::issue(ir::GetDeviceOp op) {
  MGPU_TRY_ASSIGN(auto index,
                  host.integerOf(op, op.getIndex(), "the device index"));
  const uint32_t numDevices = recorder.dag().numDevices;
  if (index < ir::hostDeviceIndex || index >= int64_t(numDevices)) {
    if (numDevices == 0 && index != ir::hostDeviceIndex)
      return reported(
          op.emitOpError("the module has no mgpu.device_config to say how "
                         "many devices there are"));
    return reported(op.emitOpError("index ")
                    << index << " is outside the " << numDevices
                    << " devices of mgpu.device_config");
  }
  host.set(op.getDevice(), DeviceId{int32_t(index)});
  return {};
}

Result<void> Commands::allocate(Operation *op, Value result, Value handle,
                                std::string name) {
  MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, handle));
  Type element = cast<MemRefType>(result.getType()).getElementType();
  if (!elementTypeOf(element))
    return notSupported(op, "element type " + Twine(textOf(element)) +
                                " is not supported");
  host.allocate(result, std::move(name), device,
                device.isHost() ? BufferRole::HostLocal
                                : BufferRole::Temporary);
  return {};
}

Result<void> Commands::issue(ir::AllocOp op) {
  return allocate(op, op.getPtr(), op.getDevice(),
                  nameOf(op.getLoc(), "buffer"));
}

Result<void> Commands::issue(ir::ShardedAllocOp op) {
  for (auto [k, shard] : llvm::enumerate(op.getShards()))
    MGPU_TRY(allocate(op, shard, op.getDevices()[k],
                      nameOf(op.getLoc(), "shard") + "_" + std::to_string(k)));
  return {};
}

Result<void> Commands::freeBuffer(Operation *op, Value pointer, Value handle) {
  MGPU_TRY_ASSIGN(auto view, host.memrefOf(op, pointer));
  MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, handle));
  return recorder.free(view.buffer, device, host.placeOf(op->getLoc()));
}

Result<void> Commands::issue(ir::FreeOp op) {
  return freeBuffer(op, op.getPtr(), op.getDevice());
}

Result<void> Commands::issue(ir::ShardedFreeOp op) {
  for (auto [shard, device] : llvm::zip(op.getShards(), op.getDevices()))
    MGPU_TRY(freeBuffer(op, shard, device));
  return {};
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

Result<void> Commands::issue(ir::CreateStreamOp op) {
  MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, op.getDevice()));
  host.set(op.getStream(), recorder.createStream(device));
  return {};
}

Result<void> Commands::issue(ir::DestroyStreamOp op) {
  MGPU_TRY_ASSIGN(auto stream, host.streamOf(op, op.getStream()));
  return recorder.destroyStream(stream, host.placeOf(op.getLoc()));
}

Result<void> Commands::issue(ir::SyncStreamOp op) {
  MGPU_TRY_ASSIGN(auto stream, host.streamOf(op, op.getStream()));
  return recorder.syncStream(stream, host.placeOf(op.getLoc()));
}

Result<void> Commands::issue(ir::SyncDeviceOp op) {
  MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, op.getDevice()));
  return recorder.syncDevice(device, host.placeOf(op.getLoc()));
}

Result<void> Commands::issue(ir::StreamWaitOp op) {
  MGPU_TRY_ASSIGN(auto waiting, host.streamOf(op, op.getWaitingStream()));
  for (Value awaited : op.getWaitOnStreams()) {
    MGPU_TRY_ASSIGN(auto stream, host.streamOf(op, awaited));
    MGPU_TRY(recorder.streamWait(waiting, stream, host.placeOf(op.getLoc())));
  }
  return {};
}

Result<void> Commands::issue(ir::OutputOp op) {
  HostOutput output;
  output.kind = HostOutput::Kind(op.getKind());
  output.text = op.getText().str();
  output.isUnsigned = op.getIsUnsigned();
  const CallSite site{host.placeOf(op.getLoc())};
  if (!op.getSource())
    return recorder.addOutput(std::move(output), nullptr, site);
  MGPU_TRY_ASSIGN(const View view, host.memrefOf(op, op.getSource()));
  return recorder.addOutput(std::move(output), &view, site);
}

} // namespace mgpu::planner
