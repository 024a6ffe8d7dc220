// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_ARGUMENTS_H
#define MGPU_PIPELINE_PROGRAM_ARGUMENTS_H

// The values of --arg as arrays.

#include "pipeline/program/LoadedProgram.h"
#include "support/Array.h"

#include <functional>

namespace mgpu::pipeline {

struct ArgumentArray {
  const planner::ProgramArgument *argument;
  Array value;
};

/// The value `spec` of the argument that the user calls `key`.
Result<ArgumentArray>
loadArgumentArray(const planner::ProgramArgument &argument,
                  const std::string &key, const std::string &spec);

/// Whether this process takes a host buffer's value from its arguments; none:
/// each.
using IsNeeded = std::function<bool(planner::BufferId)>;

/// The arrays of program.from.arguments, loaded and of the right shape. An
/// argument that is read but has no value is a Usage error. With `makeUp` it
/// gets one: random numbers of [0, 1) for floats, zeros for integers, which may
/// be indices; `madeUpNames` gets the names of those, or stderr if it is null.
Result<std::vector<ArgumentArray>>
loadArguments(const LoadedProgram &program, bool makeUp = false,
              const IsNeeded &isNeeded = {},
              std::vector<std::string> *madeUpNames = nullptr);

// Rounds of `run` and `replay`: the same program, loaded once, replayed with
// the caller's further data in the place of the first. --arg K@2=V is the value
// of K from the second round on, --out K@2=FILE what it is after it.

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

#endif // MGPU_PIPELINE_PROGRAM_ARGUMENTS_H
