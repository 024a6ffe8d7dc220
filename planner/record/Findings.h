// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_FINDINGS_H
#define MGPU_PLANNER_RECORD_FINDINGS_H

// The recorder's findings about a program, and their places in the user's
// source. A place is a text; nothing here reads that text.

#include "planner/dag/Dag.h"
#include "support/Result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mgpu::planner {

/// The number of a place that Findings::place() was given. 0 is not a place.
struct Place {
  uint32_t value = 0;
};

/// One error or warning.
struct Finding {
  struct Note {
    std::string text;
    Place place;
  };
  bool isError = true;
  ErrorKind kind = ErrorKind::Invalid; ///< when it is an error
  Place place;
  std::string text;
  /// `text` begins with a verb; its subject is the call at `place`.
  bool isAboutCall = false;
  std::vector<Note> notes;
};

/// Numbers places and passes findings on.
class Findings {
public:
  using Sink = std::function<void(const Finding &)>;
  /// `sink`, if any, hears of every error and warning when it is found.
  explicit Findings(Sink sink) : sink(std::move(sink)) {}

  /// A new place for `text`, such as "model.py:12:3". A client that has many
  /// calls at one place asks once.
  Place place(std::string text, std::optional<PipelinePart> part);
  const std::string &textOf(Place place) const {
    return places[place.value].text;
  }
  /// The part of a pipeline to which calls at the place belong.
  std::optional<PipelinePart> partOf(Place place) const {
    return places[place.value].part;
  }

  /// Reports the finding; the result is its error, which names all places.
  tl::unexpected<Error> error(Finding finding);
  /// Reports an error about the call at `place`.
  tl::unexpected<Error> callError(Place place, std::string text,
                                  ErrorKind kind = ErrorKind::Invalid);
  void warn(Finding finding);
  /// The error that stands for `finding`, which goes unreported.
  tl::unexpected<Error> asError(const Finding &finding) const;

private:
  Sink sink;
  struct Where {
    std::string text;
    std::optional<PipelinePart> part;
  };
  std::vector<Where> places = std::vector<Where>(1);
};

/// Makes `result` the failure `next`, unless it is one already.
inline void keepFirst(Result<void> &result, Result<void> next) {
  if (result && !next)
    result = std::move(next);
}

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_FINDINGS_H
