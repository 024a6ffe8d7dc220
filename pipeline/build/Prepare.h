// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_PREPARE_H
#define MGPU_PIPELINE_BUILD_PREPARE_H

// The prepare step: a program gets its plan, its kernels and its threads, those
// that `tune` found where the database has them.

#include "pipeline/build/TuneContext.h"
#include "pipeline/plan/ProgramPlan.h"

namespace mgpu::pipeline {

struct PrepareOptions : PlanOptions {
  bool useTuned = true; ///< look into the database
  std::string cpu; ///< level of the host's kernels; empty: the best there is
  uint32_t threads = 0; ///< that replay on the host; 0: as many as useful
  /// A database that is damaged is an error, for what writes into it or hands
  /// on what it says; else a warning, and the default is taken.
  bool needsDatabase = false;
};

/// Whether loading may ask the database for forms of matrix products
/// (LoadOptions::usesRecord): not for a plan in a file, which any GPU may run.
bool mayUseRecord(const PrepareOptions &options);

/// The choice that the database has for a program, or else the default.
struct TunedChoice {
  TuneContext context;
  tuner::ProgramConfig config;
  bool isTuned = false;
  bool needsDatabase = false; ///< as in PrepareOptions; also of a bundle
};
/// Whether findTuned() of an .mlir program looks into a database. There the
/// program is known by its kernels as compiled.
bool looksForTuned(const LoadOptions &from, const PrepareOptions &options,
                   bool usesCuda = false);

/// The tuned configuration where the database has exactly this program on this
/// machine; said on stderr. None where there is no database to ask, or the user
/// asked for a schedule. A damaged database is a warning, and an error if the
/// user named it and `needsDatabase`, or the program is a bundle. A GPU is
/// looked up only with `usesCuda`, because it must be there to be known.
Result<std::optional<TunedChoice>> findTuned(const LoadedProgram &program,
                                             const PrepareOptions &options,
                                             bool usesCuda = false);

/// Applies the transforms of a choice, whose keys are those of the program
/// before them.
Result<void> transformChosen(LoadedProgram &program, const TunedChoice &choice);

/// The machine of a choice, with the times that `profile` stored of the nodes
/// of the program after transformChosen(): tuner::planOf() plans by them.
Result<planner::Machine> machineOf(const LoadedProgram &program,
                                   const TunedChoice &choice);

/// The stored decision on the program in the file `path`, if it has one.
Result<std::optional<tuner::StoredDecision>>
readDecision(const LoadedProgram &program, const TuneContext &context,
             const std::string &path);

/// How to run a program: its plan, kernels and threads.
struct Prepared {
  planner::Plan plan;
  std::vector<std::vector<std::byte>> kernels; ///< by KernelId
  std::string cpu = "native"; ///< CPU level, or "sm_90", of the kernels
  uint32_t threads = 0;       ///< threads that replay; 0: as many as useful
  /// That the threads stay on, the calling one first; empty: none is pinned.
  std::vector<int> cpus;
  bool isTuned = false;
  /// device::parseNccl() of several GPUs' ranks, as it was tuned; "": NCCL's
  /// own.
  std::string nccl;
  std::string configuration;        ///< describeConfig(); "": nothing was tuned
  double planUs = 0, compileUs = 0; ///< the time it took to make them
};
/// Prepares what findTuned() says, else makePlan() and hostKernels(). --plan
/// wins over a tuned plan and its transforms, not over tuned kernels and
/// threads. `program` is left as the plan's transforms change it. `arch` is
/// that of a cuda target's GPUs ("sm_90"), else empty. The memory that cuBLASLt
/// needs of GPUs becomes a part of the program and its plan.
Result<Prepared> prepare(LoadedProgram &program, const PrepareOptions &options,
                         const std::string &arch = "");
/// Prepares without that memory, which is left to the caller.
Result<Prepared> prepareBare(LoadedProgram &program,
                             const PrepareOptions &options,
                             const std::string &arch);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_PREPARE_H
