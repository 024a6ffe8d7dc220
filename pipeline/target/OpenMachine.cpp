// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/OpenMachine.h"

#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "planner/cost/GpuTopology.h"

#include <algorithm>

namespace mgpu::pipeline {

using planner::CollectiveTable, planner::Machine;

bool isElsewhere(const std::string &target) {
  return target.starts_with("sim:");
}

/// The slowest GPU of a target, as `devices` devices.
static Result<device::Topology> topologyOfGpus(const std::string &target,
                                               uint32_t devices) {
  MGPU_TRY_ASSIGN(const auto gpus, factsOfGpus(target));
  const uint32_t each =
      theRanks() ? 1 : uint32_t(std::max<size_t>(devices / gpus.size(), 1));
  std::optional<device::Topology> slowest;
  for (const planner::GpuFacts &gpu : gpus) {
    MGPU_TRY_ASSIGN(auto topology, planner::topologyOfGpu(gpu, devices, each));
    if (!slowest ||
        topology.device.flopsPerSecond < slowest->device.flopsPerSecond)
      slowest = std::move(topology);
  }
  return std::move(*slowest);
}

Result<Machine> openMachine(const std::string &target, uint32_t devices,
                            const std::string &collectivesFile) {
  if (!isElsewhere(target) && !isCudaTarget(target)) {
    if (!collectivesFile.empty())
      return fail(ErrorKind::Usage,
                  "--collectives has times of GPUs: use it with --target "
                  "sim:NAME or cuda:K");
    if (!target.empty())
      MGPU_TRY(targetDevices(target, devices));
    return planner::hostMachine(devices);
  }
  std::shared_ptr<const CollectiveTable> table;
  if (!collectivesFile.empty()) {
    MGPU_TRY_ASSIGN(auto rows, planner::readCollectives(collectivesFile));
    MGPU_TRY_ASSIGN(auto made, CollectiveTable::create(std::move(rows)));
    table = std::make_shared<const CollectiveTable>(std::move(made));
  }
  MGPU_TRY_ASSIGN(device::Topology topology,
                  isElsewhere(target) ? device::openTopology(target)
                                      : topologyOfGpus(target, devices));
  return Machine(std::move(topology), std::move(table));
}

} // namespace mgpu::pipeline
