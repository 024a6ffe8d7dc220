// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RemoteRunner.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <optional>

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
  bool isOnHost() const override { return here->isOnHost(); }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override {
    return std::span(made.emplace_back(hostBuffer(id).size()));
  }
  Result<void> bind(planner::BufferId id,
                    std::span<std::byte> memory) override {
    std::copy(memory.begin(), memory.end(), hostBuffer(id).begin());
    return {};
  }
  Result<void> checkAlive() const override {
    return lost ? fail(*lost) : here->checkAlive();
  }
  Result<void> load() override { return kept(here->load()); }
  Result<void> replay(std::span<double> us) override {
    return kept(replayTogether(us));
  }
  Result<void> fetch() override { return kept(here->fetch()); }
  Result<std::vector<TimedReplay>> replayTimed() override {
    return kept(timeTogether());
  }
  std::string timedBy() const override { return here->timedBy(); }
  Result<void> close() override {
    MGPU_TRY(here->close());
    return others.meet();
  }

private:
  /// Whatever fails here, the others are not where this process is.
  template <typename T>
  Result<T> kept(Result<T> done) {
    if (!done && !lost)
      lost = done.error();
    return done;
  }
  Result<void> replayTogether(std::span<double> us) {
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
  Result<std::vector<TimedReplay>> timeTogether() {
    MGPU_TRY(others.meet());
    MGPU_TRY_ASSIGN(const std::vector<TimedReplay> timed, here->replayTimed());
    Bytes mine;
    for (const TimedReplay &each : timed) {
      Bytes bytes;
      appendTimedReplay(bytes, each);
      append(mine, std::string(reinterpret_cast<const char *>(bytes.data()),
                               bytes.size()));
    }
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
    std::vector<TimedReplay> out;
    for (const Bytes &each : all)
      for (ByteReader reader(each); !reader.isEmpty();) {
        const std::string text = reader.text();
        out.push_back(takeTimedReplay(std::as_bytes(std::span(text))));
      }
    return out;
  }

  const std::unique_ptr<Runner> here;
  device::Rendezvous &others;
  std::deque<Bytes> made; ///< by makeMemory()
  std::optional<Error> lost;
};

} // namespace

std::unique_ptr<Runner> runWithOthers(std::unique_ptr<Runner> here,
                                      device::Rendezvous &others) {
  return std::make_unique<RemoteRunner>(std::move(here), others);
}

Result<std::unique_ptr<Runner>>
runGpusWithOthers(planner::Dag dag, planner::Plan plan,
                  std::vector<Bytes> kernels, RemotePart part,
                  RankJob::Open open, Ranks::Options options) {
  device::MessageRendezvous &others = *part.others;
  options.policy = RankPolicy::Threads;
  auto here =
      Ranks::start(std::move(dag), std::move(plan), std::move(kernels),
                   std::move(open), std::move(options), std::move(part));
  if (!here)
    return fail(others.giveUp(std::move(here.error())));
  return runWithOthers(std::move(*here), others);
}

} // namespace mgpu::capture
