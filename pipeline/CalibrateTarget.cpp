// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/CalibrateTarget.h"

#include "bench/measure/Environment.h"
#include "bench/profile/CalibrateRanks.h"
#include "device/api/Agreement.h"
#include "device/cuda/CudaDriver.h"
#include "device/host/HostDriver.h"
#include "pipeline/CalibrationKernels.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/OpenRanks.h"
#include "pipeline/OwnKernels.h"
#include "pipeline/Target.h"
#include "pipeline/Version.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace mgpu::pipeline {

/// What no measurement says. For GPUs it asks the driver.
static Result<device::Topology> describeTarget(const std::string &target,
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

/// All ranks at once, each with as many of the host's devices.
static Result<device::Topology>
calibrateTogether(const std::string &target, uint32_t devices,
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

namespace {

/// What is calibrated.
struct Calibrated {
  std::string target;
  CudaTarget cuda; ///< set for GPUs
  uint32_t devices = 1;
  bool areGpus() const { return cuda.gpus.size() > 1; }
};

Result<Calibrated> calibrated(const LoadOptions &load,
                              const GpuOptions &options) {
  Calibrated out;
  out.target = load.target;
  if (out.target.empty())
    out.target = fmt::format(
        "host:{}", theRanks()
                       ? theRanks()->count()
                       : std::clamp(bench::readEnvironment().cores, 2u, 8u));
  if (isCudaTarget(out.target)) {
    MGPU_TRY_ASSIGN(out.cuda, parseCudaTarget(out.target));
    out.devices =
        std::max(out.cuda.devicesOnGpu, uint32_t(out.cuda.gpus.size()));
  } else {
    MGPU_TRY_ASSIGN(out.devices, targetDevices(out.target, 1));
    if (load.given.contains("--deadline") && !theRanks())
      return fail(ErrorKind::Usage, "--deadline is for GPUs: use it with "
                                    "--target cuda:0");
    if (theRanks() && out.devices % theRanks()->count() != 0)
      return fail(ErrorKind::Usage,
                  fmt::format("target '{}': {} ranks calibrate as many devices "
                              "each, so a multiple of {}",
                              out.target, theRanks()->count(),
                              theRanks()->count()));
  }
  if (!out.areGpus() && !options.nccl.empty())
    return fail(ErrorKind::Usage, "--nccl is for several GPUs: use it with "
                                  "--target cuda:0,1");
  return out;
}

} // namespace

Result<device::Topology>
calibrateTarget(const LoadOptions &load, const GpuOptions &options,
                const std::string &name,
                const std::function<void(const std::string &)> &progress) {
  MGPU_TRY_ASSIGN(const Calibrated what, calibrated(load, options));
  const auto &[target, cuda, devices] = what;
  CalibrationKernels kernels;
  auto input = [&](device::Driver &driver) -> Result<bench::CalibrationInput> {
    MGPU_TRY_ASSIGN(device::Topology about,
                    describeTarget(target, devices, driver));
    about.name = name;
    bench::CalibrationInput out{
        driver,
        kernels.memory,
        kernels.arithmetic,
        kernels.matmuls,
        std::move(about),
        fmt::format("measured by calibrate on {:%Y-%m-%d}"
                    ", on {} ({}): ",
                    fmt::gmtime(std::time(nullptr)), target, driver.timedBy())};
    out.largestBytes = std::max(out.largestBytes, bytesOf(kernels.memory));
    out.progress = progress;
    return out;
  };
  if (what.areGpus()) {
    MGPU_TRY_ASSIGN(RanksToOpen opening,
                    ranksToOpen(cuda.gpus, options, load.database));
    MGPU_TRY_ASSIGN(const std::string architecture, architectureOf(cuda.gpus));
    MGPU_TRY_ASSIGN(kernels, compileCalibration(load, architecture));
    return bench::calibrateRanks(devices, std::move(opening.open),
                                 std::move(opening.how), input);
  }
  if (theRanks()) {
    MGPU_TRY_ASSIGN(kernels, compileCalibration(load, ""));
    return calibrateTogether(target, devices, input);
  }
  OpenOptions how;
  how.profiles = true;
  how.compile = ownCompiler(load.database);
  how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  MGPU_TRY_ASSIGN(auto driver, openTarget(target, devices, how));
  MGPU_TRY_ASSIGN(kernels, compileCalibration(load, driver->architecture()));
  MGPU_TRY_ASSIGN(const bench::CalibrationInput made, input(*driver));
  return bench::calibrate(made);
}

} // namespace mgpu::pipeline
