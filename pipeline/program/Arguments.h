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

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_ARGUMENTS_H
