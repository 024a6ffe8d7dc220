// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RemoteGpu.h"

#include "capture/ranks/HostMirror.h"
#include "capture/ranks/Rank.h"
#include "support/Clock.h"

#include <deque>

namespace mgpu::capture {

namespace {

class RemoteGpu final : public Runner {
public:
  RemoteGpu(const planner::Dag &dag, const planner::Plan &plan)
      : dag(dag), plan(plan) {}
  /// After a disorderly end the others may not be there any more: what NCCL has
  /// is not waited for.
  ~RemoteGpu() override {
    if (!driver)
      return;
    driver->abandon("the program was given up");
    host.keep(); // the GPU may still write there
  }

  using Open = std::function<Result<std::unique_ptr<device::Driver>>(
      std::function<Result<void>()> watch)>;
  Result<void> start(std::span<const std::vector<std::byte>> kernels,
                     const RemotePart &part, const Open &open) {
    others = part.others;
    return told(build(kernels, part, open));
  }

  std::string description() const override { return text; }
  std::span<std::byte> hostBuffer(planner::BufferId id) override {
    return mirror->holds(id) ? replayer->hostBuffer(id)
                             : std::span<std::byte>();
  }
  bool isOnHost() const override { return false; }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override {
    return std::span(made.emplace_back(hostBuffer(id).size()));
  }
  /// The memory is the same, so that no rank builds its graphs anew.
  Result<void> bind(planner::BufferId id,
                    std::span<std::byte> memory) override {
    return write(id, memory);
  }
  Result<void> checkAlive() const override { return replayer->checkAlive(); }
  Result<void> load() override { return told(replayer->load()); }
  Result<void> replay(std::span<double> us) override {
    for (double &each : us) {
      const Clock::time_point start = Clock::now();
      MGPU_TRY(told(replayer->replay()));
      each = microsecondsSince(start);
    }
    return {};
  }
  Result<void> fetch() override {
    MGPU_TRY(told(replayer->fetch()));
    return mirror->meet(std::nullopt);
  }
  Result<std::vector<TimedReplay>> replayTimed() override {
    MGPU_TRY_ASSIGN(TimedReplay timed, told(replayer->replayTimed()));
    return std::vector<TimedReplay>{std::move(timed)};
  }
  Result<void> close() override {
    replayer.reset();
    driver.reset();
    return {};
  }

private:
  Result<void> build(std::span<const std::vector<std::byte>> kernels,
                     const RemotePart &part, const Open &open) {
    const HostLayout layout = hostLayout(dag);
    if (layout.bytes > 0) {
      MGPU_TRY_ASSIGN(host, SharedMemory::make(layout.bytes));
    }
    MGPU_TRY(writeConstants(dag, layout, host.bytes()));
    MGPU_TRY_ASSIGN(driver, open([this] { return others->watch(); }));
    text = driver->description();
    MGPU_TRY(driver->adoptHost(host.bytes(), /*isPinned=*/false));
    MGPU_TRY_ASSIGN(const auto led, makeGroups(dag, part.own, *driver));
    MGPU_TRY_ASSIGN(const std::vector<Bytes> told,
                    others->exchange(std::as_bytes(std::span(led))));
    MGPU_TRY(joinGroups(dag, told, part.rankOf, *driver));
    MGPU_TRY_ASSIGN(HostMirror made, HostMirror::create(dag, part.rankOf,
                                                        host.bytes(), *others));
    mirror.emplace(std::move(made));
    MGPU_TRY_ASSIGN(replayer, Replayer::create(dag, plan, kernels, *driver,
                                               {host.bytes(),
                                                [this](auto next) {
                                                  return mirror->meet(next);
                                                },
                                                /*hasOwnMemory=*/true}));
    return {};
  }

  /// Who waits for this rank learns why it does not come, and an error names a
  /// rank that stands still: NCCL knows of none.
  template <typename T>
  Result<T> told(Result<T> done) {
    if (!done)
      done.error() = others->giveUp(std::move(done.error()));
    return done;
  }

  const planner::Dag &dag;
  const planner::Plan &plan;
  device::MessageRendezvous *others = nullptr;
  SharedMemory host; ///< outlives the driver, which has pinned it
  std::unique_ptr<device::Driver> driver;
  std::optional<HostMirror> mirror;
  std::optional<Replayer> replayer; ///< goes before its driver
  std::deque<Bytes> made;           ///< by makeMemory()
  std::string text;                 ///< description()
};

} // namespace

Result<std::unique_ptr<Runner>>
runGpuWithOthers(const planner::Dag &dag, const planner::Plan &plan,
                 std::span<const std::vector<std::byte>> kernels,
                 RemotePart part,
                 const std::function<Result<std::unique_ptr<device::Driver>>(
                     std::function<Result<void>()> watch)> &open) {
  MGPU_TRY(checkAcrossRanks(dag));
  MGPU_TRY(checkAcrossProcesses(dag));
  auto here = std::make_unique<RemoteGpu>(dag, plan);
  MGPU_TRY(here->start(kernels, part, open));
  return runWithOthers(std::move(here), *part.others);
}

} // namespace mgpu::capture
