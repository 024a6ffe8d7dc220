// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_RANKSTEPS_H
#define MGPU_CAPTURE_RANKS_RANKSTEPS_H

// Steps that all ranks of a program do together. If one fails, dies or is late,
// the others give up, and there is one error: it says which rank failed, and
// which collective the others were in.

#include "capture/ranks/RankCrew.h"

#include <string>

namespace mgpu::capture {

struct RankLimits {
  /// For each replay, as the drivers have it; 0 means none.
  std::chrono::milliseconds deadline = std::chrono::minutes(2);
  /// How long the others may take to say what they were in.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  /// The number of this process, where it is one rank of several and errors
  /// call what is here by it.
  std::optional<uint32_t> process = {};
  /// For opening and connecting GPUs, which takes as long as it takes.
  std::chrono::milliseconds patience() const;
  /// For waiting until the others come to a step. It is longer than a replay's,
  /// so that the rank whose replay does not end is the one that says so.
  std::chrono::milliseconds meeting() const;
};

class RankSteps {
public:
  /// `names` are those of ranks, for errors: "cuda:0".
  RankSteps(size_t ranks, RankLimits limits, std::vector<std::string> names)
      : limits(limits), names(std::move(names)), answers(ranks),
        isWaiting(ranks) {}

  /// Waits until each rank has answered what `crew` asked it. `what` names the
  /// step in the error. A rank is given up if it gives no sign of life for
  /// `patience`.
  Result<void> gather(const char *what, std::chrono::milliseconds patience,
                      SharedControl &control, RankCrew &crew);
  /// Invalid once a step has failed: no further one is possible.
  Result<void> checkAlive() const;
  bool isLost() const { return !lost.empty(); }

private:
  tl::unexpected<Error> lose(const char *what);

  RankLimits limits;
  std::vector<std::string> names;
  // The state of the step, by rank. It is kept here so that a step without an
  // error allocates nothing.
  std::vector<RankAnswer> answers;
  std::vector<bool> isWaiting;
  std::string lost; ///< why no further step is possible
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_RANKSTEPS_H
