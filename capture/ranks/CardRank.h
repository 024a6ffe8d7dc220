// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_CARDRANK_H
#define MGPU_CAPTURE_RANKS_CARDRANK_H

// One card's part of a program on several, in a process or a thread of its own.

#include "capture/ranks/CardMemory.h"
#include "capture/replay/Replayer.h"

#include <chrono>

namespace mgpu::capture {

class CardRank {
public:
  /// Opens the driver of one rank; `watch` goes into its options.
  using Open = std::function<Result<std::unique_ptr<device::Driver>>(
      uint32_t rank, std::function<Result<void>()> watch)>;

  /// What all ranks are given; outlives them.
  struct Job {
    const planner::Dag &dag;
    const planner::Plan &plan;
    const std::vector<std::vector<std::byte>> &kernels;
    Open open;
    std::chrono::milliseconds deadline; ///< of waiting for the others
    /// Of one process: the first of them pins host buffers for all.
    bool areThreads = false;
  };
  CardRank(uint32_t rank, const Job &job, const CardMemory &memory);

  /// Opens the card. Gives the ids of the groups that this rank is the first
  /// of, in their order.
  Result<std::vector<device::GroupId>> open();
  /// `led` is what open() gave, by rank. Joins the others and builds.
  Result<void> build(const std::vector<std::vector<device::GroupId>> &led);
  /// The largest of what the ranks say; each calls it as often as the others.
  Result<double> largest(double mine);
  /// Ends the driver in order. Threads meet before: then nothing uses the host
  /// buffers any more.
  Result<void> close();

  /// After build().
  Replayer &replayer() { return *theReplayer; }
  device::Driver &target() { return *driver; }
  std::string description() const { return driver->description(); }
  bool isLost() const { return driver && !driver->checkAlive(); }
  /// What of the card is left then stays as it is.
  void abandon(const std::string &reason);

private:
  Result<void> meet();

  const uint32_t rank;
  const Job &job;
  SharedControl &control;
  const std::span<std::byte> hostMemory;
  const std::vector<std::vector<DeviceId>> members;
  std::unique_ptr<device::Driver> driver;
  std::optional<Replayer> theReplayer; ///< goes before its driver
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_CARDRANK_H
