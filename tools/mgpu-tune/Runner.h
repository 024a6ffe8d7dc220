// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_RUNNER_H
#define MGPU_TOOLS_MGPU_TUNE_RUNNER_H

// What `run` and `replay` drive: one target, or several cards.

#include "capture/replay/Replayer.h"
#include "tools/mgpu-tune/CardWorkers.h"
#include "tools/mgpu-tune/Tuned.h"

namespace mgpu::tune {

class Runner {
public:
  virtual ~Runner() = default;
  virtual std::string description() const = 0;
  virtual std::span<std::byte> hostBuffer(planner::BufferId id) = 0;
  /// Memory as large as a host buffer, to be filled and given to bind().
  virtual Result<std::span<std::byte>> makeMemory(planner::BufferId id) = 0;
  /// From here on the buffer's bytes are those of `memory`.
  virtual Result<void> bind(planner::BufferId id,
                            std::span<std::byte> memory) = 0;
  virtual Result<void> load() = 0;
  /// The microseconds of each.
  virtual Result<std::vector<double>> replay(uint64_t count) = 0;
  virtual Result<void> fetch() = 0;
  /// By process.
  virtual Result<std::vector<capture::TimedReplay>> replayTimed() = 0;
  virtual Result<void> close() = 0;
};

/// What several cards take: "sm_90". Looked
/// up in a process of its own, because this one is to be forked. Errors: those
/// of the driver; Absent where NCCL is missing or the cards are of several
/// architectures; with a program, Unsupported as checkAcrossCards().
Result<std::string> architectureOf(const std::vector<int> &cards);
Result<std::string> architectureOf(const Program &program,
                                   const std::vector<int> &cards);

/// A process for each card, as --deadline and --nccl say. Usage for those.
/// `own` are a bundle's.
struct CardsToOpen {
  CardWorkers::Open open;
  CardWorkers::Options how;
};
Result<CardsToOpen> cardsToOpen(const std::vector<int> &cards,
                                const Options &options,
                                capture::OwnCubins own = {});

/// `program` and `prepared` must outlive it.
Result<std::unique_ptr<Runner>> openCards(const Program &program,
                                          const Prepared &prepared,
                                          const std::vector<int> &cards,
                                          const Options &options);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_RUNNER_H
