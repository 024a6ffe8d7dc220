// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_EXPECTATIONS_H
#define MGPU_PIPELINE_PROGRAM_EXPECTATIONS_H

// Compares values with those that a program expects (planner::Expectation).

#include "capture/ranks/Runner.h"
#include "planner/dag/Program.h"

namespace mgpu::pipeline {

/// Compares what was fetched. Invalid, with the place in the program, the first
/// element that differs, and both numbers.
Result<void> checkExpectations(const planner::Program &program,
                               capture::Runner &runner);

/// Takes the texts for the standard output, and those for the standard error.
struct OutputSinks {
  std::function<void(const std::string &)> print, printError;
};

/// Hands out the texts in program order, as MLIR's runner prints them, once all
/// is fetched. Invalid at the first check that fails.
Result<void> giveOutputs(const planner::Program &program,
                         capture::Runner &runner, const OutputSinks &sinks);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_EXPECTATIONS_H
