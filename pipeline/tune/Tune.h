// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TUNE_TUNE_H
#define MGPU_PIPELINE_TUNE_TUNE_H

// The tune step: the fastest plan and kernels of a program on a target are
// searched for and remembered.

#include "pipeline/build/TuneContext.h"
#include "support/Clock.h"
#include "support/Units.h"

#include <atomic>

namespace mgpu::pipeline {

class TuneLeader;
struct GpuRanks;

struct TuneRequest {
  SearchBudget budget; ///< what earlier sessions spent counts
  /// The caller's beginning, from which the budget's wall time counts.
  Clock::time_point started = Clock::now();
  std::string strategy = "surrogate";
  uint64_t seed = 0;
  bool coldCaches = false, pinThreads = true;
  /// Values of arguments, by name, in place of those of `program.from`.
  std::map<std::string, std::vector<std::byte>> values = {};
  /// Gets the names of the arguments that have none and were made up. Null:
  /// stderr gets them.
  std::vector<std::string> *madeUp = nullptr;
  std::function<void(const tuner::Progress &)> progress = nullptr;
  const std::atomic<bool> *stop = nullptr; ///< ends the search, keeps all
  /// Where several processes share the devices, in rank 0.
  TuneLeader *leader = nullptr;
  const GpuRanks *gpus = nullptr; ///< and theirs are GPUs
};

/// Searches until the budget is spent, or gives what the database of
/// `program.from` has of an earlier search that spent as much.
Result<tuner::TuningResult> tuneProgram(const LoadedProgram &program,
                                        const TuneContext &context,
                                        const TuneRequest &request);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TUNE_TUNE_H
