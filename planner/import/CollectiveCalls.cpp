// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu operations that communicate.
#include "planner/import/Commands.h"

namespace mgpu::planner {

using namespace mlir;

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

} // namespace mgpu::planner
