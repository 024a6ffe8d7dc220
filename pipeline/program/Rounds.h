// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_ROUNDS_H
#define MGPU_PIPELINE_PROGRAM_ROUNDS_H

// Rounds of `run` and `replay`: the same program, loaded once, replayed with
// the caller's further data in the place of the first. --arg K@2=V is the value
// of K from the second round on, --out K@2=FILE what it is after it.

#include "pipeline/program/Arguments.h"

namespace mgpu::pipeline {

using Pairs = std::map<std::string, std::string>;

/// The values and files of a round after the first, by argument.
struct Round {
  Pairs arguments, outputs;
};

/// Moves what is of a later round out of --arg and --out, round 2 first. Usage
/// where a round in between has nothing.
Result<std::vector<Round>> takeRounds(Pairs &arguments, Pairs &outputs);

/// The arrays of a round. Usage for an argument that is part of the program as
/// it is loaded: a scalar that was specialised, or a resident one.
Result<std::vector<ArgumentArray>> loadRound(const LoadedProgram &program,
                                             const Round &round,
                                             const IsNeeded &isNeeded = {});

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_ROUNDS_H
