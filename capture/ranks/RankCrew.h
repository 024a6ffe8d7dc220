// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANKCREW_H
#define MGPU_CAPTURE_RANKS_RANKCREW_H

#include "capture/ranks/Rank.h"

namespace mgpu::capture {

/// The answer of a rank to a step.
struct RankAnswer {
  size_t rank = 0;
  Result<void> said;
  bool isDead = false; ///< it ended, and will answer nothing more
};

/// The processes or threads of all ranks.
class RankCrew {
public:
  virtual ~RankCrew() = default;
  /// Asks every rank for one step; the answers come by next().
  virtual void post(const RankRequest &request) = 0;
  /// The next answer, if there is one within so many seconds.
  virtual std::optional<RankAnswer> next(double seconds) = 0;
  /// Gives up a rank that does not answer any more. Says what was done to it.
  virtual std::string giveUp(size_t rank) = 0;
  /// Gives the ranks up and leaves the GPUs as they are.
  virtual void abandon() {}
  /// The bytes that a rank which answered without an error appended to its
  /// answer.
  virtual std::span<const std::byte> said(size_t rank) const = 0;
  virtual pid_t process(size_t rank) const = 0;
};

/// Forks a process for each rank.
Result<std::unique_ptr<RankCrew>>
startRankProcesses(std::shared_ptr<const RankJob> job);

/// Starts a thread for each rank. The threads end with the crew. It waits for
/// them no longer than `grace`: a thread inside a call that does not return is
/// left to itself, with all that it uses.
Result<std::unique_ptr<RankCrew>>
startRankThreads(std::shared_ptr<RankJob> job, std::chrono::milliseconds grace);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RANKCREW_H
