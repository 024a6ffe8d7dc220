// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_BUILD_TUNECONTEXT_H
#define MGPU_PIPELINE_BUILD_TUNECONTEXT_H

// A loaded program and its target as the tuner takes them.

#include "pipeline/program/LoadedProgram.h"
#include "tuner/session/TuningSession.h"

namespace mgpu::pipeline {

/// The facts of a program and a machine that the tuner needs.
struct TuneContext {
  std::vector<kernels::KernelSpace> spaces;
  std::vector<tuner::KernelObject> compiled; ///< the default kernels
  bench::Environment environment;
  uint32_t devices = 1;
  tuner::SpaceLimits limits;
  std::vector<tuner::TargetSetting> settings;
  std::optional<tuner::TargetIdentity> target;       ///< a GPU; none: the host
  planner::Machine machine = planner::hostMachine(); ///< the target's
  std::vector<kernels::CudaText> texts;              ///< a GPU's kernels
  std::string ranks;                                 ///< as tuner::KeyInput
  std::string level; ///< CPU level of a bundle's kernels for the host

  tuner::KeyInput keys(const planner::Dag &dag, bool coldCaches) const;
};
/// Compiles the default kernels. `usesCuda` says that this process uses CUDA
/// already and forks no more. Errors: Unsupported for a DAG of costs and for
/// several GPUs of one process; Absent for a GPU that is not there.
Result<TuneContext> makeTuneContext(const LoadedProgram &program,
                                    bool usesCuda = false);

/// The setting "pdl" (off or on) of GPUs of `arch`: kernels begin before those
/// they follow have ended.
tuner::TargetSetting pdlSetting(const std::string &arch, bool byDefault);
/// Whether a configuration has it on.
bool usesPdl(const std::map<std::string, std::string> &settings,
             bool byDefault);

/// The settings of NCCL in a configuration, as device::parseNccl() takes them.
std::string ncclText(const std::map<std::string, std::string> &settings);

/// Compiles the kernels of a configuration: for the context's GPU, else for
/// "native" or a CPU level. For the host a bundle has them.
Result<std::vector<std::vector<std::byte>>>
compileConfig(const LoadedProgram &program, const TuneContext &context,
              const tuner::ProgramConfig &config,
              const std::string &cpu = "native");

/// `given`, then the program's arrays, and made-up ones for those without a
/// value, whose names go to `madeUp`, or to stderr where it is null.
Result<std::vector<tuner::ProgramInput>>
programInputs(const LoadedProgram &program,
              std::vector<tuner::ProgramInput> given = {},
              std::vector<std::string> *madeUp = nullptr);

/// The program as the tuner takes it; refers to all arguments.
tuner::TuningSubject tuningSubject(const LoadedProgram &program,
                                   const TuneContext &context,
                                   const tuner::ProgramData &data);

/// The program as the user named it.
tuner::SubjectName nameOf(const LoadedProgram &program);
/// The facts of a program without those that are measured.
tuner::ProgramFacts factsOf(const LoadedProgram &program,
                            const TuneContext &context, bool coldCaches);

/// "scheduler=list streams=4 threads=1 seed=0 bucket=on", then a line for each
/// kernel that is not at its default.
std::string describeConfig(const tuner::ProgramConfig &config,
                           const planner::Dag &dag,
                           std::span<const kernels::KernelSpace> spaces,
                           std::string_view indent);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_BUILD_TUNECONTEXT_H
