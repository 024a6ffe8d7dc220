// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_RECORD_KEYS_H
#define MGPU_TUNER_RECORD_KEYS_H

// The keys by which a stored result is found again: contents, never numbers or
// names of files.

#include "bench/measure/Environment.h"
#include "db/Trial.h"
#include "planner/dag/Dag.h"

#include <memory>
#include <optional>
#include <span>

namespace mgpu::tuner {

/// A compiled kernel. Several candidates and keys hold the same one.
using KernelObject = std::shared_ptr<const std::vector<std::byte>>;

/// These tell the kinds of problem apart.
inline constexpr const char *decidedSuffix = "; decided";   ///< of a policy
inline constexpr const char *profiledSuffix = "; profiled"; ///< likewise
inline constexpr const char *kernelPrefix = "kernel ";      ///< of a program

/// How a session measures, as Problem::policy says it.
std::string policyText(bool coldCaches);

/// The machine results are of, where that is not the host.
struct TargetIdentity {
  std::string device;       ///< "NVIDIA H100 80GB HBM3"
  std::string architecture; ///< "sm_90"
  std::string software;     ///< "CUDA driver 13.0, NVRTC 13.0"
};

/// `compiled` are the kernels as they are built by default: other code
/// generation makes another problem.
struct KeyInput {
  const planner::Dag &dag;
  std::span<const KernelObject> compiled; ///< by KernelId
  const bench::Environment &environment;
  std::string version; ///< of mgpu
  uint32_t devices = 1;
  bool coldCaches = false;
  std::optional<TargetIdentity> target = {}; ///< none: the host
  /// The processes that share the devices: "4 on 2 nodes by openmpi"; empty:
  /// one has them all.
  std::string ranks = {};
};

/// Anything on this machine by this version: program and shape are the
/// caller's.
db::TuningProblem machineProblem(const KeyInput &input);
/// The program as a whole, tried in many configurations.
db::TuningProblem programProblem(const KeyInput &input);
/// The problem under which decisions are stored: the configurations that won or
/// kept a race against the default.
db::TuningProblem decisionProblem(const KeyInput &input);
/// The problem of decisions by versions that predicted load, replay and fetch
/// together, and one trip of a rolled loop; none where those are the replay.
std::optional<db::TuningProblem> olderDecisionProblem(const KeyInput &input);
/// One kernel by itself: other programs with the same kernel find it too.
db::TuningProblem kernelProblem(const KeyInput &input, planner::KernelId kernel,
                                Dim3 largestGrid);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_RECORD_KEYS_H
