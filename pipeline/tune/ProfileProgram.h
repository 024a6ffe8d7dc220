// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Measures a program's nodes and replays beside its plan, and stores both.
#ifndef MGPU_PIPELINE_TUNE_PROFILEPROGRAM_H
#define MGPU_PIPELINE_TUNE_PROFILEPROGRAM_H

#include "pipeline/program/LoadedProgram.h"
#include "pipeline/run/JoinRanks.h"
#include "tuner/record/ProfileFacts.h"

#include <string>
#include <utility>
#include <vector>

namespace mgpu::pipeline {

struct ProfileRequest {
  std::string target;
  uint64_t repeat = 200; ///< replays
  bool useTuned = true;  ///< the database's configuration, where it has one
  bool pinThreads =
      true; ///< on the host; ranks are bound by whoever starts them
  std::string traceFile; ///< for the replay timed last; empty: none
};

struct ProfileResult {
  tuner::ProfileFacts facts; ///< of the fastest number of threads
  bool isTuned = false;
  /// A replay with the other numbers of threads.
  std::vector<std::pair<uint32_t, tuner::Quartiles>> others;
};

/// On the host, or as rank 0 of several. `path` is the database's. `program`
/// is left as the plan's transforms change it.
Result<ProfileResult> profileOnHost(LoadedProgram &program,
                                    const ProfileRequest &request,
                                    const std::string &path);
/// Takes part as a rank other than 0, which alone stores.
Result<void> followProfile(LoadedProgram &program,
                           const ProfileRequest &request);
/// On one GPU, as one or several devices.
Result<ProfileResult> profileOnGpu(LoadedProgram &program,
                                   const ProfileRequest &request,
                                   const std::string &path);

/// On the GPUs of all ranks, which all call it. Rank 0 alone stores, and what
/// it gives is whole.
Result<ProfileResult> profileOnRanks(LoadedProgram &program,
                                     const ProfileRequest &request,
                                     const std::string &path,
                                     const GpuRanks &gpus);

/// Writes the replay timed last, beside the program as a DAG file: with the
/// times measured and, where nothing was, those of `plan`.
Result<void> writeProfileTrace(const LoadedProgram &program,
                               const ProfileRequest &request,
                               const bench::ProfileSamples &samples, bool onGpu,
                               const planner::Plan &plan);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_PROFILEPROGRAM_H
