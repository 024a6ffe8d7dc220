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

// mgpu operations that communicate.

Result<void> Commands::issue(ir::CreateCommunicatorOp op) {
  std::vector<DeviceId> devices;
  for (Value handle : op.getDevices()) {
    MGPU_TRY_ASSIGN(auto device, host.deviceOf(op, handle));
    devices.push_back(device);
  }
  auto number = recorder.createCommunicator(
      std::move(devices), host.placeOf(op.getLoc()),
      ir::hasMark(op, ir::Mark::OneDevice) ? CallsOf::OneMember : CallsOf::All);
  MGPU_TRY(number);
  host.set(op.getComm(), CommunicatorValue{*number});
  return {};
}

Result<Commands::RankCall> Commands::startCall(Operation *op, Value buffer,
                                               Value communicator,
                                               Value stream) {
  MGPU_TRY_ASSIGN(auto view, host.memrefOf(op, buffer));
  auto *known = std::get_if<CommunicatorValue>(&host.valueOf(communicator));
  if (!known)
    return reported(
        op->emitOpError("uses a communicator whose origin cannot be followed"));
  MGPU_TRY_ASSIGN(auto site, host.siteOf(op, stream));
  return RankCall{known->number, std::move(view), site};
}

static ReductionKind reductionOf(ir::ReductionKind kind) {
  switch (kind) {
  case ir::ReductionKind::Sum:
    return ReductionKind::Sum;
  case ir::ReductionKind::Prod:
    return ReductionKind::Prod;
  case ir::ReductionKind::Min:
    return ReductionKind::Min;
  case ir::ReductionKind::Max:
    return ReductionKind::Max;
  }
  llvm_unreachable("every reduction kind is listed");
}

Result<void> Commands::issue(ir::AllReduceOp op) {
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getSendBuf(), op.getComm(), op.getStream()));
  MGPU_TRY_ASSIGN(auto recv, host.memrefOf(op, op.getRecvBuf()));
  return recorder.allReduce(call.communicator,
                            reductionOf(op.getReductionKind()), call.buffer,
                            recv, call.site);
}

Result<void> Commands::issue(ir::AllGatherOp op) {
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getSendBuf(), op.getComm(), op.getStream()));
  MGPU_TRY_ASSIGN(auto recv, host.memrefOf(op, op.getRecvBuf()));
  return recorder.allGather(call.communicator, op.getAxis(), call.buffer, recv,
                            call.site);
}

Result<void> Commands::issue(ir::ReduceScatterOp op) {
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getSendBuf(), op.getComm(), op.getStream()));
  MGPU_TRY_ASSIGN(auto recv, host.memrefOf(op, op.getRecvBuf()));
  return recorder.reduceScatter(call.communicator,
                                reductionOf(op.getReductionKind()),
                                op.getAxis(), call.buffer, recv, call.site);
}

Result<void> Commands::issue(ir::AllToAllOp op) {
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getSendBuf(), op.getComm(), op.getStream()));
  MGPU_TRY_ASSIGN(auto recv, host.memrefOf(op, op.getRecvBuf()));
  return recorder.allToAll(call.communicator, op.getSplitAxis(),
                           op.getConcatAxis(), call.buffer, recv, call.site);
}

Result<void> Commands::issue(ir::PermuteOp op) {
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getSendBuf(), op.getComm(), op.getStream()));
  MGPU_TRY_ASSIGN(auto recv, host.memrefOf(op, op.getRecvBuf()));
  std::vector<RankPair> pairs;
  ArrayRef<int64_t> numbers = op.getPairs();
  for (size_t k = 0; k + 1 < numbers.size(); k += 2) {
    // A number too large for a rank stays too large for the recorder.
    auto rank = [&](int64_t number) {
      return uint32_t(std::min<int64_t>(number, UINT32_MAX));
    };
    pairs.push_back({rank(numbers[k]), rank(numbers[k + 1])});
  }
  return recorder.permute(call.communicator, std::move(pairs), call.buffer,
                          recv, call.site);
}

Result<void> Commands::issue(ir::BroadcastOp op) {
  MGPU_TRY_ASSIGN(auto root,
                  host.integerOf(op, op.getRootRank(), "the root rank"));
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getBuf(), op.getComm(), op.getStream()));
  return recorder.broadcast(call.communicator, root, call.buffer, call.site);
}

Result<void> Commands::issue(ir::SendOp op) {
  MGPU_TRY_ASSIGN(auto peer,
                  host.integerOf(op, op.getDstRank(), "the peer's rank"));
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getBuf(), op.getComm(), op.getStream()));
  return recorder.send(call.communicator, peer, call.buffer, call.site);
}

Result<void> Commands::issue(ir::RecvOp op) {
  MGPU_TRY_ASSIGN(auto peer,
                  host.integerOf(op, op.getSrcRank(), "the peer's rank"));
  MGPU_TRY_ASSIGN(auto call,
                  startCall(op, op.getBuf(), op.getComm(), op.getStream()));
  return recorder.receive(call.communicator, peer, call.buffer, call.site);
}

// mgpu operations that copy.

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
