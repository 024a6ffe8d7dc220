// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_TUNED_H
#define MGPU_TOOLS_MGPU_TUNE_TUNED_H

// What `tune` finds and others use: the database, its keys, and a tuned
// program ready to run.

#include "device/api/GraphDriver.h"
#include "tools/mgpu-tune/Program.h"
#include "tuner/session/TuningSession.h"

namespace mgpu::tune {

/// What of a program and a machine the tuner needs to know.
struct TuneContext {
  std::vector<planner::KernelSpace> spaces;
  std::vector<tuner::KernelObject> compiled; ///< the default kernels
  bench::Environment environment;
  uint32_t devices = 1;
  tuner::PlanLimits limits;
  std::vector<tuner::TargetSetting> settings;
  /// Of a card; none: the host.
  std::optional<tuner::TargetIdentity> target;
  std::vector<kernels::CudaText> texts; ///< of a card's kernels
  std::string level;                    ///< of the host's kernels of a bundle

  tuner::KeyInput keys(const planner::Dag &dag, bool coldCaches) const;
};
/// Compiles the default kernels. `usesCuda` is of a process that does already,
/// and forks no more. Errors: Unsupported for a DAG of costs and for several
/// cards; Absent for a card that is not there.
Result<TuneContext> makeTuneContext(const Program &program,
                                    const Options &options,
                                    bool usesCuda = false);

/// What the database says of a program, or else the default.
struct TunedChoice {
  TuneContext context;
  tuner::ProgramConfig config;
  bool isTuned = false;
};
/// Whether findTuned() of an .mlir program looks into a database, to which it
/// is known by its kernels as compiled.
bool looksForTuned(const Options &options, bool usesCuda = false);

/// The tuned configuration where the database has exactly this program on this
/// machine; said on stderr. None where there is no database to ask, or the
/// command line asks for a scheduling of its own. A database that cannot be
/// read is an error if --db named it, else a warning. For a card only with
/// `usesCuda`: it must be there to be known.
Result<std::optional<TunedChoice>> findTuned(const Program &program,
                                             const Options &options,
                                             bool usesCuda = false);

/// Makes the transforms of a choice: `program` is from then on what its plan is
/// of. Its keys are those of the program as it was.
Result<void> transformChosen(Program &program, const TunedChoice &choice);

/// The plan of a choice, with the times of its nodes that `profile` stored in
/// the file `path` in place of the model's; Plan::model says how many. They
/// order the plan too, unless it was tuned: then its configuration does. `dag`
/// is as transformChosen() leaves it.
Result<planner::Plan> planChosen(const planner::Dag &dag,
                                 const TunedChoice &choice,
                                 const std::string &path);

/// The stored decision on the program in the file `path`, if it has one.
Result<std::optional<tuner::StoredDecision>>
readDecision(const Program &program, const TuneContext &context,
             const std::string &path);

/// The values of --arg, and made-up ones (said on stderr) where there are none.
Result<std::vector<tuner::ProgramInput>> programInputs(const Program &program,
                                                       const Options &options);

/// The program as the tuner takes it; refers to all arguments.
tuner::TuningSubject tuningSubject(const Program &program,
                                   const Options &options,
                                   const TuneContext &context,
                                   const tuner::ProgramData &data);

/// What a program says of itself: everything but what is measured.
tuner::ProgramFacts factsOf(const Program &program, const TuneContext &context,
                            const Options &options);

/// How to run a program: its plan, kernels and threads.
struct Prepared {
  planner::Plan plan;
  std::vector<std::vector<std::byte>> kernels; ///< by KernelId
  std::string cpu = "native"; ///< CPU level or "sm_90" the kernels are for
  uint32_t lanes = 0;
  bool isTuned = false;
  double planUs = 0, compileUs = 0; ///< what making them took
};
/// As findTuned() says, else planFor() and hostKernels(). --plan wins over a
/// tuned plan and its transforms; kernels and threads are those tuned.
/// `program` is left as the plan's transforms change it. `arch` is that of a
/// cuda target's cards ("sm_90"); else empty. For cards, what cuBLASLt needs of
/// their memory is a part of the program and its plan.
Result<Prepared> prepare(Program &program, const Options &options,
                         const std::string &arch = "");

/// Compiles the kernels of a configuration: for the context's card, else for
/// "native" or a CPU level; for the host a bundle has them.
Result<std::vector<std::vector<std::byte>>>
compileConfig(const Program &program, const TuneContext &context,
              const tuner::ProgramConfig &config, const Options &options,
              const std::string &cpu = "native");

/// "scheduler=list streams=4 lanes=1 seed=0 bucket=on", then a line for each
/// kernel that is not at its default.
std::string describeConfig(const tuner::ProgramConfig &config,
                           const planner::Dag &dag,
                           std::span<const planner::KernelSpace> spaces,
                           std::string_view indent);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_TUNED_H
