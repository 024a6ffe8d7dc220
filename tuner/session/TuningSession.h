// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_TUNINGSESSION_H
#define MGPU_TUNER_SESSION_TUNINGSESSION_H

// Searches for the fastest way to run a program, in three stages:
// - kernels: every kernel by itself, by the time of its nodes; each candidate
//   tries a configuration of every kernel at once;
// - joint: the program's transforms, the plan and the best few configurations
//   of the kernels together, by the time of the whole program;
// - final: the best of those, what was stored before and the default race each
//   other, and the winner meets the default in fresh processes of both, on
// samples of its own. A configuration that is not surely faster than the
// default loses to it. Every result is stored when it is there; a session goes
// on where another one ended, however it ended.

#include "bench/measure/Environment.h"
#include "db/TuningStore.h"
#include "support/Clock.h"
#include "support/Units.h"
#include "tuner/candidate/Evaluator.h"
#include "tuner/record/Keys.h"
#include "tuner/record/MeasuredTimes.h"
#include "tuner/record/ProgramFacts.h"

#include <atomic>

namespace mgpu::tuner {

enum class Stage : uint8_t { Start, Kernels, Joint, Final };
std::string_view toString(Stage stage);

struct Progress {
  Stage stage = Stage::Start;
  uint64_t evaluated = 0, failed = 0;
  double seconds = 0, secondsLeft = 0; ///< infinite with a budget of N
  uint64_t evaluationsLeft = 0;
  double defaultUs = 0;
  double bestUs = 0; ///< so far, of the whole program; 0: not measured yet
  std::string last;  ///< the latest candidate and what came of it
};

struct TuningOptions {
  SearchBudget budget;
  /// Seconds that the user gave, where `budget` is what earlier decisions left
  /// of them.
  std::optional<double> asked = {};
  /// Where the budget's wall time began; none: with the session.
  std::optional<Clock::time_point> started = {};
  std::string strategy = "surrogate";
  uint64_t seed = 1;
  EvaluatorOptions evaluation;
  /// For the last comparison of winner and default.
  bench::ComparisonOptions comparison;
  std::string version;  ///< of mgpu, for the keys
  uint32_t devices = 1; ///< of the target, for the keys
  SubjectName name;     ///< of the program, for reports
  std::function<void(const Progress &)> progress;
  /// Set by another (a signal handler): end the search, keep everything.
  const std::atomic<bool> *stop = nullptr;
};

struct FailedCandidate {
  std::string configuration;
  Fault fault;
};

struct TuningResult {
  ProgramConfig config; ///< to use from now on
  bool isDefault = true;
  bool fromStore = false;   ///< it is what an earlier session decided
  bool interrupted = false; ///< before the budget was used up
  bool exhausted = false;   ///< there was nothing left to try
  DecidedTimes times;       ///< what the last meeting measured, as it is stored
  Agreement agreement;      ///< how `config` agrees with the reference
  /// Why results that a tolerance might have taken were not; else empty.
  std::string onlyBits;
  uint64_t evaluated = 0, resumed = 0, compiled = 0;
  std::vector<FailedCandidate> failed;
  double seconds = 0;
  double spaceSize = 0; ///< legal points: product over kernels and plans
  /// Its parts: each kernel by itself ("kernel NAME"), then "program", the plan
  /// with the kernels' best few.
  struct Part {
    std::string name;
    double points = 0;
    uint64_t tried = 0; ///< points tried, also in earlier sessions
    std::vector<SpaceParameter> parameters;
  };
  std::vector<Part> parts;
  size_t numTransformLists = 1; ///< programs that transforms make, in those
  std::string pinnedCpus;       ///< where candidates were measured
  /// Best time of the whole program after each evaluation that improved it.
  struct Step {
    double seconds;
    uint64_t evaluation;
    double bestUs;
  };
  std::vector<Step> history;
};

/// `store` may be null: then nothing is remembered.
Result<TuningResult> tune(const TuningSubject &subject,
                          const TuningOptions &options, db::TuningStore *store);

/// An earlier session's decision, where `store` has exactly this problem.
struct StoredDecision {
  ProgramConfig config;
  DecidedTimes times;
  double seconds = 0; ///< spent on it, over all sessions
  uint64_t evaluations = 0;
  bool complete = false, exhausted = false;
  Agreement agreement; ///< with the reference
};
Result<std::optional<StoredDecision>>
findDecision(const KeyInput &keys,
             std::span<const kernels::KernelSpace> kernels,
             std::span<const TargetSetting> settings, db::TuningStore &store);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_TUNINGSESSION_H
