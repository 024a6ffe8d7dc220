// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/CalibrateTarget.h"

#include "bench/measure/Environment.h"
#include "device/api/Agreement.h"
#include "device/cuda/CudaDriver.h"
#include "device/host/HostDriver.h"
#include "pipeline/Target.h"
#include "pipeline/TheRanks.h"
#include "pipeline/Version.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fmt/ranges.h>

namespace mgpu::pipeline {

Result<device::Topology> describeTarget(const std::string &target,
                                        uint32_t devices,
                                        const device::Driver &driver) {
  device::Topology about;
  about.devices = devices;
  // The words are NCCL's; how fast they are is measured.
  about.link.kind = device::LinkKind::Pcie;
  if (!isCudaTarget(target)) {
    const bench::Environment environment = bench::readEnvironment();
    about.device.name =
        environment.cpu.empty() ? "host" : "host: " + environment.cpu;
    about.device.memoryBytes =
        std::max<uint64_t>(environment.memoryBytes / devices, 1);
    about.device.smCount = 1; // one thread
    about.device.architecture = 1;
    return about;
  }
  MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
  MGPU_TRY_ASSIGN(device::CudaMachine machine, device::inspectCuda());
  // Where several differ, what the least of them has.
  for (int ordinal : cuda.gpus) {
    if (size_t(ordinal) >= machine.gpus.size())
      return fail(ErrorKind::Absent,
                  fmt::format("there is no GPU {}", ordinal));
    const device::CudaMachine::Gpu &gpu = machine.gpus[size_t(ordinal)];
    device::Topology::Device &least = about.device;
    if (least.name.find(gpu.name) == std::string::npos)
      least.name += (least.name.empty() ? "" : ", ") + gpu.name;
    const uint64_t bytes = gpu.memoryBytes / cuda.devicesOnGpu;
    least.memoryBytes =
        least.memoryBytes ? std::min(least.memoryBytes, bytes) : bytes;
    least.smCount = least.smCount ? std::min(least.smCount, gpu.multiprocessors)
                                  : gpu.multiprocessors;
  }
  about.device.architecture =
      uint32_t(std::atoi(driver.architecture().c_str() + 3)); // "sm_90"
  return about;
}

Result<device::Topology> calibrateTogether(const std::string &target,
                                           uint32_t devices,
                                           const bench::MakeCalibration &make) {
  device::MessageRendezvous &others = *theRanks();
  MGPU_TRY(device::agree({{"version", versionText("mgpu", "")},
                          {"library", others.library()},
                          {"target", target}},
                         others));
  const device::HostPart part = device::hostPart(devices, others);
  MGPU_TRY_ASSIGN(auto driver, device::createHostDriver(part, 1));
  MGPU_TRY_ASSIGN(bench::CalibrationInput input, make(*driver));
  input.largest = [&others](double mine) { return others.largest(mine); };
  for (uint32_t rank : part.ranks)
    input.nodes.push_back(others.nodeOf()[rank]);
  input.about.nodes = numRankNodes();
  input.about.device.memoryBytes =
      std::max<uint64_t>(input.about.device.memoryBytes * devices /
                             (part.here.count * numRanksHere()),
                         1);
  if (others.rank() != 0)
    input.progress = nullptr;
  return bench::calibrate(input);
}

std::string targetOf(const std::vector<int> &gpus) {
  return fmt::format("cuda:{}", fmt::join(gpus, ","));
}

/// The GPUs of a rank, which measure the same things.
static Result<std::string> kindOf(const std::vector<int> &gpus) {
  MGPU_TRY_ASSIGN(const device::CudaMachine machine, device::inspectCuda());
  std::string text;
  for (int gpu : gpus) {
    if (size_t(gpu) >= machine.gpus.size())
      return fail(ErrorKind::Absent, fmt::format("there is no GPU {}", gpu));
    const device::CudaMachine::Gpu &each = machine.gpus[size_t(gpu)];
    const std::string kind =
        fmt::format("{} ({} multiprocessors)", each.name, each.multiprocessors);
    if (!text.empty() && text != kind)
      return fail(ErrorKind::Unsupported,
                  fmt::format("GPUs {} differ ({}; {}), and all of a "
                              "calibration by several processes are alike",
                              targetOf(gpus), text, kind));
    text = kind;
  }
  return text;
}

Result<device::Topology>
calibrateGpusTogether(const GpuRanks &gpus, const std::string &nccl,
                      const bench::MakeCalibration &make) {
  const capture::RemotePart &part = gpus.here.part;
  device::MessageRendezvous &others = *part.others;
  MGPU_TRY_ASSIGN(const std::string kind, kindOf(gpus.here.gpus));
  MGPU_TRY(device::agree({{"version", versionText("mgpu", "")},
                          {"library", others.library()},
                          {"GPU", kind},
                          {"--nccl", nccl}},
                         others));
  MGPU_TRY_ASSIGN(RanksToOpen opening, gpus.opening(nccl));
  auto of = [&](device::Driver &driver) -> Result<bench::CalibrationInput> {
    MGPU_TRY_ASSIGN(bench::CalibrationInput input, make(driver));
    for (uint32_t rank : part.rankOf)
      input.nodes.push_back(others.nodeOf()[rank]);
    input.about.nodes = numRankNodes();
    return input;
  };
  return bench::calibrateRanks(uint32_t(part.rankOf.size()),
                               std::move(opening.open), std::move(opening.how),
                               of, part);
}

} // namespace mgpu::pipeline
