// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_CHECK_H
#define MGPU_PIPELINE_RUN_CHECK_H

// The steps of `check` beside loading: a plan of the program, and its kernels.

#include "pipeline/program/LoadedProgram.h"

namespace mgpu::pipeline {

/// Reads a plan and verifies its order, memory, times and bound without a
/// search; in words what was found. `proof` is a file of certificates for the
/// bound; without one, ours are made.
Result<std::string> checkPlan(const LoadedProgram &program,
                              const std::string &planFile,
                              const std::string &proof);

/// Finds what the target would refuse to compile, each as an error of its own;
/// the result is the first of them. A bundle's kernels are compiled.
Result<void> verifyKernels(const LoadedProgram &program,
                           std::vector<Message> &messages);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_CHECK_H
