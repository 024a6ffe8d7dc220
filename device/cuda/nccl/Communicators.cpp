// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/nccl/Communicators.h"

#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <thread>

namespace mgpu::device {

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
