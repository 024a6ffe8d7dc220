// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/nccl/Communicators.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <thread>

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

Result<NcclId> Communicators::makeId(const NcclApi &api) {
  NcclId id;
  NcclResult code = api.GetUniqueId(&id);
  if (code != NcclResult::Success)
    return ncclError(api, code, "ncclGetUniqueId", "of NCCL", nullptr);
  return id;
}

tl::unexpected<Error> Communicators::failed(NcclResult code,
                                            std::string_view call,
                                            std::string_view place,
                                            NcclComm comm) {
  isBroken = true;
  return ncclError(*api, code, call, place, comm);
}

Result<void> Communicators::settle(NcclComm comm, NcclResult code,
                                   std::string_view call,
                                   std::string_view what) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  std::string place = what.empty() ? where : fmt::format("{} {}", what, where);
  while (code == NcclResult::InProgress) {
    if (watch)
      if (Result<void> ok = watch(); !ok) {
        isBroken = true;
        return ok;
      }
    NcclResult polled = api->CommGetAsyncError(comm, &code);
    if (polled != NcclResult::Success)
      return failed(polled, "ncclCommGetAsyncError", place, comm);
    if (code != NcclResult::InProgress)
      break;
    if (deadline.count() > 0 && Clock::now() - start > deadline) {
      isBroken = true;
      return fail(ErrorKind::Absent,
                  fmt::format("{} {} did not end within {} ms: another rank "
                              "ended, or cannot be reached",
                              call, place, deadline.count()));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  if (code != NcclResult::Success)
    return failed(code, call, place, comm);
  return {};
}

Result<void> Communicators::join(const NcclId &id, uint32_t rank,
                                 const std::vector<DeviceId> &members) {
  NcclConfig config;
  if (options.setsCtas()) {
    if (api->version < int(NcclConfig::wholeVersion))
      return fail(ErrorKind::Absent,
                  fmt::format("NCCL {} takes no number and policy of thread "
                              "blocks: install 2.27 or later",
                              ncclVersionText(api->version)));
    if (options.ctas == NcclOptions::Ctas::Zero &&
        api->version < ncclWithCtaPolicyZero)
      return fail(ErrorKind::Absent,
                  fmt::format("NCCL {} does not know ctas=zero: install 2.28 "
                              "or later",
                              ncclVersionText(api->version)));
    config.size = sizeof config;
    config.version = NcclConfig::wholeVersion;
    if (options.leastCtas) {
      config.minCtas = int(options.leastCtas);
      // NCCL compares it with the most even where that is undefined, INT_MIN.
      config.maxCtas = ncclMostCtas;
    }
    if (options.mostCtas)
      config.maxCtas = int(options.mostCtas);
    if (options.ctas != NcclOptions::Ctas::Default)
      config.ctaPolicy = int(options.ctas);
  }
  NcclComm comm = nullptr;
  NcclResult code = api->CommInitRankConfig(&comm, int(members.size()), id,
                                            int(rank), &config);
  // From here on it is ours to end, ready or not.
  groups.push_back({comm, members});
  Result<void> joined =
      settle(comm, code, "ncclCommInitRankConfig",
             fmt::format("as rank {} of {}", rank, members.size()));
  if (!joined && comm) {
    groups.back().comm = nullptr;
    api->CommAbort(comm);
  }
  return joined;
}

Result<bool> Communicators::makeWindow(uint64_t bytes, std::byte *&memory) {
  void *taken = nullptr;
  NcclResult code = api->MemAlloc(&taken, bytes);
  if (code != NcclResult::Success)
    return ncclError(
        *api, code, "ncclMemAlloc",
        fmt::format("of {} bytes for a GPU's arena {}", bytes, where), nullptr);
  memory = static_cast<std::byte *>(taken);
  NcclComm comm = groups[0].comm;
  windows.push_back(nullptr);
  code = api->CommWindowRegister(comm, taken, bytes, &windows.back(),
                                 ncclSymmetric);
  MGPU_TRY(settle(comm, code, "ncclCommWindowRegister",
                  fmt::format("of {} bytes", bytes)));
  if (windows.back())
    return true;
  windows.pop_back();
  return false;
}

bool Communicators::shareTwoRanks(size_t a, size_t b) const {
  const std::vector<DeviceId> &others = groups[b].members;
  size_t shared = 0;
  for (DeviceId member : groups[a].members)
    shared += std::find(others.begin(), others.end(), member) != others.end();
  return shared >= 2;
}

Result<void> Communicators::issue(const NcclCall &call, CUstream stream,
                                  std::string_view name) {
  NcclComm comm = groups[call.group].comm;
  const char *function = "";
  NcclResult code = device::issue(*api, call, comm, stream, function);
  return settle(comm, code, function, fmt::format("for '{}'", name));
}

Result<void> Communicators::check() {
  if (watch)
    MGPU_TRY(watch());
  for (const Group &group : groups) {
    if (!group.comm || isAborted)
      continue;
    NcclResult code = NcclResult::Success;
    NcclResult polled = api->CommGetAsyncError(group.comm, &code);
    if (polled == NcclResult::Success)
      polled = code;
    if (polled != NcclResult::Success && polled != NcclResult::InProgress)
      return failed(polled, "ncclCommGetAsyncError", where, group.comm);
  }
  return {};
}

void Communicators::abort() {
  if (std::exchange(isAborted, true))
    return;
  // In a thread of its own, because it returns only once the last graph with a
  // call of the communicator is gone (NCCL's commDestroySync), which this
  // process no longer destroys.
  std::vector<NcclComm> comms;
  for (Group &group : groups)
    if (NcclComm comm = std::exchange(group.comm, nullptr))
      comms.push_back(comm);
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::thread([api = api, comms = std::move(comms),
               promise = std::move(promise)]() mutable {
    for (NcclComm comm : comms)
      api->CommAbort(comm);
    promise.set_value();
  }).detach();
  done.wait_for(std::chrono::seconds(1));
}

void Communicators::close() {
  for (NcclWindow window : windows)
    if (NcclComm comm = groups[0].comm; comm && !isBroken)
      // isBroken remembers a failure.
      (void)settle(comm, api->CommWindowDeregister(comm, window),
                   "ncclCommWindowDeregister", "");
  windows.clear();
  for (Group &group : groups)
    if (NcclComm comm = std::exchange(group.comm, nullptr)) {
      // Finalizing waits for the other ranks, so only where all is well.
      if (!isBroken &&
          settle(comm, api->CommFinalize(comm), "ncclCommFinalize", ""))
        api->CommDestroy(comm);
      else
        api->CommAbort(comm);
    }
}

} // namespace mgpu::device
