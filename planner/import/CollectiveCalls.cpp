// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One device's call of a collective: whose it is, on which queue, of which
// bytes. CollectiveMatcher puts the calls together.
#include "planner/import/Interpreter.h"

namespace mgpu::planner {

using namespace mlir;

FailureOr<CollectiveCallSite>
Interpreter::startCall(Operation *op, CollectiveKind kind, Value buffer,
                       Value communicator, Value stream) {
  auto view = memrefOf(op, buffer);
  if (failed(view))
    return failure();
  auto *known = std::get_if<CommunicatorValue>(&valueOf(communicator));
  if (!known)
    return op->emitOpError(
        "uses a communicator whose origin cannot be followed");
  const Communicator &group = matcher.communicator(known->index);
  DeviceId device = dag.buffer(view->buffer).device;
  if (device.isHost())
    return op->emitOpError("buffer '")
           << dag.buffer(view->buffer).name
           << "' lives on the host; a collective works on device buffers";
  auto rank = llvm::find(group.devices, device);
  if (rank == group.devices.end()) {
    InFlightDiagnostic diagnostic = op->emitOpError("device ")
                                    << device.value << ", which owns buffer '"
                                    << dag.buffer(view->buffer).name
                                    << "', is not in the communicator";
    diagnostic.attachNote(group.location) << "it is created here";
    return diagnostic;
  }
  auto chain = chainOf(op, stream, device);
  if (failed(chain))
    return failure();
  if (order.deviceOf(*chain) != device)
    return op->emitOpError("buffer of device ")
           << device.value << " with a stream of device "
           << order.deviceOf(*chain).value;
  CollectiveCallSite site{op->getLoc()};
  site.kind = kind;
  site.elementType =
      *elementTypeOf(cast<MemRefType>(buffer.getType()).getElementType());
  site.communicator = known->index;
  site.rank = uint32_t(rank - group.devices.begin());
  site.send = site.recv = *view;
  site.before = order.clockAt(*chain);
  site.reach = order.reachAt(*chain);
  site.point = order.enqueue(*chain);
  noteUse(view->buffer, site.point);
  return site;
}

LogicalResult Interpreter::receiveInto(Operation *op, Value buffer,
                                       CollectiveCallSite &site) {
  auto recv = memrefOf(op, buffer);
  if (failed(recv))
    return failure();
  if (dag.buffer(recv->buffer).device != dag.buffer(site.send.buffer).device)
    return op->emitOpError("send and receive buffers live on two devices");
  site.recv = *recv;
  return checkDistinct(op, *recv);
}

/// `inPlace` is the part of the result that may be sent as it lies there.
static LogicalResult checkOverlap(Operation *op, const CollectiveCallSite &site,
                                  const MemRefValue &inPlace,
                                  llvm::StringRef bufferName) {
  uint32_t bytes = sizeBytes(site.elementType);
  Box sent = boxOf(site.send, bytes);
  if (site.send.buffer != site.recv.buffer || sent == boxOf(inPlace, bytes) ||
      overlap(sent, boxOf(site.recv, bytes)) != Overlap::Yes)
    return success();
  return op->emitOpError("sends a part of buffer '")
         << bufferName << "' that overlaps the part it receives into; send "
         << (site.kind == CollectiveKind::AllGather
                 ? "the rank's own slice of the result"
                 : "just what is received")
         << ", or another buffer";
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

LogicalResult Interpreter::visitAllReduce(ir::AllReduceOp op) {
  auto site = startCall(op, CollectiveKind::AllReduce, op.getSendBuf(),
                        op.getComm(), op.getStream());
  if (failed(site))
    return failure();
  if (failed(receiveInto(op, op.getRecvBuf(), *site)))
    return failure();
  if (site->send.sizes != site->recv.sizes)
    return op.emitOpError("send and receive buffers must have the same shape; "
                          "of these dynamic types the sizes differ");
  if (failed(checkOverlap(op, *site, site->recv,
                          dag.buffer(site->recv.buffer).name)))
    return failure();
  site->reduction = reductionOf(op.getReductionKind());
  noteUse(site->recv.buffer, site->point);
  return matcher.call(std::move(*site));
}

LogicalResult Interpreter::visitAllGather(ir::AllGatherOp op) {
  auto site = startCall(op, CollectiveKind::AllGather, op.getSendBuf(),
                        op.getComm(), op.getStream());
  if (failed(site))
    return failure();
  if (failed(receiveInto(op, op.getRecvBuf(), *site)))
    return failure();
  int64_t ranks =
      int64_t(matcher.communicator(site->communicator).devices.size());
  MemRefValue &send = site->send;
  if (send.sizes.empty() || site->recv.sizes.size() != send.sizes.size())
    return op.emitOpError("needs buffers of equal rank, at least 1");
  if (send.sizes == site->recv.sizes && ranks > 1) {
    // Both as long as the result: rank i contributes slice i (in place).
    if (send.sizes[0] % ranks != 0)
      return op.emitOpError("dimension 0 of ")
             << send.sizes[0] << " does not divide among " << ranks << " ranks";
    send.sizes[0] /= ranks;
    send.offset += int64_t(site->rank) * send.sizes[0] * send.strides[0];
  } else if (site->recv.sizes[0] != ranks * send.sizes[0]) {
    return op.emitOpError("receives ")
           << site->recv.sizes[0] << " along dimension 0; " << ranks
           << " ranks send " << send.sizes[0] << " each";
  }
  if (!std::equal(send.sizes.begin() + 1, send.sizes.end(),
                  site->recv.sizes.begin() + 1))
    return op.emitOpError("send and receive buffers differ in a dimension "
                          "after the first");
  MemRefValue slice = site->recv;
  slice.sizes[0] /= ranks;
  slice.offset += int64_t(site->rank) * slice.sizes[0] * slice.strides[0];
  if (failed(
          checkOverlap(op, *site, slice, dag.buffer(site->recv.buffer).name)))
    return failure();
  noteUse(site->recv.buffer, site->point);
  return matcher.call(std::move(*site));
}

LogicalResult Interpreter::visitBroadcast(ir::BroadcastOp op) {
  auto root = integerOf(op, op.getRootRank(), "the root rank");
  if (failed(root))
    return failure();
  auto site = startCall(op, CollectiveKind::Broadcast, op.getBuf(),
                        op.getComm(), op.getStream());
  if (failed(site))
    return failure();
  size_t ranks = matcher.communicator(site->communicator).devices.size();
  if (*root < 0 || size_t(*root) >= ranks)
    return op.emitOpError("root rank ")
           << *root << " is outside a communicator of " << ranks;
  if (failed(checkDistinct(op, site->recv)))
    return failure();
  site->root = uint32_t(*root);
  return matcher.call(std::move(*site));
}

LogicalResult Interpreter::visitPointToPoint(Operation *op, Value buffer,
                                             Value communicator, Value peer,
                                             Value stream, bool isSend) {
  auto rank = integerOf(op, peer, "the peer's rank");
  if (failed(rank))
    return failure();
  auto site =
      startCall(op, CollectiveKind::SendRecv, buffer, communicator, stream);
  if (failed(site))
    return failure();
  size_t ranks = matcher.communicator(site->communicator).devices.size();
  if (*rank < 0 || size_t(*rank) >= ranks)
    return op->emitOpError("rank ")
           << *rank << " is outside a communicator of " << ranks;
  if (uint32_t(*rank) == site->rank)
    return op->emitOpError("rank ") << *rank << " names the caller itself";
  if (!isSend && failed(checkDistinct(op, site->recv)))
    return failure();
  site->peer = uint32_t(*rank);
  site->isSend = isSend;
  return matcher.call(std::move(*site));
}

} // namespace mgpu::planner
