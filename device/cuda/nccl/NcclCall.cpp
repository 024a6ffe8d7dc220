// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/nccl/NcclCall.h"

#include <fmt/format.h>

namespace mgpu::device {

Result<NcclType> reductionTypeOf(ElementType type, int major) {
  switch (type) {
  case ElementType::I8:
    return NcclType::Int8;
  case ElementType::I32:
    return NcclType::Int32;
  case ElementType::I64:
  case ElementType::Index:
    return NcclType::Int64;
  case ElementType::F16:
    return NcclType::Float16;
  case ElementType::BF16:
    return NcclType::Bfloat16;
  case ElementType::F32:
    return NcclType::Float32;
  case ElementType::F64:
    return NcclType::Float64;
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
    // "FP8 reduction support begins with sm90 capable devices." (2.28.9)
    if (major >= 9)
      return type == ElementType::F8E5M2 ? NcclType::Float8E5M2
                                         : NcclType::Float8E4M3;
    return fail(ErrorKind::Unsupported,
                fmt::format("NCCL reduces {} on GPUs of sm_90 and later only: "
                            "convert to f16, or use one GPU as cuda:K/N",
                            toString(type)));
  case ElementType::I1:
  case ElementType::I16:
    break;
  }
  return fail(ErrorKind::Unsupported,
              fmt::format("NCCL has no reduction of {}: convert to i32, or use "
                          "one GPU as cuda:K/N",
                          toString(type)));
}

NcclReduction reductionOf(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
    return NcclReduction::Sum;
  case ReductionKind::Prod:
    return NcclReduction::Prod;
  case ReductionKind::Min:
    return NcclReduction::Min;
  case ReductionKind::Max:
    break;
  }
  return NcclReduction::Max;
}

static uint64_t bytesOf(NcclType type) {
  switch (type) {
  case NcclType::Int32:
  case NcclType::Float32:
    return 4;
  case NcclType::Int64:
  case NcclType::Float64:
    return 8;
  case NcclType::Float16:
  case NcclType::Bfloat16:
    return 2;
  default:
    return 1;
  }
}

uint64_t NcclCall::bytesWritten() const {
  const bool isForAll =
      kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
  return recv ? count * bytesOf(type) * (isForAll ? numRanks : 1) : 0;
}

uint64_t NcclCall::bytesRead() const {
  const bool isOfAll =
      kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllToAll;
  return send ? count * bytesOf(type) * (isOfAll ? numRanks : 1) : 0;
}

bool NcclCall::isOverlapLegal() const {
  if (!send || !recv)
    return true;
  const uint64_t slice = count * bytesOf(type);
  auto from = uintptr_t(send), to = uintptr_t(recv);
  switch (kind) {
  case CollectiveKind::AllGather: // nccl.h:445
    if (from == to + rank * slice)
      return true;
    break;
  case CollectiveKind::ReduceScatter: // nccl.h:428
    if (to == from + rank * slice)
      return true;
    break;
  case CollectiveKind::AllToAll: // it has no in-place form
  case CollectiveKind::Permute:  // nor has a group
    break;
  default: // nccl.h:399, 412
    if (from == to)
      return true;
    break;
  }
  return to >= from + bytesRead() || from >= to + bytesWritten();
}

NcclResult issue(const NcclApi &api, const NcclCall &call, NcclComm comm,
                 CUstream stream, const char *&name) {
  switch (call.kind) {
  case CollectiveKind::AllReduce:
    name = "ncclAllReduce";
    return api.AllReduce(call.send, call.recv, call.count, call.type,
                         call.reduction, comm, stream);
  case CollectiveKind::ReduceScatter:
    name = "ncclReduceScatter";
    return api.ReduceScatter(call.send, call.recv, call.count, call.type,
                             call.reduction, comm, stream);
  case CollectiveKind::AllGather:
    name = "ncclAllGather";
    return api.AllGather(call.send, call.recv, call.count, call.type, comm,
                         stream);
  case CollectiveKind::Broadcast:
    name = "ncclBroadcast";
    return api.Broadcast(call.send ? call.send : call.recv, call.recv,
                         call.count, call.type, int(call.root), comm, stream);
  default:
    break;
  }
  auto isOver = [](NcclResult code) {
    return code != NcclResult::Success && code != NcclResult::InProgress;
  };
  name = "ncclGroupStart";
  NcclResult code = api.GroupStart();
  if (isOver(code))
    return code;
  auto send = [&](const std::byte *from, uint32_t peer) {
    if (isOver(code))
      return;
    name = "ncclSend";
    code = api.Send(from, call.count, call.type, int(peer), comm, stream);
  };
  auto receive = [&](std::byte *to, uint32_t peer) {
    if (isOver(code))
      return;
    name = "ncclRecv";
    code = api.Recv(to, call.count, call.type, int(peer), comm, stream);
  };
  if (call.kind == CollectiveKind::AllToAll) {
    uint64_t slice = call.count * bytesOf(call.type);
    for (uint32_t k = 0; k < call.numRanks; ++k) {
      send(call.send + k * slice, k);
      receive(call.recv + k * slice, k);
    }
  } else {
    if (call.send)
      send(call.send, *targetOf(call.pairs, call.rank));
    if (call.recv)
      receive(call.recv, *sourceOf(call.pairs, call.rank));
  }
  // A group that was begun is ended, whatever failed in it.
  NcclResult ended = api.GroupEnd();
  if (isOver(code))
    return code;
  name = "ncclGroupEnd";
  return ended;
}

} // namespace mgpu::device
