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

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_EXPECTATIONS_H
