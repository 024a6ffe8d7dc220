// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_EVALUATOR_H
#define MGPU_TUNER_CANDIDATE_EVALUATOR_H

// Turns a configuration into a running, checked candidate, whose time can be
// measured. It keeps the reference and the default configuration running.

#include "kernels/space/KernelSpace.h"
#include "support/ChildProcess.h"
#include "support/Clock.h"
#include "tuner/candidate/Candidate.h"
#include "tuner/record/Keys.h"
#include "tuner/space/ProgramSpace.h"

#include <map>
#include <memory>
#include <set>

namespace mgpu::tuner {

// Compiles kernels in several processes at once, and keeps what it
// compiled. A crash or hang of the compiler costs only the configuration it was
// given.

/// Builds kernel `kernel` (by KernelId) in one way. Called in another process.
/// The target decides what `variant` means (TuningSubject::variantOf).
using BuildKernel = std::function<Result<Bytes>(
    uint32_t kernel, const kernels::KernelConfig &, uint32_t variant)>;

class CompilePool {
public:
  struct Job {
    uint32_t kernel;
    kernels::KernelConfig config;
    uint32_t variant = 0;
    auto operator<=>(const Job &) const = default;
  };

  /// Starts the processes; call it before this process has threads.
  static Result<CompilePool> start(BuildKernel build, uint32_t numProcesses,
                                   double secondsPerKernel = 30);
  /// Results in the order of the jobs. An Error is of the machine (no process
  /// could be started), a Fault of the job.
  Result<std::vector<Outcome<KernelObject>>> build(std::span<const Job> jobs);
  /// An object that was built elsewhere.
  void add(const Job &job, KernelObject object) {
    known.emplace(job, std::move(object));
  }
  uint64_t numCompiled() const { return compiled; }
  /// Compilations are cut short by it, with a Fault that is not kept. Null: by
  /// none.
  void setLimit(const TimeLimit *until) { limit = until; }

private:
  CompilePool(BuildKernel build, double seconds)
      : buildKernel(std::move(build)), secondsPerKernel(seconds) {}
  Result<ChildProcess> startProcess() const;

  BuildKernel buildKernel;
  double secondsPerKernel;
  std::vector<ChildProcess> processes;
  std::map<Job, Outcome<KernelObject>> known;
  uint64_t compiled = 0;
  const TimeLimit *limit = nullptr;
};

/// How a program is computed in f64, with the size of its errors
/// (kernels/host/ErrorBounds.h), on the host.
struct Accuracy {
  /// Builds kernel `kernel` (by KernelId). Called in a worker.
  std::function<Result<Bytes>(uint32_t kernel)> build;
  device::DriverFactory openHost;
};

/// A program under tuning. Everything it refers to outlives the session.
struct TuningSubject {
  const planner::Dag &dag;
  const ProgramData &data;
  std::span<const kernels::KernelSpace> kernels; ///< by KernelId
  BuildKernel build;
  device::DriverFactory openDriver;
  uint32_t mostThreads = 1;
  uint32_t defaultThreads = UINT32_MAX; ///< as SpaceLimits
  /// The kernels as built by default, by KernelId, where they are at hand.
  std::vector<KernelObject> compiled = {};
  uint32_t mostStreams = 8; ///< of each device
  std::vector<TargetSetting> settings = {};
  std::optional<TargetIdentity> target = {};         ///< none: the host
  planner::Machine machine = planner::hostMachine(); ///< plans are made for it
  /// Whose limits launches must meet; null where there are none, or not known.
  const device::DeviceProfile *gpu = nullptr;
  /// Without it candidates must give the bits of the reference.
  std::optional<Accuracy> accuracy = {};
  /// Which kernels `build` is asked for because of the settings that are not at
  /// their default: 0 where none of them is the kernels'. Null: never.
  std::function<uint32_t(const std::map<std::string, std::string> &)>
      variantOf = {};
  /// Microseconds that a launch of a kernel is predicted to take in each of
  /// the configurations; empty where that is not known. Null: never.
  std::function<Result<std::vector<double>>(
      uint32_t kernel, std::span<const kernels::KernelConfig> configs)>
      predict = {};
  // Where several processes share the devices:
  std::string ranks = {};         ///< as KeyInput
  AskTogether together = nullptr; ///< they measure
  bool checksTogether = false;    ///< as CandidateOptions
  /// An error once one of them is lost: nothing more is known of a candidate.
  std::function<Result<void>()> checkWhole = nullptr;

  SpaceLimits limits() const {
    return {mostThreads, mostStreams, defaultThreads};
  }
};

struct EvaluatorOptions {
  bench::CacheMode cache = bench::CacheMode::Hot;
  uint32_t compilers = 1;   ///< processes that compile at once
  uint64_t freshSeed = 1;   ///< for the data made for checks
  uint64_t memoryBytes = 0; ///< a candidate may have; 0: no limit
  bool pinThreads = true;   ///< candidates', while they are measured
};

/// The configuration used where nothing was tuned: `run` without a database.
ProgramConfig defaultConfig(const planner::Dag &dag,
                            std::span<const kernels::KernelSpace> kernels,
                            const SpaceLimits &limits);

class Evaluator {
public:
  /// Compiles the default kernels, runs the reference (a serial plan of them)
  /// and the default, and checks one against the other. Errors: what the
  /// program itself does wrong, or the machine.
  static Result<std::unique_ptr<Evaluator>>
  create(const TuningSubject &subject, const EvaluatorOptions &options);

  const ProgramConfig &defaults() const { return defaultChoice; }
  /// Which variant of its kernels a configuration takes.
  uint32_t variantOf(const ProgramConfig &config) const {
    return about.variantOf ? about.variantOf(config.settings) : 0;
  }
  std::span<const KernelObject> defaultObjects() const { return objects; }
  Candidate &defaultCandidate() { return *defaultRun; }
  /// From here on whatever is asked or compiled is cut short at `until`; a
  /// fault found then is not the candidate's.
  void limitTo(Clock::time_point until) { limit.until = until; }
  const TimeLimit &timeLimit() const { return limit; }
  bool isTimeUp() const { return limit.isOver(); }
  /// Seconds that starting and checking the default took.
  double secondsToAdmit() const { return admitSeconds; }
  const TuningSubject &subject() const { return about; }
  /// All candidates are pinned to these, so that they share what the machine is
  /// like; empty if they are not pinned.
  const std::vector<int> &cpus() const { return candidateOptions.cpus; }
  CompilePool &compilers() { return *pool; }
  /// Why candidates had to give the reference's bits though some gave others;
  /// empty if they had not to.
  const std::string &whyOnlyBits() const { return noTolerance; }

  /// The program after transforms. Invalid as transformed().
  Result<std::shared_ptr<const planner::Dag>>
  programAfter(const TransformList &transforms);
  /// Program, plan and kernels of a configuration.
  Result<Outcome<Realization>> realize(const ProgramConfig &config);
  /// Describes a realization as text: equal texts, equal behaviour.
  static std::string identity(const Realization &realization,
                              const ProgramConfig &config);
  /// Starts it and checks it: on the data as given, and on fresh data.
  Result<Outcome<Candidate>> admit(const Realization &realization);
  /// Another process of what was admitted before; it is not checked again.
  Result<Candidate> startAgain(const Realization &realization) {
    return Candidate::start(realization, about.data, candidateOptions);
  }
  /// Another check, on data never used before.
  Result<Outcome<void>> checkFresh(Candidate &candidate);

private:
  Evaluator(const TuningSubject &subject, const EvaluatorOptions &options)
      : about(subject), options(options) {}
  Result<void> open();
  Result<Outcome<void>> check(Candidate &candidate, uint64_t seed);
  /// Null where there are none: whyOnlyBits() says why.
  Result<const Tolerances *> tolerancesOf(uint64_t seed, const Bytes &outputs);
  /// Fills `wide`; false where that cannot be.
  Result<bool> realizeWide();

  TuningSubject about;
  EvaluatorOptions options;
  CandidateOptions candidateOptions;
  ProgramConfig defaultChoice;
  std::optional<CompilePool> pool;
  std::vector<KernelObject> objects;
  std::shared_ptr<const planner::Dag> original;
  /// The program after the transforms asked for last; each is as large as it.
  TransformList lastTransforms;
  std::shared_ptr<const planner::Dag> lastProgram;
  std::optional<Candidate> reference, defaultRun;
  std::map<uint64_t, Bytes> expected; ///< outputs, by seed
  /// The program in f64, then in each trial (kernels/space/ErrorSeeds.h).
  std::vector<Realization> wide;
  std::map<uint64_t, Tolerances> tolerances; ///< by seed
  std::string noTolerance;                   ///< why there is none
  uint64_t numAdmitted = 0, numFresh = 0;
  TimeLimit limit;
  double admitSeconds = 0;
};

/// A candidate as the subject of a measurement. Its fault, if it has one, is
/// left in `fault`, and the error given is only a sign of it.
bench::Subject subjectOf(Candidate &candidate, std::optional<Fault> &fault);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_EVALUATOR_H
