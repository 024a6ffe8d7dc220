// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of communicators and collectives: what one call alone shows.
// Matching the calls of several devices is the importer's work.
#include "dialect/mgpu/MgpuCollectiveRules.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"

#include <map>

using namespace mlir;
using namespace mgpu::ir;

std::optional<int64_t> mgpu::ir::getRankCount(Value comm) {
  auto create = comm.getDefiningOp<CreateCommunicatorOp>();
  if (!create || create->getNumOperands() == 0)
    return std::nullopt;
  return create->getNumOperands();
}

LogicalResult mgpu::ir::verifySentType(Operation *op, MemRefType send,
                                       MemRefType recv) {
  if (send.getElementType() == recv.getElementType())
    return success();
  return op->emitOpError("send buffer has element type ")
         << send.getElementType() << ", but receive buffer has "
         << recv.getElementType() << rule(op, 1);
}

LogicalResult mgpu::ir::verifyReducedType(Operation *op, MemRefType send,
                                          unsigned number) {
  if (send.getElementType().isIntOrIndexOrFloat())
    return success();
  return op->emitOpError("expected a buffer of integers or floats, got ")
         << send << rule(op, number);
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

LogicalResult CreateCommunicatorOp::verify() {
  if (getDevices().empty())
    return emitOpError("expected at least one device") << rule(*this, 1);
  llvm::SmallDenseMap<Value, size_t> handles;
  std::map<int64_t, size_t> indices; // which any number may be a key of
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
  if (failed(verifySentType(*this, send, recv)))
    return failure();
  if (failed(verifyCompatibleShape(send.getShape(), recv.getShape())))
    return emitOpError("send and receive buffers must have the same shape, "
                       "got ")
           << send << " and " << recv << rule(*this, 2);
  return verifyReducedType(*this, send, 3);
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
