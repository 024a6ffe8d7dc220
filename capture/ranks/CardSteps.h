// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_CARDSTEPS_H
#define MGPU_CAPTURE_RANKS_CARDSTEPS_H

// Steps that all ranks of a program on several cards do together: where one
// fails, ends or is late, the others give up, and there is one error that says
// which, and which collective the others were in.

#include "capture/ranks/SharedControl.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::capture {

struct CardLimits {
  /// Of each replay, as the drivers have it; 0: none.
  std::chrono::milliseconds deadline = std::chrono::minutes(2);
  /// How long the others may take to say what they were in.
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  /// Of opening and connecting cards, which takes as long as it takes.
  std::chrono::milliseconds patience() const;
  /// Of waiting for the others to come to a step: longer than a replay's, so
  /// that a rank in a replay that does not end is the one that says so.
  std::chrono::milliseconds meeting() const;
};

/// What a rank has to say of a step.
struct CardAnswer {
  size_t rank = 0;
  Result<void> said;
  bool isDead = false; ///< it ended, and will answer nothing more
};

class CardSteps {
public:
  /// `names` are those of ranks, for errors: "cuda:0".
  CardSteps(size_t ranks, CardLimits limits, std::vector<std::string> names)
      : limits(limits), names(std::move(names)), answers(ranks),
        isWaiting(ranks) {}

  /// The next answer, where there is one within so many seconds.
  using Next = std::function<std::optional<CardAnswer>(double seconds)>;
  /// Does away with a rank that answers no more; says how.
  using End = std::function<std::string(size_t rank)>;

  /// Waits until each rank has answered what it was asked; `what` is for the
  /// error. `patience` is for a rank that gives no sign of life.
  Result<void> gather(const char *what, std::chrono::milliseconds patience,
                      SharedControl &control, const Next &next, const End &end);
  /// Invalid once a step has failed: no further one is possible.
  Result<void> checkAlive() const;
  bool isLost() const { return !lost.empty(); }
  size_t size() const { return answers.size(); }

private:
  tl::unexpected<Error> lose(const char *what);

  CardLimits limits;
  std::vector<std::string> names;
  // Of the step, by rank; here, so that a step that goes well allocates
  // nothing.
  std::vector<CardAnswer> answers;
  std::vector<bool> isWaiting;
  std::string lost; ///< why no further step is possible
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_CARDSTEPS_H
