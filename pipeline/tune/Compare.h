// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TUNE_COMPARE_H
#define MGPU_PIPELINE_TUNE_COMPARE_H

// The step of `compare`: two ways to run a program, measured by turns in
// processes of their own.

#include "bench/measure/FreshProcesses.h"
#include "pipeline/build/Prepare.h"
#include "support/Units.h"

namespace mgpu::pipeline {

/// How `tune`, `compare` and `profile` measure.
struct MeasureOptions {
  bool coldCaches = false;
  bool pinThreads = true;
};

/// Each is "default", "serial", "tuned", a database or a plan.
struct WaysToCompare : MeasureOptions {
  std::string a, b;
};

/// Two ways to run the program, measured against each other.
struct Encounter {
  std::unique_ptr<tuner::Evaluator> evaluator;
  std::vector<std::string> warnings; ///< about the machine
  std::vector<tuner::Candidate> sides;
  bench::HeadToHead met;
};

/// Whether it names a plan, and not a way of its own ("default") or a database.
bool isPlanFile(const std::string &word);

/// Measures until `budget` is spent or the verdict is sure. Errors: Usage for a
/// word that means nothing, or a database without this program; Invalid for a
/// way that cannot run or gives other results.
Result<Encounter> compareWays(const LoadedProgram &program,
                              const TuneContext &context,
                              const tuner::TuningSubject &subject,
                              const WaysToCompare &options,
                              const SearchBudget &budget);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_COMPARE_H
