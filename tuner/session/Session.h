// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_SESSION_H
#define MGPU_TUNER_SESSION_SESSION_H

// The inside of tune() (TuningSession.h): what its stages share, each stage in
// a file of its own.

#include "support/Clock.h"
#include "tuner/record/Keys.h"
#include "tuner/record/MeasuredTimes.h"
#include "tuner/session/TuningSession.h"

namespace mgpu::tuner {

/// Configurations that race the default at the end.
inline constexpr size_t mostFinalists = 4;
/// Processes that the last stage starts: theirs, the default's, and the fresh
/// ones in which the last two meet.
inline constexpr size_t mostStarts = mostFinalists + 1 + 8;

/// A known configuration of the whole program.
struct Known {
  ProgramConfig config;
  double us = 0;
  std::optional<Fault> fault;
};

class Session {
public:
  Session(const TuningSubject &subject, const TuningOptions &options,
          db::TuningStore *store)
      : subject(subject), options(options), store(store) {}
  Result<TuningResult> run();

private:
  // TuningSession.cpp
  Result<void> begin();
  Result<void> loadTrials();
  void shareBudget();
  double elapsed() const { return secondsSince(started); }
  bool isStopped() const { return options.stop && options.stop->load(); }
  /// Cuts short what runs so many seconds after the session's beginning.
  void limitTo(double seconds);
  void say(Stage stage, std::string last);
  void noteFailure(const std::string &configuration, const Fault &fault);
  void noteBest(double us);
  db::Trial failedTrial(std::string configuration, const Fault &fault,
                        double seconds) const;
  db::Trial measuredTrial(std::string configuration, double us,
                          bench::Interval change, size_t samples,
                          double deviationUs, double seconds,
                          const Agreement &agreement = {}) const;
  Result<void> record(const db::TuningProblem &problem, const db::Trial &trial);
  std::string textOf(const ProgramConfig &config) const;
  KeyInput keys() const;

  // KernelStage.cpp
  struct KernelSearch;
  Result<void> kernelStage();
  Result<void> openKernelSearches(std::vector<KernelSearch> &searches,
                                  const std::vector<double> &baseTimes);
  Result<void> findPromising(KernelSearch &search);
  Result<void> noteNotBuilt(KernelSearch &search,
                            const kernels::KernelConfig &config,
                            const Fault &fault, double seconds);
  /// Times of the nodes of each kernel over those of the default.
  struct KernelRatios {
    std::vector<double> times; ///< by KernelId
    Agreement agreement;
  };
  Result<Outcome<KernelRatios>> measureKernels(const ProgramConfig &config,
                                               Candidate &base);
  /// `nodeTimes` are of the nodes of `dag`, the program or what transforms
  /// made of it.
  static double kernelSum(const planner::Dag &dag,
                          const std::vector<double> &nodeTimes,
                          uint32_t kernel);
  Result<void> tryKernels(std::vector<KernelSearch *> searches,
                          const std::vector<kernels::KernelConfig> &configs,
                          Candidate &base, double began);
  void keepBestKernels(std::vector<KernelSearch> &searches,
                       const std::vector<double> &baseTimes);

  // JointStage.cpp
  Result<void> jointStage();
  /// Measures a configuration unless an equal one was; none where it failed.
  Result<std::optional<double>> evaluate(const ProgramConfig &config);
  std::vector<ProgramConfig> firstConfigs(const ProgramSpace &space) const;
  /// For each list of transforms what is predicted to be the fastest plan, the
  /// fastest list first; without the list that is empty.
  Result<std::vector<ProgramConfig>> promisingConfigs();
  Result<NodeTimes> priorTimes();

  // FinalStage.cpp
  /// A configuration that may win, and its process.
  struct Finalist {
    ProgramConfig config;
    Realization realized;
    Candidate run;
  };
  Result<void> finalStage();
  std::vector<ProgramConfig> finalConfigs() const;
  Result<std::vector<Finalist>> openFinalists();
  /// Compares the two over fresh processes of each, and checks the winner on
  /// data it never saw; none if the winner failed, which is then recorded.
  Result<std::optional<bench::HeadToHead>>
  meetDefault(Finalist &winner, Finalist &defaults, double seconds);
  /// Whether time was up before a candidate was compared; and a sentence that
  /// says what budget would do.
  std::string moreBudget() const;
  double spentSeconds() const;
  /// Records that it failed.
  Result<void> drop(const ProgramConfig &config, const Fault &fault);
  /// Stores it, with `result.times`.
  Result<void> decide(Finalist &winner, Finalist &defaults);
  void noteDefaultAhead(const bench::RaceResult &race);
  void noteTimeUp();
  void noteNothingTried();
  Result<void> decideDefault(Finalist &defaults);
  void noteMeeting(const bench::HeadToHead &met, bool isFaster);
  Result<ProgramFacts> describe(const ProgramConfig &winner, Candidate &run,
                                Candidate &defaultRun);

  TuningSubject subject;
  const TuningOptions &options;
  db::TuningStore *store;

  Clock::time_point started;
  std::unique_ptr<Evaluator> evaluator;
  bench::Environment environment;
  db::TuningProblem programKey, decisionKey;
  std::vector<db::TuningProblem> kernelKeys;
  double referenceUs = 0; ///< the default, when it was first measured
  double spentBefore = 0; ///< seconds, since the last decision
  uint64_t evaluatedBefore = 0;
  std::optional<StoredDecision> earlier;
  // When the stages end, in seconds and evaluations of this session.
  double kernelsUntil = 0, jointUntil = 0, allUntil = 0;
  double builtSeconds = 0; ///< until the default was built and measured
  uint64_t kernelsMost = 0, allMost = 0;

  std::vector<TransformList> lists; ///< that the program can be given
  /// Variants of each kernel, the default first, then the best.
  std::vector<std::vector<kernels::KernelConfig>> chosen;
  std::vector<kernels::KernelConfig> bestAlone; ///< of each kernel by itself
  std::vector<double> bestRatio; ///< its time over the default's, by KernelId
  std::vector<double> nodeUs;    ///< the default's on one thread, by NodeId
  std::map<std::string, Known> known;  ///< by configuration text
  std::map<std::string, Known> equals; ///< by identity of the realization
  double bestUs = 0;
  bool exhaustedKernels = true, exhaustedJoint = true;
  TuningResult result;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_SESSION_H
