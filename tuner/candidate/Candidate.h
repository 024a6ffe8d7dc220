// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_CANDIDATE_H
#define MGPU_TUNER_CANDIDATE_CANDIDATE_H

// One way to run a program, in a process of its own. It is checked against the
// reference and then measured.

#include "bench/measure/Race.h"
#include "tuner/candidate/CandidateRun.h"

namespace mgpu::tuner {

/// A running candidate. One request at a time.
class Candidate {
public:
  /// `realization` and `data` are copied into the process and not kept.
  static Result<Candidate> start(const Realization &realization,
                                 const ProgramData &data,
                                 const CandidateOptions &options);

  /// Runs the three phases on the data of `seed`, all outputs poisoned before
  /// and guard zones around every buffer: first with each buffer in a place of
  /// its own, then with the plan's own layout. The outputs of both must agree
  /// with `expected`, as ProgramData::compare() says. Any kind of fault is
  /// possible; Refused if the candidate cannot be built.
  Outcome<Agreement> check(uint64_t seed, std::span<const std::byte> expected,
                           const Tolerances *tolerances = nullptr);
  /// The agreement of the check so far that was furthest off.
  const Agreement &agreement() const { return furthest; }
  /// The outputs, with which others are compared.
  Outcome<Bytes> outputs(uint64_t seed);
  /// One sample of the replay phase, warmed up before the first one.
  Outcome<bench::Sample> sample();
  /// Median microseconds of each node of the replay phase, by NodeId; 0 for
  /// nodes of other phases. It replays for about `seconds`, three times at
  /// least.
  Outcome<std::vector<double>> nodeTimes(double seconds);
  /// When each node ran, in plan order, in the replay of median length. It
  /// replays for about `seconds`, three times at least.
  Outcome<std::vector<capture::NodeSpan>> timeline(double seconds);

private:
  Candidate(std::optional<ChildProcess> process,
            const CandidateOptions &options, Asked together)
      : process(std::move(process)), together(std::move(together)),
        options(options) {}
  double within(double seconds) const { return atMost(options.limit, seconds); }
  Outcome<Bytes> askTimed(std::span<const std::byte> request, double seconds);
  Outcome<Bytes> askChecked(std::span<const std::byte> request);

  std::optional<ChildProcess> process; ///< none: CandidateOptions say so
  Asked together; ///< all processes that share the devices; null: `process`
  CandidateOptions options;
  Agreement furthest;
};

/// The outputs of each on the data of `seed`. All run in one process that has
/// options.secondsToPrepare for each. Errors: as Candidate::start.
Result<Outcome<std::vector<Bytes>>>
outputsOfEach(std::span<const Realization> realizations,
              const ProgramData &data, uint64_t seed,
              const CandidateOptions &options);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_CANDIDATE_H
