// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_CANDIDATE_H
#define MGPU_TUNER_CANDIDATE_CANDIDATE_H

// A way to run a program, in a process of its own: checked against the
// reference, then measured.

#include "bench/measure/Pinning.h"
#include "bench/measure/Race.h"
#include "device/api/DriverFactory.h"
#include "planner/plan/Plan.h"
#include "support/ChildProcess.h"
#include "tuner/candidate/ProgramData.h"
#include "tuner/record/Keys.h"

#include <memory>
#include <optional>

namespace mgpu::tuner {

/// All that is needed to run a program in one particular way.
struct Realization {
  /// With the shapes of launches as this candidate has them.
  std::shared_ptr<const planner::Dag> dag;
  planner::Plan plan;
  std::vector<KernelObject> kernels; ///< by KernelId
  uint32_t lanes = 0; ///< threads that replay; 0: as many as useful
};

struct CandidateOptions {
  device::DriverFactory openDriver; ///< called in the candidate's process
  bench::SamplingOptions sampling;
  ChildLimits limits;
  /// Of a candidate's threads, as many as it has, while it is measured
  /// (bench::cpusInOrder()); it is not pinned where there are too few.
  std::vector<int> cpus;
  double secondsToPrepare = 10; ///< deadline of a check, beside the reference's
  double secondsPerSample = 5;
};

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
  /// with `expected`, as ProgramData::compare() says. Kinds: all but Refused;
  /// that where it cannot be built.
  Outcome<Agreement> check(uint64_t seed, std::span<const std::byte> expected,
                           const Tolerances *tolerances = nullptr);
  /// Of the checks so far, the one that was furthest off.
  const Agreement &agreement() const { return furthest; }
  /// What the outputs are: of the reference.
  Outcome<Bytes> outputs(uint64_t seed);
  /// One sample of the replay phase, warmed up before the first one.
  Outcome<bench::Sample> sample();
  /// Median microseconds of each node of the replay phase, by NodeId; 0 for
  /// nodes of other phases. Of replays for about `seconds`, three at least.
  Outcome<std::vector<double>> nodeTimes(double seconds);
  /// When each node of a replay ran, in plan order: of replays for about
  /// `seconds`, three at least, the one of median length.
  Outcome<std::vector<capture::NodeSpan>> timeline(double seconds);

private:
  explicit Candidate(ChildProcess process, const CandidateOptions &options)
      : process(std::move(process)), options(options) {}

  ChildProcess process;
  CandidateOptions options;
  Agreement furthest;
};

/// What the outputs of each are on the data of `seed`, all run in one process
/// that has options.secondsToPrepare for each. Errors: as of Candidate::start.
Result<Outcome<std::vector<Bytes>>>
outputsOfEach(std::span<const Realization> realizations,
              const ProgramData &data, uint64_t seed,
              const CandidateOptions &options);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_CANDIDATE_H
