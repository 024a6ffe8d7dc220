// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TARGET_WORKERS_H
#define MGPU_PIPELINE_TARGET_WORKERS_H

// The threads that replay on the host, and the level of CPU that their kernels
// are for, as a user chooses them.

#include "planner/plan/Plan.h"
#include "support/Result.h"

#include <string>

namespace mgpu::pipeline {

/// Usage, with what there is, for more `threads` than this process has CPUs,
/// and for a level ("x86-64-v3"; "": any) that this processor does not run.
/// `where` comes before the options' names in the sentence ("--").
Result<void> checkWorkers(uint32_t threads, const std::string &cpu,
                          const char *where);
/// A program that is opened by a call: on GPUs any of them is Usage too.
Result<void> checkWorkersOf(const std::string &target, uint32_t threads,
                            const std::string &cpu, bool pins);

/// On how many threads a plan is replayed that nobody has measured.
uint32_t threadsFor(const planner::Plan &plan, const planner::Dag &dag);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TARGET_WORKERS_H
