// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu operations other than collectives.
#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/Interpreter.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::planner {

using namespace mlir;

bool Interpreter::visitCommand(Operation *op, LogicalResult &result) {
  if (op->getName().getDialectNamespace() != "mgpu")
    return false;
  auto drain = [&](uint32_t chain) { return hostWaits(op, chain); };
  result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](ir::LaunchOp launch) { return visitLaunch(launch); })
          .Case([&](ir::AllReduceOp call) { return visitAllReduce(call); })
          .Case([&](ir::AllGatherOp call) { return visitAllGather(call); })
          .Case([&](ir::BroadcastOp call) { return visitBroadcast(call); })
          .Case([&](ir::SendOp call) {
            return visitPointToPoint(op, call.getBuf(), call.getComm(),
                                     call.getDstRank(), call.getStream(), true);
          })
          .Case([&](ir::RecvOp call) {
            return visitPointToPoint(op, call.getBuf(), call.getComm(),
                                     call.getSrcRank(), call.getStream(),
                                     false);
          })
          .Case([&](ir::MemcpyOp memcpy) -> LogicalResult {
            auto target = memrefOf(op, memcpy.getDst());
            auto source = memrefOf(op, memcpy.getSrc());
            if (failed(target) || failed(source))
              return failure();
            warnIfElsewhere(op, *target, memcpy.getDstDevice(), "destination");
            warnIfElsewhere(op, *source, memcpy.getSrcDevice(), "source");
            Type element =
                cast<MemRefType>(memcpy.getSrc().getType()).getElementType();
            return copy(op, *target, *source, element, memcpy.getStream(),
                        "memcpy");
          })
          .Case([&](ir::ScatterOp scatter) -> LogicalResult {
            auto whole = memrefOf(op, scatter.getSrc());
            if (failed(whole))
              return failure();
            // The verifier knows that it divides, unless the type is dynamic.
            int64_t axis = scatter.getAxis().getSExtValue();
            auto count = int64_t(scatter.getDstBufs().size());
            if (whole->sizes[size_t(axis)] % count != 0)
              return op->emitOpError("size ")
                     << whole->sizes[size_t(axis)] << " of dimension " << axis
                     << " does not divide among " << count << " devices";
            SmallVector<int64_t> sizes(size_t(count),
                                       whole->sizes[size_t(axis)] / count);
            return visitShards(op, scatter.getSrc(), scatter.getSrcDevice(),
                               scatter.getDstBufs(), scatter.getDevices(),
                               scatter.getStreams(), axis, sizes, true);
          })
          .Case([&](ir::UnevenScatterOp scatter) {
            return visitShards(op, scatter.getSrc(), scatter.getSrcDevice(),
                               scatter.getDstBufs(), scatter.getDevices(),
                               scatter.getStreams(),
                               scatter.getAxis().getSExtValue(),
                               scatter.getSliceSizes(), true);
          })
          .Case([&](ir::GatherOp gather) {
            return visitShards(op, gather.getDst(), gather.getDstDevice(),
                               gather.getSrcBufs(), gather.getDevices(),
                               gather.getStreams(),
                               gather.getAxis().getSExtValue(), {}, false);
          })
          .Case([&](ir::ReplicateOp replicate) {
            return visitReplicate(replicate);
          })
          .Case([&](ir::GetDeviceOp get) { return visitGetDevice(get); })
          .Case([&](ir::AllocOp alloc) { return visitAlloc(alloc); })
          .Case([&](ir::ShardedAllocOp alloc) {
            return visitShardedAlloc(alloc);
          })
          .Case([&](ir::FreeOp free) {
            return freeBuffer(op, free.getPtr(), free.getDevice());
          })
          .Case([&](ir::ShardedFreeOp free) -> LogicalResult {
            for (auto [shard, device] :
                 llvm::zip(free.getShards(), free.getDevices()))
              if (failed(freeBuffer(op, shard, device)))
                return failure();
            return success();
          })
          .Case([&](ir::CreateStreamOp create) -> LogicalResult {
            auto device = deviceOf(op, create.getDevice());
            if (failed(device))
              return failure();
            set(create.getStream(),
                StreamValue{*device, order.createChain(*device)});
            return success();
          })
          .Case([&](ir::DestroyStreamOp destroy) {
            return destroyStream(op, destroy.getStream());
          })
          .Case([&](ir::CreateCommunicatorOp create) {
            return visitCreateCommunicator(create);
          })
          .Case([&](ir::SyncStreamOp sync) -> LogicalResult {
            auto chain = chainOf(op, sync.getStream(), DeviceId::host());
            return failed(chain) ? failure() : drain(*chain);
          })
          .Case([&](ir::SyncDeviceOp sync) -> LogicalResult {
            auto device = deviceOf(op, sync.getDevice());
            if (failed(device))
              return failure();
            for (uint32_t c = 1; c < order.numChains(); ++c)
              if (order.deviceOf(c) == *device && failed(drain(c)))
                return failure();
            return success();
          })
          .Case([&](ir::StreamWaitOp wait) { return visitStreamWait(wait); })
          .Default([&](Operation *) {
            return notSupported(op, "cannot be captured here");
          });
  return true;
}

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

FailureOr<MemRefValue> Interpreter::memrefOf(Operation *op, Value value) {
  auto *view = std::get_if<MemRefValue>(&valueOf(value));
  if (!view)
    return op->emitOpError("uses a memref whose origin cannot be followed");
  if (failed(checkLive(op, view->buffer)))
    return failure();
  return *view;
}

FailureOr<DeviceId> Interpreter::deviceOf(Operation *op, Value value) {
  if (auto *device = std::get_if<DeviceId>(&valueOf(value)))
    return *device;
  return op->emitOpError(
      "uses a device handle whose origin cannot be followed");
}

FailureOr<uint32_t> Interpreter::chainOf(Operation *op, Value stream,
                                         DeviceId device) {
  if (!stream)
    return order.defaultChain(device);
  auto *known = std::get_if<StreamValue>(&valueOf(stream));
  if (!known)
    return op->emitOpError(
        "uses a stream handle whose origin cannot be followed");
  auto destroyed = destroyedStreams.find(known->chain);
  if (destroyed == destroyedStreams.end())
    return known->chain;
  InFlightDiagnostic diagnostic = op->emitOpError("uses a destroyed stream");
  diagnostic.attachNote(destroyed->second) << "it is destroyed here";
  return diagnostic;
}

LogicalResult Interpreter::checkLive(Operation *op, BufferId buffer) {
  const std::optional<Location> &freedAt = lives[buffer.value].freedAt;
  if (!freedAt)
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError("uses buffer '")
                                  << dag.buffer(buffer).name
                                  << "' after it was freed";
  diagnostic.attachNote(*freedAt) << "it is freed here";
  return failure();
}

void Interpreter::noteUse(BufferId buffer, SourcePoint point) {
  lives[buffer.value].lastUses.raise(point);
}

LogicalResult Interpreter::hostWaits(Operation *op, uint32_t chain) {
  if (failed(matcher.checkBlocking(order.reachAt(chain), op->getLoc())))
    return failure();
  order.hostWaitsFor(chain);
  return success();
}

LogicalResult Interpreter::enqueue(Operation *op, RecordedNode entry,
                                   uint32_t chain, bool blocks) {
  VectorClock before = order.clockAt(chain);
  SourcePoint point = order.enqueue(chain);
  entry.node.location = ir::describeLocation(op->getLoc());
  for (const BufferUse &use : entry.node.uses)
    noteUse(use.buffer, point);
  entry.calls.push_back({point, std::move(before), op->getLoc()});
  if (failed(matcher.checkUses(entry)))
    return failure();
  bool isOpen = matcher.isBehindOpenCall(entry);
  if (failed(recorder.record(std::move(entry), isOpen)))
    return failure();
  return blocks ? hostWaits(op, chain) : success();
}

void Interpreter::warnIfElsewhere(Operation *op, const MemRefValue &view,
                                  Value device, const char *what) {
  auto *named = std::get_if<DeviceId>(&valueOf(device));
  DeviceId owner = dag.buffer(view.buffer).device;
  if (!named || *named == owner)
    return;
  auto text = [](DeviceId id) {
    return id.isHost() ? std::string("the host")
                       : "device " + std::to_string(id.value);
  };
  op->emitWarning(what) << " buffer '" << dag.buffer(view.buffer).name
                        << "' lives on " << text(owner) << ", not on "
                        << text(*named) << " as said here; where it lives wins";
}

//===----------------------------------------------------------------------===//
// Devices, streams, memory
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::visitGetDevice(ir::GetDeviceOp op) {
  auto index = integerOf(op, op.getIndex(), "the device index");
  if (failed(index))
    return failure();
  if (*index < ir::hostDeviceIndex || *index >= int64_t(dag.numDevices)) {
    if (dag.numDevices == 0 && *index != ir::hostDeviceIndex)
      return op.emitOpError("the module has no mgpu.device_config to say how "
                            "many devices there are");
    return op.emitOpError("index ")
           << *index << " is outside the " << dag.numDevices
           << " devices of mgpu.device_config";
  }
  set(op.getDevice(), DeviceId{int32_t(*index)});
  return success();
}

LogicalResult
Interpreter::visitCreateCommunicator(ir::CreateCommunicatorOp op) {
  Communicator communicator{{}, op.getLoc()};
  for (Value handle : op.getDevices()) {
    auto device = deviceOf(op, handle);
    if (failed(device))
      return failure();
    if (device->isHost())
      return op.emitOpError("the host cannot be a member");
    if (llvm::is_contained(communicator.devices, *device))
      return op.emitOpError("device ") << device->value << " is listed twice";
    communicator.devices.push_back(*device);
  }
  set(op.getComm(),
      CommunicatorValue{matcher.addCommunicator(std::move(communicator))});
  return success();
}

LogicalResult Interpreter::allocate(Operation *op, Value result, Value handle,
                                    std::string name) {
  auto device = deviceOf(op, handle);
  if (failed(device))
    return failure();
  auto type = cast<MemRefType>(result.getType());
  if (!elementTypeOf(type.getElementType()))
    return notSupported(op, "element type " +
                                Twine(textOf(type.getElementType())) +
                                " is not supported");
  BufferRole role =
      device->isHost() ? BufferRole::HostLocal : BufferRole::Temporary;
  set(result, MemRefValue{addBuffer(std::move(name), *device, role, type),
                          0,
                          {type.getShape().begin(), type.getShape().end()},
                          rowMajorStrides(type.getShape())});
  return success();
}

LogicalResult Interpreter::visitAlloc(ir::AllocOp op) {
  return allocate(op, op.getPtr(), op.getDevice(),
                  nameOf(op.getLoc(), "buffer"));
}

LogicalResult Interpreter::visitShardedAlloc(ir::ShardedAllocOp op) {
  for (auto [k, shard] : llvm::enumerate(op.getShards()))
    if (failed(
            allocate(op, shard, op.getDevices()[k],
                     nameOf(op.getLoc(), "shard") + "_" + std::to_string(k))))
      return failure();
  return success();
}

LogicalResult Interpreter::freeBuffer(Operation *op, Value pointer,
                                      Value device) {
  auto view = memrefOf(op, pointer);
  if (failed(view))
    return failure();
  const Buffer &buffer = dag.buffer(view->buffer);
  BufferLife &life = lives[view->buffer.value];
  if (device) {
    auto named = deviceOf(op, device);
    if (failed(named))
      return failure();
    if (*named != buffer.device)
      return op->emitOpError("frees buffer '")
             << buffer.name << "' of device " << buffer.device.value
             << " on device " << named->value;
  }
  if (buffer.role == BufferRole::Argument ||
      buffer.role == BufferRole::Constant)
    return op->emitOpError("frees buffer '")
           << buffer.name << "', which the program did not allocate";
  VectorClock done = order.hostClock();
  VectorClock both = done;
  both.join(life.lastUses);
  for (uint32_t c = 0; c < order.numChains(); ++c)
    if (both[c] != done[c] && c != 0)
      return op->emitOpError("frees buffer '")
             << buffer.name
             << "' while work on it may still run; sync its stream first";
  life.freedAt = op->getLoc();
  return success();
}

LogicalResult Interpreter::destroyStream(Operation *op, Value stream) {
  auto chain = chainOf(op, stream, DeviceId::host());
  if (failed(chain))
    return failure();
  if (!order.isDrained(*chain))
    return op->emitOpError("destroys a stream whose work may still run; "
                           "mgpu.sync_stream it first");
  destroyedStreams.emplace(*chain, op->getLoc());
  return success();
}

LogicalResult Interpreter::visitStreamWait(ir::StreamWaitOp op) {
  auto waiting = chainOf(op, op.getWaitingStream(), DeviceId::host());
  if (failed(waiting))
    return failure();
  for (Value stream : op.getWaitOnStreams()) {
    auto chain = chainOf(op, stream, DeviceId::host());
    if (failed(chain))
      return failure();
    order.waitFor(*waiting, *chain);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

LogicalResult Interpreter::checkDistinct(Operation *op,
                                         const MemRefValue &written) {
  if (llvm::is_contained(written.sizes, 0))
    return success();
  llvm::SmallVector<std::pair<int64_t, int64_t>> dims; // |stride|, size
  for (auto [size, stride] : llvm::zip(written.sizes, written.strides)) {
    if (size > 1 && stride == 0)
      return op->emitOpError("writes ")
             << size << " elements to one place of buffer '"
             << dag.buffer(written.buffer).name << "'";
    if (size > 1)
      dims.emplace_back(std::abs(stride), size);
  }
  // Distinct for certain where each stride passes all that smaller ones reach.
  llvm::sort(dims);
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return notSupported(op, "writes a view of buffer '" +
                                  Twine(dag.buffer(written.buffer).name) +
                                  "' of which several elements may lie in one "
                                  "place");
    if (llvm::MulOverflow(stride, size - 1, stride) ||
        llvm::AddOverflow(reach, stride, reach))
      return success(); // no machine has such a buffer: refused at the end
  }
  return success();
}

LogicalResult Interpreter::copy(Operation *op, const MemRefValue &destination,
                                const MemRefValue &source, Type elementType,
                                Value stream, std::string name) {
  uint32_t bytes = mgpu::sizeBytes(*elementTypeOf(elementType));
  RecordedNode entry;
  DagNode &node = entry.node;
  if (dag.buffer(destination.buffer).role == BufferRole::Constant)
    return notSupported(op, "writes global '" +
                                Twine(dag.buffer(destination.buffer).name) +
                                "', whose initial value every run starts from; "
                                "copy it first and write the copy");
  CopyCall work{source.buffer, destination.buffer, boxOf(source, bytes),
                boxOf(destination, bytes)};
  if (work.sourceBox.numElements() != work.destinationBox.numElements())
    return op->emitOpError("copies ")
           << work.sourceBox.numElements() << " elements into "
           << work.destinationBox.numElements();
  if (failed(checkDistinct(op, destination)))
    return failure();
  if (source.buffer == destination.buffer &&
      work.sourceBox != work.destinationBox &&
      overlap(work.sourceBox, work.destinationBox) == Overlap::Yes)
    return op->emitOpError("copies between two parts of buffer '")
           << dag.buffer(source.buffer).name
           << "' that overlap; copy through another buffer";
  node.name = name + "_" + std::to_string(dag.nodes.size());
  node.bytesRead = node.bytesWritten =
      uint64_t(work.sourceBox.numElements()) * bytes;
  DeviceId from = dag.buffer(source.buffer).device;
  DeviceId to = dag.buffer(destination.buffer).device;
  for (DeviceId device : {std::min(from, to), std::max(from, to)})
    if (!device.isHost() && !llvm::is_contained(node.devices, device))
      node.devices.push_back(device);
  node.uses.push_back({source.buffer, work.sourceBox, true, false});
  node.uses.push_back({destination.buffer, work.destinationBox, false, true});
  node.work = std::move(work);
  auto chain = chainOf(op, stream, to.isHost() ? from : to);
  if (failed(chain))
    return failure();
  return enqueue(op, std::move(entry), *chain, !stream);
}

LogicalResult Interpreter::visitShards(Operation *op, Value whole,
                                       Value wholeDevice, OperandRange shards,
                                       OperandRange devices,
                                       OperandRange streams, int64_t axis,
                                       ArrayRef<int64_t> sliceSizes,
                                       bool toShards) {
  auto view = memrefOf(op, whole);
  if (failed(view))
    return failure();
  warnIfElsewhere(op, *view, wholeDevice, toShards ? "source" : "destination");
  Type element = cast<MemRefType>(whole.getType()).getElementType();
  int64_t start = 0;
  for (auto [k, shard] : llvm::enumerate(shards)) {
    auto part = memrefOf(op, shard);
    if (failed(part))
      return failure();
    warnIfElsewhere(op, *part, devices[k], "shard");
    // What the verifier checks of static types, for those that were dynamic.
    MemRefValue slice = *view;
    slice.offset += start * slice.strides[axis];
    slice.sizes[axis] = sliceSizes.empty() ? part->sizes[axis] : sliceSizes[k];
    start += slice.sizes[axis];
    if (start > view->sizes[axis])
      return op->emitOpError("the shards reach to ")
             << start << " along axis " << axis << ", past the "
             << view->sizes[axis] << " of the whole";
    for (auto [dim, size] : llvm::enumerate(slice.sizes))
      if (part->sizes[dim] != size)
        return op->emitOpError("slice ")
               << k << " has size " << part->sizes[dim] << " in dimension "
               << dim << ", expected " << size;
    Value stream = streams.empty() ? Value() : streams[k];
    std::string name = op->getName().stripDialect().str();
    if (failed(toShards
                   ? copy(op, *part, slice, element, stream, std::move(name))
                   : copy(op, slice, *part, element, stream, std::move(name))))
      return failure();
  }
  if (start != view->sizes[axis])
    return op->emitOpError("slices add up to ")
           << start << " along dimension " << axis
           << ", but the whole has size " << view->sizes[axis];
  return success();
}

LogicalResult Interpreter::visitReplicate(ir::ReplicateOp op) {
  auto source = memrefOf(op, op.getSrc());
  if (failed(source))
    return failure();
  warnIfElsewhere(op, *source, op.getSrcDevice(), "source");
  Type element = cast<MemRefType>(op.getSrc().getType()).getElementType();
  for (auto [k, target] : llvm::enumerate(op.getDstBufs())) {
    auto view = memrefOf(op, target);
    if (failed(view))
      return failure();
    warnIfElsewhere(op, *view, op.getDevices()[k], "destination");
    Value stream = op.getStreams().empty() ? Value() : op.getStreams()[k];
    if (failed(copy(op, *view, *source, element, stream, "replicate")))
      return failure();
  }
  return success();
}

} // namespace mgpu::planner
