// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RUNNER_H
#define MGPU_CAPTURE_RANKS_RUNNER_H

#include "capture/replay/Replayer.h"
#include "support/Bytes.h"

namespace mgpu::capture {

/// A program that is ready to run, on one target or on several GPUs (Ranks).
class Runner {
public:
  virtual ~Runner() = default;
  virtual std::string description() const = 0;
  /// The buffer's bytes, as Replayer::hostBuffer() gives them, for as long as
  /// this lives.
  virtual std::span<std::byte> hostBuffer(planner::BufferId id) = 0;
  /// Where an argument or result is: a GPU's address of one on a GPU. Empty
  /// where another process has it.
  virtual Result<std::span<std::byte>> memory(planner::BufferId id) {
    return hostBuffer(id);
  }
  /// Copies all its bytes in or out; nothing where another process has it.
  virtual Result<void> write(planner::BufferId id,
                             std::span<const std::byte> bytes);
  virtual Result<void> read(planner::BufferId id, std::span<std::byte> bytes);
  /// Whether the host reaches the devices' memory.
  virtual bool isOnHost() const = 0;
  /// Memory as large as a host buffer, to be filled and given to bind().
  virtual Result<std::span<std::byte>> makeMemory(planner::BufferId id) = 0;
  /// From here on the buffers' bytes are those of this memory, of all or, where
  /// it does not fit, of none.
  virtual Result<void> bind(std::span<const Rebinding> moved) = 0;
  Result<void> bind(planner::BufferId id, std::span<std::byte> memory) {
    const Rebinding one[] = {{id, memory}};
    return bind(one);
  }
  /// They do what Replayer's do; elsewhere than on the host of one process
  /// lend() copies, and the others do nothing.
  virtual Result<void> lend(planner::BufferId id,
                            std::span<const std::byte> memory) {
    return write(id, memory);
  }
  virtual Result<void> makeOwn(planner::BufferId, bool /*exposes*/) {
    return {};
  }
  virtual Result<void> shareReads() { return {}; }
  /// An error once the target is lost, or what the program has on it: no other
  /// call may follow but description().
  virtual Result<void> checkAlive() const = 0;
  virtual Result<void> load() = 0;
  /// Replays once for each of `us`, and writes the microseconds it took.
  virtual Result<void> replay(std::span<double> us) = 0;
  Result<void> replay() {
    double us = 0;
    return replay({&us, 1});
  }
  /// Whether enqueue() takes the program.
  virtual bool canEnqueue() { return false; }
  /// Replays into a caller's stream, as Replayer::enqueue() and finish() do.
  /// Unsupported on several GPUs.
  virtual Result<void> enqueue(void *stream);
  virtual Result<void> captureInto(void *stream);
  virtual Result<void> finish() { return {}; }
  virtual Result<void> fetch() = 0;
  /// Tells `observer` of nodes, as Replayer::observe() does.
  virtual Result<void> observe(ReplayObserver *observer);
  /// Sets where each buffer lies, as Replayer::findPlaces() does; of one
  /// process on the host alone, else nothing.
  virtual void findPlaces(std::vector<std::byte *> &places);
  /// Hashes the outputs of the last replay, as Replayer::hashOutputs() does; of
  /// one process and its ranks.
  virtual Result<OutputHashes> hashOutputs();
  /// By process.
  virtual Result<std::vector<TimedReplay>> replayTimed() = 0;
  /// The clock of the last replayTimed(), as Driver::timedBy().
  virtual std::string timedBy() const = 0;
  /// Ends the drivers in order. No call may follow but description().
  virtual Result<void> close() = 0;
};

/// A timed replay as bytes, for another process.
void appendTimedReplay(Bytes &to, const TimedReplay &timed);
TimedReplay takeTimedReplay(std::span<const std::byte> bytes);

/// On one target. `dag` and `plan` must outlive it.
std::unique_ptr<Runner> runOnOneTarget(std::unique_ptr<device::Driver> driver,
                                       Replayer replayer,
                                       const planner::Dag &dag,
                                       const planner::Plan &plan);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RUNNER_H
