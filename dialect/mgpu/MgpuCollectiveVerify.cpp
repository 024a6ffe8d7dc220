// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of communicators and collectives: what one call alone shows.
// Matching the calls of several devices is the importer's work.
#include "dialect/mgpu/MgpuDialect.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"

#include <map>
#include <set>

using namespace mlir;
using namespace mgpu::ir;

/// The number of members, where the communicator's creation is visible.
static std::optional<int64_t> getRankCount(Value comm) {
  auto create = comm.getDefiningOp<CreateCommunicatorOp>();
  if (!create || create->getNumOperands() == 0)
    return std::nullopt;
  return create->getNumOperands();
}

/// Rule 1 of the operations with two buffers: they have one element type.
static LogicalResult verifySentType(Operation *op, MemRefType send,
                                    MemRefType recv) {
  if (send.getElementType() == recv.getElementType())
    return success();
  return op->emitOpError("send buffer has element type ")
         << send.getElementType() << ", but receive buffer has "
         << recv.getElementType() << rule(op, 1);
}

/// Rule `number`: a reduction is of integers or floats.
static LogicalResult verifyReducedType(Operation *op, MemRefType send,
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

static bool isStatic(int64_t size) { return !ShapedType::isDynamic(size); }

static LogicalResult verifySameRank(Operation *op, MemRefType send,
                                    MemRefType recv) {
  if (send.getRank() == recv.getRank())
    return success();
  return op->emitOpError("send buffer has rank ")
         << send.getRank() << ", but receive buffer has " << recv.getRank()
         << rule(op, 2);
}

static LogicalResult verifyAxis(Operation *op, StringRef name, int64_t axis,
                                int64_t rank, unsigned number) {
  if (axis >= 0 && axis < rank)
    return success();
  return op->emitOpError(name)
         << " " << axis << " is out of range for buffers of rank " << rank
         << rule(op, number);
}

/// Rule 4: the sizes are the same but along the axis.
static LogicalResult verifyOtherSizes(Operation *op, MemRefType send,
                                      MemRefType recv, int64_t axis) {
  for (int64_t dim = 0; dim < send.getRank(); ++dim) {
    int64_t sent = send.getDimSize(dim), received = recv.getDimSize(dim);
    if (dim != axis && isStatic(sent) && isStatic(received) && sent != received)
      return op->emitOpError("send and receive buffers may differ in "
                             "dimension ")
             << axis << " only, got " << send << " and " << recv << rule(op, 4);
  }
  return success();
}

/// Whether `large` is as many times `small` as there are devices, or any
/// multiple where their number is not known. A product of hostile sizes could
/// overflow, so this divides.
static bool isMultiple(int64_t large, int64_t small,
                       std::optional<int64_t> count) {
  if (small == 0 || large == 0)
    return small == large;
  return large % small == 0 && (!count || large / small == *count);
}

LogicalResult AllGatherOp::verify() {
  auto send = cast<MemRefType>(getSendBuf().getType());
  auto recv = cast<MemRefType>(getRecvBuf().getType());
  std::optional<int64_t> count = getRankCount(getComm());
  int64_t axis = getAxis(), rank = send.getRank();
  if (failed(verifySentType(*this, send, recv)) ||
      failed(verifySameRank(*this, send, recv)) ||
      ((rank > 0 || axis != 0) &&
       failed(verifyAxis(*this, "axis", axis, rank, 7))))
    return failure();
  if (rank == 0) {
    if (count && *count != 1)
      return emitOpError("buffers of rank 0 cannot hold the contributions of ")
             << *count << " devices" << rule(*this, 3);
    return success();
  }
  if (failed(verifyOtherSizes(*this, send, recv, axis)))
    return failure();
  int64_t sendSize = send.getDimSize(axis), recvSize = recv.getDimSize(axis);
  if (!isStatic(sendSize) || !isStatic(recvSize))
    return success();
  if (sendSize == recvSize) {
    if (count && recvSize % *count != 0)
      return emitOpError("size ")
             << recvSize << " of dimension " << axis
             << " is not divisible by the number of devices, " << *count
             << rule(*this, 5);
    return success();
  }
  if (!isMultiple(recvSize, sendSize, count))
    return emitOpError("receive buffer must have the size of the send buffer "
                       "or ")
           << (count ? std::to_string(*count) + " times it"
                     : "a multiple of it")
           << " in dimension " << axis << ", got " << recvSize << " and "
           << sendSize << rule(*this, 6);
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  auto send = cast<MemRefType>(getSendBuf().getType());
  auto recv = cast<MemRefType>(getRecvBuf().getType());
  std::optional<int64_t> count = getRankCount(getComm());
  int64_t axis = getAxis();
  if (failed(verifySentType(*this, send, recv)) ||
      failed(verifySameRank(*this, send, recv)) ||
      failed(verifyAxis(*this, "axis", axis, send.getRank(), 3)) ||
      failed(verifyOtherSizes(*this, send, recv, axis)))
    return failure();
  int64_t sendSize = send.getDimSize(axis), recvSize = recv.getDimSize(axis);
  if (isStatic(sendSize) && isStatic(recvSize) &&
      !isMultiple(sendSize, recvSize, count))
    return emitOpError("dimension ")
           << axis << " of the send buffer must be "
           << (count ? std::to_string(*count) + " times" : "a multiple of")
           << " that of the receive buffer, got " << sendSize << " and "
           << recvSize << rule(*this, 5);
  return verifyReducedType(*this, send, 6);
}

LogicalResult AllToAllOp::verify() {
  auto send = cast<MemRefType>(getSendBuf().getType());
  auto recv = cast<MemRefType>(getRecvBuf().getType());
  std::optional<int64_t> count = getRankCount(getComm());
  int64_t split = getSplitAxis(), concat = getConcatAxis();
  if (failed(verifySentType(*this, send, recv)) ||
      failed(verifySameRank(*this, send, recv)) ||
      failed(verifyAxis(*this, "splitAxis", split, send.getRank(), 3)) ||
      failed(verifyAxis(*this, "concatAxis", concat, send.getRank(), 3)))
    return failure();
  int64_t cut = send.getDimSize(split);
  if (count && isStatic(cut) && cut % *count != 0)
    return emitOpError("size ")
           << cut << " of dimension " << split
           << " is not divisible by the number of devices, " << *count
           << rule(*this, 4);
  for (int64_t dim = 0; dim < send.getRank(); ++dim) {
    int64_t sent = send.getDimSize(dim), received = recv.getDimSize(dim);
    if (!isStatic(sent) || !isStatic(received))
      continue;
    bool fits =
        dim == split && split != concat    ? isMultiple(sent, received, count)
        : dim == concat && split != concat ? isMultiple(received, sent, count)
                                           : sent == received;
    if (!fits)
      return emitOpError("receive buffer has size ")
             << received << " in dimension " << dim
             << ", which does not follow from the send buffer's " << sent
             << rule(*this, 5);
  }
  return success();
}

LogicalResult PermuteOp::verify() {
  auto send = cast<MemRefType>(getSendBuf().getType());
  auto recv = cast<MemRefType>(getRecvBuf().getType());
  std::optional<int64_t> count = getRankCount(getComm());
  ArrayRef<int64_t> pairs = getPairs();
  if (failed(verifySentType(*this, send, recv)))
    return failure();
  if (failed(verifyCompatibleShape(send.getShape(), recv.getShape())))
    return emitOpError("send and receive buffers must have the same shape, "
                       "got ")
           << send << " and " << recv << rule(*this, 2);
  if (pairs.size() % 2 != 0)
    return emitOpError("expected a source and a target for each pair, got ")
           << pairs.size() << " numbers" << rule(*this, 3);
  std::set<int64_t> known[2];
  for (auto [position, number] : llvm::enumerate(pairs)) {
    StringRef what = position % 2 ? "target" : "source";
    if (number < 0)
      return emitOpError(what)
             << " must not be negative, got " << number << rule(*this, 4);
    if (count && number >= *count)
      return emitOpError(what)
             << " " << number << " is out of range: the communicator has "
             << *count << (*count == 1 ? " device" : " devices")
             << rule(*this, 5);
    if (!known[position % 2].insert(number).second)
      return emitOpError("rank ")
             << number << " is the " << what << " of two pairs"
             << rule(*this, position % 2 ? 7 : 6);
  }
  return success();
}
