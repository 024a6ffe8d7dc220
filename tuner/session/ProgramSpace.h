// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SESSION_PROGRAMSPACE_H
#define MGPU_TUNER_SESSION_PROGRAMSPACE_H

// What can be chosen of a program on the host target, as configuration spaces:
// one for each kernel, and a joint one of the transforms, the plan and the best
// few ways to build each kernel.

#include "db/Problem.h"
#include "planner/dag/KernelSpace.h"
#include "planner/schedule/Schedulers.h"
#include "tuner/session/TransformSpace.h"

namespace mgpu::tuner {

/// How a program is changed, how its steps are ordered and placed, and how its
/// kernels are built. It alone decides the plan and the objects.
struct ProgramConfig {
  std::string scheduler = "list"; ///< or "serial"
  uint32_t streams = 4;           ///< for each device
  /// Of the list scheduler's priorities: 0 takes durations as they are
  /// estimated, each other one draws a factor of 1/2 to 2 for each node.
  uint64_t seed = 0;
  uint32_t lanes = 1;       ///< threads that replay
  TransformList transforms; ///< of the program, before it is planned
  std::vector<planner::KernelConfig> kernels; ///< by KernelId

  bool operator==(const ProgramConfig &) const = default;
};

/// Kernels appear under their names; those at `defaults`, and transforms that
/// are off, not at all.
db::Pairs toPairs(const ProgramConfig &config, const planner::Dag &dag,
                  std::span<const planner::KernelSpace> kernels);
/// Invalid where the pairs are not of this program.
Result<ProgramConfig> fromPairs(const db::Pairs &pairs, const planner::Dag &dag,
                                std::span<const planner::KernelSpace> kernels);

/// The plan of a configuration, proven by verify(); `dag` is as transformed()
/// leaves the program. `latency` is what orders it; a host's roofline if it is
/// null, so that the configuration alone decides.
Result<planner::Plan>
planFor(const planner::Dag &dag, const ProgramConfig &config,
        const planner::LatencyEstimator *latency = nullptr);

/// Every legal configuration of a kernel: its parameters, those with one value
/// included, then its tunables.
Result<ConfigSpace> spaceOf(const planner::KernelSpace &kernel);
planner::KernelConfig kernelConfigAt(const ConfigSpace &space, ConfigId id);
std::optional<ConfigId> findConfig(const ConfigSpace &space,
                                   const planner::KernelConfig &config);

/// Transforms, plan choices and, for each kernel, which of its `chosen` ways to
/// build it.
class ProgramSpace {
public:
  /// `lists` are transformLists() of the program; `chosen` by KernelId, the
  /// default first. Lanes go up to `mostLanes`.
  static Result<ProgramSpace>
  create(const planner::Dag &dag, std::vector<TransformList> lists,
         std::vector<std::vector<planner::KernelConfig>> chosen,
         uint32_t mostLanes);
  /// Its size without the kernels.
  static uint64_t numPlans(size_t numLists, uint32_t mostLanes);

  const ConfigSpace &points() const { return space; }
  ProgramConfig at(ConfigId id) const;
  std::optional<ConfigId> find(const ProgramConfig &config) const;

private:
  ProgramSpace(ConfigSpace space, TransformChoices transforms,
               std::vector<std::vector<planner::KernelConfig>> chosen)
      : space(std::move(space)), transforms(std::move(transforms)),
        chosen(std::move(chosen)) {}
  uint32_t firstKernel() const;

  ConfigSpace space;
  TransformChoices transforms;
  std::vector<std::vector<planner::KernelConfig>> chosen;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SESSION_PROGRAMSPACE_H
