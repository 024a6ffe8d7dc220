// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_PROBE_H
#define MGPU_PIPELINE_RUN_PROBE_H

// Whether kernels touch what their launches say. Plans rest on it, and of code
// that was compiled by others nothing else shows it.

#include "pipeline/program/LoadedProgram.h"

namespace mgpu::pipeline {

/// Runs each launch on the host, in memory of its own between guards, once and
/// once more for each buffer with other values where it does not say that it
/// reads. Invalid, with the bytes, where it wrote what it does not say, or
/// where what it wrote was another; Unsupported for launches on more than 1
/// GiB. A kernel that leaves even the guards may end the process. An access
/// that a branch hides from these values stays unnoticed.
Result<void> probeAccesses(const LoadedProgram &program);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_PROBE_H
