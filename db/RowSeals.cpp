// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/RowSeals.h"

namespace mgpu::db {

RowId idOf(const TuningProblem &problem) {
  return Seal("problem").add(problem.text()).value();
}

RowId idOf(const Provenance &origin) {
  return Seal("origin")
      .add(origin.version)
      .add(origin.host)
      .add(origin.environment)
      .value();
}

int64_t sealOfProblem(RowId id, const TuningProblem &problem) {
  return Seal("problems")
      .add(id)
      .add(problem.familyKey())
      .add(problem.settingKey())
      .add(problem.text())
      .value();
}

int64_t sealOfConfiguration(RowId id, RowId problem, RowId failure,
                            const std::string &text) {
  return Seal("configurations")
      .add(id)
      .add(problem)
      .add(failure)
      .add(text)
      .value();
}

int64_t sealOfOrigin(RowId id, const Provenance &origin) {
  return Seal("origins")
      .add(id)
      .add(origin.version)
      .add(origin.host)
      .add(origin.environment)
      .value();
}

int64_t sealOfTrial(RowId problem, RowId origin, const TrialRow &row) {
  const Trial &trial = row.trial;
  return Seal("trials")
      .add(row.id)
      .add(problem)
      .add(row.configuration)
      .add(origin)
      .add(trial.configuration)
      .add(trial.provenance.timeMs)
      .add(int64_t(trial.status))
      .add(trial.medianUs)
      .add(trial.meanUs)
      .add(trial.spreadUs)
      .add(trial.lowUs)
      .add(trial.highUs)
      .add(int64_t(trial.samples))
      .add(trial.seconds)
      .add(trial.sentence)
      .value();
}

int64_t sealOfWinner(RowId problem, const Winner &winner) {
  return Seal("winners")
      .add(problem)
      .add(winner.row.id)
      .add(int64_t(winner.measured))
      .add(winner.sumUs)
      .add(winner.maxUs)
      .value();
}

} // namespace mgpu::db
