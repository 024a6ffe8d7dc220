// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_CHECKALIKE_H
#define MGPU_PIPELINE_PROGRAM_CHECKALIKE_H

#include "planner/dag/Dag.h"

namespace mgpu::pipeline {

/// Whether device 0 of a program stands for all on a machine: each collective's
/// group repeats over the devices, and spans as many machines wherever it
/// stands, and nothing in the host's memory makes devices wait for each other.
/// Errors: Unsupported.
Result<void> checkAlike(const planner::Dag &dag, uint32_t devicesPerMachine);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_CHECKALIKE_H
