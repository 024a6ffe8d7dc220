// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_ROUNDS_H
#define MGPU_TOOLS_MGPU_TUNE_ROUNDS_H

// Rounds of `run` and `replay`: the same program, loaded once, replayed with
// the caller's further data in the place of the first. --arg K@2=V is the value
// of K from the second round on, --out K@2=FILE what it is after it.

#include "tools/mgpu-tune/Arguments.h"

namespace mgpu::tune {

/// What a round after the first is given, by argument as in Options.
struct Round {
  std::map<std::string, std::string> arguments, outputs;
};

/// Takes them out of the options, round 2 first. Usage where one in between has
/// nothing.
Result<std::vector<Round>> takeRounds(Options &options);

/// The arrays of a round. Usage for an argument that is part of the program as
/// it is loaded: a scalar that was specialised, or a resident one.
Result<std::vector<ArgumentArray>> loadRound(const Program &program,
                                             const Round &round);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_ROUNDS_H
