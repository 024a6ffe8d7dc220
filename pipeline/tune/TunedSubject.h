// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TUNE_TUNEDSUBJECT_H
#define MGPU_PIPELINE_TUNE_TUNEDSUBJECT_H

// The step of `report`: which tuned program it is of.

#include "pipeline/program/LoadedProgram.h"
#include "tuner/report/ReadReport.h"

namespace mgpu::pipeline {

/// The one to report on: of `program`, where it is not null, by its structure
/// and sizes; whose key begins with `key`; of several the latest, which is said
/// on stderr. `path` is the database's. Errors: Invalid where there is none,
/// Usage for a key that is not of one.
Result<tuner::TunedProgram>
chooseTuned(std::vector<tuner::TunedProgram> programs,
            const LoadedProgram *program, const std::string &key,
            const std::string &path);

/// The facts of a program without measurements, for a session that never came
/// to its end; its timeline is predicted.
Result<tuner::ProgramFacts> predictedFacts(const LoadedProgram &program);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_TUNEDSUBJECT_H
