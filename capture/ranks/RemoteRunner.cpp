// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RemoteRunner.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>

namespace mgpu::capture {

namespace {

class RemoteRunner final : public Runner {
public:
  RemoteRunner(std::unique_ptr<Runner> here, device::Rendezvous &others)
      : here(std::move(here)), others(others) {}

  std::string description() const override {
    return fmt::format("{}, shared with {} other process{}",
                       here->description(), others.count() - 1,
                       others.count() == 2 ? "" : "es");
  }
  std::span<std::byte> hostBuffer(planner::BufferId id) override {
    return here->hostBuffer(id);
  }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override {
    return std::span(made.emplace_back(hostBuffer(id).size()));
  }
  Result<void> bind(planner::BufferId id,
                    std::span<std::byte> memory) override {
    std::copy(memory.begin(), memory.end(), hostBuffer(id).begin());
    return {};
  }
  Result<void> load() override { return here->load(); }
  Result<void> replay(std::span<double> us) override {
    MGPU_TRY(others.meet()); // so that none counts how late another comes
    MGPU_TRY(here->replay(us));
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all,
                    others.exchange(std::as_bytes(us)));
    for (const Bytes &each : all) {
      ByteReader reader(each);
      for (double &longest : us)
        longest = std::max(longest, reader.take<double>());
    }
    return {};
  }
  Result<void> fetch() override { return here->fetch(); }
  Result<std::vector<TimedReplay>> replayTimed() override {
    MGPU_TRY(others.meet());
    MGPU_TRY_ASSIGN(const std::vector<TimedReplay> timed, here->replayTimed());
    Bytes mine;
    appendTimedReplay(mine, timed.front());
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
    std::vector<TimedReplay> out;
    for (const Bytes &each : all)
      out.push_back(takeTimedReplay(each));
    return out;
  }
  Result<void> close() override {
    MGPU_TRY(here->close());
    return others.meet();
  }

private:
  const std::unique_ptr<Runner> here;
  device::Rendezvous &others;
  std::deque<Bytes> made; ///< by makeMemory()
};

} // namespace

std::unique_ptr<Runner> runWithOthers(std::unique_ptr<Runner> here,
                                      device::Rendezvous &others) {
  return std::make_unique<RemoteRunner>(std::move(here), others);
}

} // namespace mgpu::capture
