// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of communicators and collectives: what one call alone shows.
// Matching the calls of several devices is the importer's work.
#include "dialect/mgpu/MgpuDialect.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace mgpu::ir;

/// The number of members, where the communicator's creation is visible.
static std::optional<int64_t> getRankCount(Value comm) {
  auto create = comm.getDefiningOp<CreateCommunicatorOp>();
  if (!create || create->getNumOperands() == 0)
    return std::nullopt;
  return create->getNumOperands();
}

static LogicalResult verifyRank(Operation *op, Value rank, Value comm,
                                StringRef what) {
  std::optional<int64_t> index = getConstantIndex(rank);
  if (!index)
    return success();
  if (*index < 0)
    return op->emitOpError()
           << what << " must not be negative, got " << *index << rule(op, 1);
  std::optional<int64_t> count = getRankCount(comm);
  if (!count || *index < *count)
    return success();
  return op->emitOpError() << what << " " << *index
                           << " is out of range: the communicator has "
                           << *count << (*count == 1 ? " device" : " devices")
                           << rule(op, 2);
}

static LogicalResult verifySameElementType(Operation *op, MemRefType send,
                                           MemRefType recv) {
  if (send.getElementType() == recv.getElementType())
    return success();
  return op->emitOpError("send buffer has element type ")
         << send.getElementType() << ", but receive buffer has "
         << recv.getElementType() << rule(op, 1);
}

LogicalResult CreateCommunicatorOp::verify() {
  if (getDevices().empty())
    return emitOpError("expected at least one device") << rule(*this, 1);
  llvm::SmallDenseMap<Value, size_t> handles;
  llvm::SmallDenseMap<int64_t, size_t> indices;
  for (auto [position, device] : llvm::enumerate(getDevices())) {
    auto [handle, newHandle] = handles.try_emplace(device, position);
    if (!newHandle)
      return emitOpError("devices ")
             << handle->second << " and " << position
             << " of the communicator are the same" << rule(*this, 2);
    std::optional<int64_t> index = getConstantDeviceIndex(device);
    if (!index)
      continue;
    if (*index == hostDeviceIndex)
      return emitOpError("device ")
             << position << " of the communicator is the host"
             << rule(*this, 3);
    auto [known, newIndex] = indices.try_emplace(*index, position);
    if (!newIndex)
      return emitOpError("devices ") << known->second << " and " << position
                                     << " of the communicator are both device "
                                     << *index << rule(*this, 2);
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  auto send = cast<MemRefType>(getSendBuf().getType());
  auto recv = cast<MemRefType>(getRecvBuf().getType());
  if (failed(verifySameElementType(*this, send, recv)))
    return failure();
  if (failed(verifyCompatibleShape(send.getShape(), recv.getShape())))
    return emitOpError("send and receive buffers must have the same shape, "
                       "got ")
           << send << " and " << recv << rule(*this, 2);
  if (!send.getElementType().isIntOrIndexOrFloat())
    return emitOpError("expected a buffer of integers or floats, got ")
           << send << rule(*this, 3);
  return success();
}

LogicalResult AllGatherOp::verify() {
  auto send = cast<MemRefType>(getSendBuf().getType());
  auto recv = cast<MemRefType>(getRecvBuf().getType());
  std::optional<int64_t> count = getRankCount(getComm());
  if (failed(verifySameElementType(*this, send, recv)))
    return failure();
  if (send.getRank() != recv.getRank())
    return emitOpError("send buffer has rank ")
           << send.getRank() << ", but receive buffer has " << recv.getRank()
           << rule(*this, 2);
  if (send.getRank() == 0) {
    if (count && *count != 1)
      return emitOpError("buffers of rank 0 cannot hold the contributions of ")
             << *count << " devices" << rule(*this, 3);
    return success();
  }
  if (failed(verifyCompatibleShape(send.getShape().drop_front(),
                                   recv.getShape().drop_front())))
    return emitOpError("send and receive buffers may differ in dimension 0 "
                       "only, got ")
           << send << " and " << recv << rule(*this, 4);
  int64_t sendSize = send.getDimSize(0), recvSize = recv.getDimSize(0);
  if (ShapedType::isDynamic(sendSize) || ShapedType::isDynamic(recvSize))
    return success();
  if (sendSize == recvSize) {
    if (count && recvSize % *count != 0)
      return emitOpError("size ")
             << recvSize << " of dimension 0 is not divisible by the number of "
             << "devices, " << *count << rule(*this, 5);
    return success();
  }
  // Divides, for a product of hostile sizes could overflow.
  bool isMultiple = sendSize > 0 && recvSize % sendSize == 0;
  if (!isMultiple || (count && recvSize / sendSize != *count)) {
    std::string times =
        count ? std::to_string(*count) + " times it" : "a multiple of it";
    return emitOpError("receive buffer must have the size of the send buffer "
                       "or ")
           << times << " in dimension 0, got " << recvSize << " and "
           << sendSize << rule(*this, 6);
  }
  return success();
}

LogicalResult BroadcastOp::verify() {
  return verifyRank(*this, getRootRank(), getComm(), "root rank");
}

LogicalResult SendOp::verify() {
  return verifyRank(*this, getDstRank(), getComm(), "destination rank");
}

LogicalResult RecvOp::verify() {
  return verifyRank(*this, getSrcRank(), getComm(), "source rank");
}
