// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/OpenMachine.h"

#include "bench/measure/Environment.h"
#include "db/FileSystem.h"
#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "planner/cost/GpuTopology.h"

#include <algorithm>
#include <fmt/format.h>
#include <sys/stat.h>

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

Result<std::string> hostRatesPath(const std::string &database) {
  MGPU_TRY_ASSIGN(const std::string path, db::databasePath(database));
  return path + ".host.json";
}

/// The host by the rates that were measured of it; none: they were not, or on
/// another processor.
static std::optional<device::Topology>
calibratedHost(const std::string &database, uint32_t devices) {
  const auto path = hostRatesPath(database);
  struct stat about = {};
  if (!path || stat(path->c_str(), &about) != 0)
    return std::nullopt;
  auto refuse = [&](const std::string &why) {
    fmt::print(stderr, "mgpu-tune: warning: {}; the host's rates are assumed\n",
               why);
    return std::nullopt;
  };
  if (!S_ISREG(about.st_mode)) // a pipe would be waited for
    return refuse(fmt::format("'{}' is no file", *path));
  auto topology = device::openTopology("sim:" + *path);
  if (!topology)
    return refuse(topology.error().message);
  if (topology->device.name != "host: " + bench::readEnvironment().cpu)
    return std::nullopt;
  if (topology->link.kind != device::LinkKind::Memory || topology->nodes != 1 ||
      !topology->calibration || topology->calibration->host.empty())
    return refuse(fmt::format(
        "'{}' has no rates of a host: `mgpu-tune calibrate` writes it", *path));
  topology->devices = devices;
  topology->name = "host, calibrated";
  topology->device.memoryBytes = uint64_t(INT64_MAX); // the host is what it is
  return std::move(*topology);
}

Result<Machine> openMachine(const std::string &target, uint32_t devices,
                            const std::string &collectivesFile,
                            const std::string &database) {
  if (!isElsewhere(target) && !isCudaTarget(target)) {
    if (!collectivesFile.empty())
      return fail(ErrorKind::Usage,
                  "--collectives has times of GPUs: use it with --target "
                  "sim:NAME or cuda:K");
    if (!target.empty())
      MGPU_TRY(targetDevices(target, devices));
    // Ranks must plan alike, whatever each one's machine has measured.
    if (auto host =
            theRanks() ? std::nullopt : calibratedHost(database, devices))
      return Machine(std::move(*host));
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
