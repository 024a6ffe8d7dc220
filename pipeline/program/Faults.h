// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_FAULTS_H
#define MGPU_PIPELINE_PROGRAM_FAULTS_H

// A kernel on the host target is native code of the user's: where it leaves
// its buffers the system ends the process.

#include "pipeline/program/LoadedProgram.h"

namespace mgpu::pipeline {

/// From here on a fault in one of the program's kernels ends this process with
/// a sentence that names program, kernel and the kernel's place in the source,
/// and exit code 1; one elsewhere with exit code 4. To be called once.
/// Processes forked from this one die of the signal as before, and where a
/// sanitizer watches it has what is not a kernel's.
void nameFaults(const LoadedProgram &program);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_FAULTS_H
