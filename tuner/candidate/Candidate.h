// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_CANDIDATE_H
#define MGPU_TUNER_CANDIDATE_CANDIDATE_H

// One way to run a program, in a process of its own. It is checked against the
// reference and then measured.

#include "bench/measure/Environment.h"
#include "bench/measure/Race.h"
#include "bench/measure/Sampler.h"
#include "bench/profile/Profile.h"
#include "capture/replay/Replayer.h"
#include "device/api/GraphDriver.h"
#include "planner/plan/Plan.h"
#include "support/ChildProcess.h"
#include "support/Clock.h"
#include "tuner/candidate/Guards.h"
#include "tuner/candidate/ProgramData.h"
#include "tuner/record/Keys.h"

#include <memory>
#include <optional>

namespace mgpu::tuner {

// A candidate as the process has it that runs it: what it does when it is
// asked. That is a process of its own, or each of several that share the
// program's devices and are asked the same.

/// All that is needed to run a program in one particular way.
struct Realization {
  /// With the launch shapes of this candidate.
  std::shared_ptr<const planner::Dag> dag;
  planner::Plan plan;
  std::vector<KernelObject> kernels; ///< by KernelId
  uint32_t threads = 0; ///< threads that replay; 0: as many as useful
  /// ProgramConfig::settings.
  std::map<std::string, std::string> settings = {};
};

/// Answers what Candidate asks.
using Asked = std::function<Outcome<Bytes>(std::span<const std::byte> request)>;
/// Gives what asks all processes at once that share the program's devices.
using AskTogether = std::function<Asked(const Realization &realization)>;

struct CandidateOptions {
  device::DriverFactory openDriver; ///< called in the candidate's process
  bench::SamplingOptions sampling;
  ChildLimits limits;
  /// The candidate's threads are pinned to these while it is measured, unless
  /// there are too few (bench::cpusInOrder()).
  std::vector<int> cpus;
  double secondsToPrepare = 10; ///< deadline of a check, beside the reference's
  double secondsPerSample = 5;
  /// No question waits for its answer beyond it. Null: none is cut short.
  const TimeLimit *limit = nullptr;
  /// Measures; checks are the candidate's own process'. Null: that does both.
  AskTogether together = nullptr;
  bool checksTogether = false; ///< and there is no such process
};

enum class Command : uint8_t { Check, Outputs, Sample, NodeTimes, Timeline };
Bytes requestOf(Command command, uint64_t number,
                std::span<const std::byte> body = {});

/// So much of a request says what to do, without what is expected.
inline constexpr size_t requestHeadBytes = sizeof(Command) + sizeof(uint64_t);
/// `body` is Command::Check's: what is expected, then tolerances where there
/// are such.
Outcome<Agreement> compareWith(std::span<const std::byte> body,
                               std::span<const std::byte> found,
                               const ProgramData &data);
/// Encodes the answer to NodeTimes and Timeline.
Bytes nodeTimesOf(const planner::Dag &dag,
                  std::span<const bench::Spans> replays);
Bytes timelineOf(std::vector<bench::Spans> replays);

class CandidateRun {
public:
  /// `data` and `options` are referred to.
  CandidateRun(Realization realization, const ProgramData &data,
               const CandidateOptions &options);

  Outcome<Bytes> answer(std::span<const std::byte> request);
  /// Opens what is measured, unless it is open.
  Outcome<void> openTimed();

private:
  /// A replayer and the guarded memory it runs in.
  struct Guarded {
    std::unique_ptr<GuardedDriver> driver;
    planner::Plan plan;
    std::optional<capture::Replayer> replayer;
  };

  std::vector<int> cpus() const;
  Outcome<void> open(Guarded &into, planner::Plan plan);
  Outcome<Bytes> run(Guarded &guarded, uint64_t seed);
  void pin();
  Outcome<Bytes> check(uint64_t seed, std::span<const std::byte> body);
  Outcome<Bytes> outputs(uint64_t seed);
  Result<void> prepare();
  Outcome<Bytes> sample();
  Outcome<std::vector<bench::Spans>> timedReplays(double seconds);
  Outcome<Bytes> nodeTimes(double seconds);
  Outcome<Bytes> timeline(double seconds);

  Realization realization; ///< with the memory that its kernels need
  const ProgramData &data;
  const CandidateOptions &options;
  Guarded timed;
  std::optional<bench::Sampler> sampler;
  std::optional<bench::PinnedThread> pinned;
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
