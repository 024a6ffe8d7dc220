// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RemoteMeeting.h"

#include <algorithm>

namespace mgpu::capture {

Result<std::shared_ptr<RemoteMeeting>>
RemoteMeeting::create(const planner::Dag &dag, RemotePart part,
                      std::span<std::byte> memory) {
  MGPU_TRY_ASSIGN(HostMirror mirror,
                  HostMirror::create(dag, part.rankOf, memory, *part.others));
  return std::make_shared<RemoteMeeting>(
      RemoteMeeting{std::move(part), std::move(mirror), std::nullopt, 0, {}});
}

/// A rank that fails does not come, so the first one waits for other processes
/// only while none of its own can.
Result<void> RemoteRank::byFirst(const std::function<Result<void>()> &work) {
  MGPU_TRY(here->meet());
  if (here->rank() == 0) {
    shared.fault.reset();
    if (Result<void> done = work(); !done)
      shared.fault = std::move(done.error());
  }
  MGPU_TRY(here->meet());
  return shared.fault ? fail(*shared.fault) : Result<void>();
}

Result<void> RemoteRank::watch() {
  MGPU_TRY(here->watch());
  return shared.part.others->watch();
}

Result<void> RemoteRank::meet() {
  return byFirst([&] { return shared.part.others->meet(); });
}

Result<void> RemoteRank::meetFor(std::optional<planner::Phase> next) {
  return byFirst([&] { return shared.mirror.meet(next); });
}

Result<double> RemoteRank::largest(double mine) {
  MGPU_TRY_ASSIGN(mine, here->largest(mine));
  MGPU_TRY(byFirst([&]() -> Result<void> {
    MGPU_TRY_ASSIGN(shared.largest, shared.part.others->largest(mine));
    return {};
  }));
  return shared.largest;
}

Result<std::vector<Bytes>>
RemoteRank::exchange(std::span<const std::byte> mine) {
  MGPU_TRY_ASSIGN(const std::vector<Bytes> ours, here->exchange(mine));
  MGPU_TRY(byFirst([&]() -> Result<void> {
    Bytes packed;
    for (const Bytes &each : ours)
      append(packed, std::string(reinterpret_cast<const char *>(each.data()),
                                 each.size()));
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all,
                    shared.part.others->exchange(packed));
    std::vector<ByteReader> readers(all.begin(), all.end());
    shared.gathered.clear();
    for (uint32_t process : shared.part.rankOf) {
      const std::string text = readers[process].text();
      append(shared.gathered.emplace_back(), std::as_bytes(std::span(text)));
    }
    return {};
  }));
  return shared.gathered;
}

} // namespace mgpu::capture
