// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Runner.h"

#include "support/Clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

namespace mgpu::capture {

Result<void> Runner::enqueue(void *) {
  return fail(ErrorKind::Unsupported,
              "a program on several GPUs has no single stream: use mgt_replay");
}

Result<void> Runner::observe(ReplayObserver *) {
  return fail(ErrorKind::Unsupported,
              "single nodes are observed in one process alone");
}

void Runner::findPlaces(std::vector<std::byte *> &places) { places.clear(); }

Result<void> Runner::write(planner::BufferId id,
                           std::span<const std::byte> bytes) {
  const std::span<std::byte> memory = hostBuffer(id);
  std::copy_n(bytes.begin(), std::min(bytes.size(), memory.size()),
              memory.begin());
  return {};
}

Result<void> Runner::read(planner::BufferId id, std::span<std::byte> bytes) {
  const std::span<std::byte> memory = hostBuffer(id);
  std::copy_n(memory.begin(), std::min(bytes.size(), memory.size()),
              bytes.begin());
  return {};
}

namespace {

class OneTarget final : public Runner {
public:
  OneTarget(std::unique_ptr<device::Driver> driver, Replayer replayer,
            const planner::Dag &dag, const planner::Plan &plan)
      : driver(std::move(driver)), replayer(std::move(replayer)), dag(dag),
        plan(plan) {}

  std::string description() const override { return driver->description(); }
  std::span<std::byte> hostBuffer(planner::BufferId id) override {
    return replayer.hostBuffer(id);
  }
  Result<std::span<std::byte>> memory(planner::BufferId id) override {
    return replayer.memory(dag, id);
  }
  Result<void> write(planner::BufferId id,
                     std::span<const std::byte> bytes) override {
    return replayer.write(dag, id, bytes);
  }
  Result<void> read(planner::BufferId id, std::span<std::byte> bytes) override {
    return replayer.read(dag, id, bytes);
  }
  bool isOnHost() const override { return driver->architecture().empty(); }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override {
    const size_t bytes = replayer.hostBuffer(id).size();
    MGPU_TRY_ASSIGN(std::byte * memory,
                    driver->allocate(DeviceId::host(), bytes));
    return std::span(memory, bytes);
  }
  Result<void> bind(planner::BufferId id,
                    std::span<std::byte> memory) override {
    return replayer.rebind(dag, plan, id, memory);
  }
  Result<void> checkAlive() const override { return replayer.checkAlive(); }
  Result<void> load() override {
    MGPU_TRY(replayer.complete(dag, plan));
    return replayer.load();
  }
  Result<void> replay(std::span<double> us) override {
    for (double &each : us) {
      const Clock::time_point start = Clock::now();
      MGPU_TRY(replayer.replay());
      each = microsecondsSince(start);
    }
    return {};
  }
  Result<void> enqueue(void *stream) override {
    return replayer.enqueue(stream);
  }
  Result<void> finish() override { return replayer.finish(); }
  Result<void> fetch() override { return replayer.fetch(); }
  Result<void> observe(ReplayObserver *observer) override {
    return replayer.observe(observer);
  }
  void findPlaces(std::vector<std::byte *> &places) override {
    replayer.findPlaces(dag, plan, places);
  }
  Result<std::vector<TimedReplay>> replayTimed() override {
    MGPU_TRY_ASSIGN(auto timed, replayer.replayTimed());
    return std::vector<TimedReplay>{std::move(timed)};
  }
  std::string timedBy() const override { return driver->timedBy(); }
  Result<void> close() override { return {}; }

private:
  std::unique_ptr<device::Driver> driver;
  Replayer replayer; ///< goes before its driver
  const planner::Dag &dag;
  const planner::Plan &plan;
};

} // namespace

void appendTimedReplay(Bytes &to, const TimedReplay &timed) {
  append(to, uint64_t(timed.nodes.size()));
  append(to, std::as_bytes(std::span(timed.nodes)));
  append(to, std::as_bytes(std::span(timed.host)));
}

TimedReplay takeTimedReplay(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  TimedReplay timed;
  NodeSpan node;
  for (auto left = reader.take<uint64_t>(); left > 0 && reader.take(node);
       --left)
    timed.nodes.push_back(node);
  for (device::HostSpan span; reader.take(span);)
    timed.host.push_back(span);
  return timed;
}

std::unique_ptr<Runner> runOnOneTarget(std::unique_ptr<device::Driver> driver,
                                       Replayer replayer,
                                       const planner::Dag &dag,
                                       const planner::Plan &plan) {
  return std::make_unique<OneTarget>(std::move(driver), std::move(replayer),
                                     dag, plan);
}

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
