// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_RUN_OPENRUNNER_H
#define MGPU_PIPELINE_RUN_OPENRUNNER_H

// The target of `run` and `replay`, whichever it is: one driver of this
// process, a process for each of several GPUs, or a part of the devices where
// several processes run the program together.

#include "pipeline/run/JoinRanks.h"
#include "pipeline/run/Run.h"
#include "pipeline/serve/Auditor.h"

namespace mgpu::pipeline {

struct RunnerOptions : GpuOptions {
  PrepareOptions prepare;
  bool profiles = false; ///< one replay will be timed, node by node
  bool guard = false;    ///< watch the memory around buffers
  bool pin = false;      ///< each thread that replays stays on its CPU
  serve::AuditOptions audit = {};
};

/// Usage for options that do not go with the target, before the program is
/// read; Absent where the library is not there that they ask for.
Result<void> checkRunner(const RunnerOptions &options, const LoadOptions &load);

/// Prepares the program and opens its target. Errors: Usage for options that
/// are of another kind of target; those of openTargetRunner(), openRanks(),
/// shareGpus() and openDistributed(). `opened` and `guard` are as
/// openTargetRunner() has them; `guard` stays null without options.guard.
Result<std::unique_ptr<Runner>> openRunner(LoadedProgram &program,
                                           const RunnerOptions &options,
                                           Prepared &prepared,
                                           const std::function<void()> &opened,
                                           tuner::GuardedDriver *&guard);

/// Opens the reference of what openRunner() gave, for audits; Unsupported where
/// several processes share the devices. All arguments outlive it.
Result<std::unique_ptr<serve::Audit>> openAudit(const LoadedProgram &program,
                                                const RunnerOptions &options,
                                                const Prepared &prepared,
                                                Runner &runner);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_RUN_OPENRUNNER_H
