// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Runner.h"

#include "support/Clock.h"

#include <algorithm>

namespace mgpu::capture {

Result<void> Runner::enqueue(void *) { return hasNoStream(); }

Result<void> Runner::captureInto(void *) { return isInNoGraph(); }

Result<void> Runner::observe(ReplayObserver *) {
  return fail(ErrorKind::Unsupported,
              "single nodes are observed in one process alone");
}

Result<OutputHashes> Runner::hashOutputs() {
  return fail(ErrorKind::Unsupported,
              "what nodes wrote is compared in one process alone");
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
  using Runner::bind;
  Result<void> bind(std::span<const Rebinding> moved) override {
    return replayer.rebind(dag, plan, moved);
  }
  Result<void> lend(planner::BufferId id,
                    std::span<const std::byte> memory) override {
    return replayer.lend(dag, plan, id, memory);
  }
  Result<void> makeOwn(planner::BufferId id, bool exposes) override {
    return replayer.makeOwn(dag, plan, id, exposes);
  }
  Result<void> shareReads() override { return replayer.shareReads(dag, plan); }
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
  bool canEnqueue() override { return replayer.canEnqueue(); }
  Result<void> enqueue(void *stream) override {
    return replayer.enqueue(stream);
  }
  Result<void> captureInto(void *stream) override {
    return replayer.captureInto(stream);
  }
  Result<void> finish() override { return replayer.finish(); }
  Result<void> fetch() override { return replayer.fetch(); }
  Result<void> observe(ReplayObserver *observer) override {
    return replayer.observe(observer);
  }
  void findPlaces(std::vector<std::byte *> &places) override {
    replayer.findPlaces(dag, plan, places);
  }
  Result<OutputHashes> hashOutputs() override {
    return replayer.hashOutputs(dag, plan);
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

} // namespace mgpu::capture
