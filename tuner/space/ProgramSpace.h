// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_SPACE_PROGRAMSPACE_H
#define MGPU_TUNER_SPACE_PROGRAMSPACE_H

// The choices of a program on a target, as configuration spaces: one for each
// kernel, and a joint one of the transforms, the plan, the target's own
// settings and the best few variants of each kernel.

#include "db/Trial.h"
#include "device/api/DeviceProfile.h"
#include "kernels/space/KernelSpace.h"
#include "planner/cost/TargetMachine.h"
#include "planner/schedule/list/Schedulers.h"
#include "tuner/space/TransformSpace.h"

#include <string>
#include <vector>

namespace mgpu::tuner {

struct TargetSetting {
  std::string name; ///< "algorithm.all_reduce.8192x4"; also of its pair
  /// The default first. One: there is no choice.
  std::vector<std::string> values;
  std::string reason; ///< why there is one only; else empty
};

/// How a program is changed, how its steps are ordered and placed, and how its
/// kernels are built. It alone decides the plan and the objects.
struct ProgramConfig {
  std::string scheduler = "list"; ///< or "serial"
  uint32_t streams = 4;           ///< for each device
  /// Seeds the list scheduler's priorities: 0 takes durations as they are
  /// estimated, any other draws a factor of 1/2 to 2 for each node.
  uint64_t seed = 0;
  planner::SchedulePolicy schedulePolicy; ///< the list scheduler's
  uint32_t threads = 1;                   ///< threads that replay
  TransformList transforms; ///< the program's, before it is planned
  /// Values of target settings by name; those at their default left out.
  std::map<std::string, std::string> settings;
  std::vector<kernels::KernelConfig> kernels; ///< by KernelId

  bool operator==(const ProgramConfig &) const = default;
};

/// Comes before the name of a kernel in its pair.
inline constexpr const char *kernelKeyPrefix = "kernel.";
/// Kernels and settings appear under their names. Kernels at their defaults,
/// and transforms that are off, do not appear.
db::Pairs toPairs(const ProgramConfig &config, const planner::Dag &dag,
                  std::span<const kernels::KernelSpace> kernels);
/// Invalid where the pairs are not of this program on a target with these
/// settings.
Result<ProgramConfig> fromPairs(const db::Pairs &pairs, const planner::Dag &dag,
                                std::span<const kernels::KernelSpace> kernels,
                                std::span<const TargetSetting> settings);

/// planner::makePlan() of a configuration; `dag` is as transformed() leaves the
/// program. Times that the machine has of its nodes order the plan too, unless
/// the configuration was tuned: then that does, and they are only written in.
Result<planner::Plan> planOf(const planner::Dag &dag,
                             const ProgramConfig &config,
                             const planner::Machine &machine,
                             bool isTuned = false);

/// Every legal configuration of a kernel: its parameters, those with one value
/// included, then its tunables. With `GPU`, those that fit it.
Result<ConfigSpace> spaceOf(const kernels::KernelSpace &kernel,
                            const device::DeviceProfile *gpu = nullptr);
kernels::KernelConfig kernelConfigAt(const ConfigSpace &space, ConfigId id);
std::optional<ConfigId> findConfig(const ConfigSpace &space,
                                   const kernels::KernelConfig &config);

/// A parameter of a space, for people.
struct SpaceParameter {
  std::string name;
  std::vector<std::string> values;
  std::string reason; ///< why there is one value only, where that is known
};
/// Describes spaceOf(kernel).
std::vector<SpaceParameter> describeSpace(const kernels::KernelSpace &kernel);

/// The most that a target lets plans have.
struct SpaceLimits {
  uint32_t mostThreads = 1;             ///< threads that replay
  uint32_t mostStreams = 8;             ///< of each device
  uint32_t defaultThreads = UINT32_MAX; ///< at most mostThreads are taken
};

/// Transforms, plan choices, target settings and, for each kernel, which of its
/// `chosen` variants of it.
class ProgramSpace {
public:
  /// `lists` are transformLists() of the program; `chosen` by KernelId, the
  /// default first.
  static Result<ProgramSpace>
  create(const planner::Dag &dag, std::vector<TransformList> lists,
         std::vector<TargetSetting> settings,
         std::vector<std::vector<kernels::KernelConfig>> chosen,
         const SpaceLimits &limits);
  /// Its size without the kernels.
  static double numPlans(size_t numLists,
                         std::span<const TargetSetting> settings,
                         const SpaceLimits &limits);

  const ConfigSpace &points() const { return space; }
  ProgramConfig at(ConfigId id) const;
  std::optional<ConfigId> find(const ProgramConfig &config) const;
  /// All but the kernels.
  std::vector<SpaceParameter> describe() const;

private:
  ProgramSpace(ConfigSpace space, TransformChoices transforms,
               std::vector<TargetSetting> settings,
               std::vector<std::vector<kernels::KernelConfig>> chosen)
      : space(std::move(space)), transforms(std::move(transforms)),
        settings(std::move(settings)), chosen(std::move(chosen)) {}
  uint32_t firstSetting() const;
  uint32_t firstKernel() const;

  ConfigSpace space;
  TransformChoices transforms;
  std::vector<TargetSetting> settings;
  std::vector<std::vector<kernels::KernelConfig>> chosen;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_SPACE_PROGRAMSPACE_H
