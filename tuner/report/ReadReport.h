// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_REPORT_READREPORT_H
#define MGPU_TUNER_REPORT_READREPORT_H

#include "db/TuningStore.h"
#include "tuner/report/Report.h"

namespace mgpu::tuner {

/// A program that was tuned, decided upon or not, or profiled.
struct TunedProgram {
  db::TuningProblem problem;
  std::string name;   ///< its file's name, where that is known
  std::string entry;  ///< likewise
  int64_t timeMs = 0; ///< when something was stored last
  /// The decision that `run` uses, and its configuration.
  std::optional<DecidedTimes> times;
  std::string configuration;
};
/// The latest first.
Result<std::vector<TunedProgram>> tunedPrograms(db::TuningStore &store);

/// `known` is what the program itself says, where it is at hand: used where the
/// database does not say it.
Result<Report> readReport(db::TuningStore &store,
                          const db::TuningProblem &program,
                          const std::optional<ProgramFacts> &known = {});

} // namespace mgpu::tuner

#endif // MGPU_TUNER_REPORT_READREPORT_H
