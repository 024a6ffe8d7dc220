// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_LOAD_H
#define MGPU_PIPELINE_PROGRAM_LOAD_H

// The first step: a file the user named becomes a program. It may be an .mlir
// program, a .pt2 of PyTorch, a bundle, an mgpu-dag/2 file or a recorded trace.

#include "pipeline/program/LoadedProgram.h"

namespace mgpu::pipeline {

/// Loads options.file and finds every value of options.arguments in it. The
/// program's own diagnostics go to stderr with their source lines as they are
/// found, and into `messages` when it is not null.
Result<LoadedProgram> loadProgram(const LoadOptions &options,
                                  std::vector<Message> *messages = nullptr);

/// Loads the same .mlir program in the order of a named schedule, with --remat
/// if `remat` or the program was loaded with it. It says nothing on stderr that
/// it has said before.
Result<LoadedProgram> loadOrder(const LoadedProgram &program,
                                const std::string &schedule, bool remat);

/// Loads the same .mlir program with arguments that are cut so. It says nothing
/// on stderr.
Result<LoadedProgram>
loadSplits(const LoadedProgram &program,
           const std::map<std::string, planner::Split> &splits);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_LOAD_H
