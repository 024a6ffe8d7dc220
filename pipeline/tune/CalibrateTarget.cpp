// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/CalibrateTarget.h"

#include "bench/measure/Environment.h"
#include "bench/profile/CalibrateRanks.h"
#include "device/api/MessageRendezvous.h"
#include "device/cuda/CudaDriver.h"
#include "device/host/HostDriver.h"
#include "pipeline/build/CalibrationKernels.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/program/Version.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/Target.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace mgpu::pipeline {

/// Finds the facts that no measurement tells. For GPUs it asks the driver.
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

/// "cuda:0,1" of the GPUs that this rank has.
static std::string targetOf(const std::vector<int> &gpus) {
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

/// GPUs of which each rank has some, all alike. All find the same.
static Result<device::Topology>
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

namespace {

/// The machine and the programs that it is calibrated by.
struct Calibrated {
  std::string target;
  CudaTarget cuda; ///< set for GPUs
  uint32_t devices = 1;
  bool areGpus() const {
    return cuda.gpus.size() > 1 || (theRanks() && !cuda.gpus.empty());
  }
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
    if (theRanks())
      out.devices = out.target == "cuda" ? theRanks()->count()
                                         : out.devices * numRankNodes();
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

/// A GPU for each rank, or those of the target on each machine.
Result<GpuRanks> ranksGpus(const Calibrated &what, const LoadOptions &load,
                           const GpuOptions &options) {
  MGPU_TRY_ASSIGN(RankGpus here,
                  gpusOfRank(what.target, what.devices, *theRanks()));
  std::optional<std::string> database; // rank 0 alone writes it
  if (isFirstRank())
    database = load.database;
  return GpuRanks{std::move(here),
                  std::chrono::milliseconds(options.deadlineSeconds * 1000),
                  ownCompiler(std::move(database))};
}

/// All ranks or GPUs, or one process. `kernels` and `described`, the GPUs here,
/// are what `input` measures with.
Result<device::Topology>
measure(const Calibrated &what, const LoadOptions &load,
        const GpuOptions &options, const bench::MakeCalibration &input,
        CalibrationKernels &kernels, std::string &described) {
  if (what.areGpus() && theRanks()) {
    MGPU_TRY_ASSIGN(const GpuRanks gpus, ranksGpus(what, load, options));
    described = targetOf(gpus.here.gpus);
    MGPU_TRY_ASSIGN(const std::string architecture,
                    architectureOf(gpus.here.gpus));
    MGPU_TRY_ASSIGN(kernels, compileCalibration(load, architecture));
    return calibrateGpusTogether(gpus, options.nccl, input);
  }
  if (what.areGpus()) {
    MGPU_TRY_ASSIGN(RanksToOpen opening,
                    ranksToOpen(what.cuda.gpus, options, load.database));
    MGPU_TRY_ASSIGN(const std::string architecture,
                    architectureOf(what.cuda.gpus));
    MGPU_TRY_ASSIGN(kernels, compileCalibration(load, architecture));
    return bench::calibrateRanks(what.devices, std::move(opening.open),
                                 std::move(opening.how), input);
  }
  if (theRanks()) {
    MGPU_TRY_ASSIGN(kernels, compileCalibration(load, ""));
    return calibrateTogether(what.target, what.devices, input);
  }
  OpenOptions how;
  how.profiles = true;
  how.compile = ownCompiler(load.database);
  how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  MGPU_TRY_ASSIGN(auto driver, openTarget(what.target, what.devices, how));
  MGPU_TRY_ASSIGN(kernels, compileCalibration(load, driver->architecture()));
  MGPU_TRY_ASSIGN(const bench::CalibrationInput made, input(*driver));
  return bench::calibrate(made);
}

} // namespace

Result<device::Topology>
calibrateTarget(const LoadOptions &load, const GpuOptions &options,
                const std::string &name,
                const std::function<void(const std::string &)> &progress) {
  MGPU_TRY_ASSIGN(const Calibrated what, calibrated(load, options));
  std::string described = what.target; // the GPUs here
  CalibrationKernels kernels;
  auto input = [&](device::Driver &driver) -> Result<bench::CalibrationInput> {
    MGPU_TRY_ASSIGN(device::Topology about,
                    describeTarget(described, what.devices, driver));
    about.name = name;
    bench::CalibrationInput out{
        driver,
        kernels.memory,
        kernels.arithmetic,
        kernels.matmuls,
        std::move(about),
        fmt::format("measured by calibrate on {:%Y-%m-%d}"
                    ", on {} ({}): ",
                    fmt::gmtime(std::time(nullptr)), what.target,
                    driver.timedBy())};
    out.largestBytes = std::max(out.largestBytes, bytesOf(kernels.memory));
    // Processes of the host do not share one memory.
    if (!isCudaTarget(what.target) && !theRanks() && !kernels.host.empty()) {
      out.host = kernels.host;
      out.about.link.kind = device::LinkKind::Memory;
      out.secondsPerFigure = 0.06;
    }
    out.progress = progress;
    return out;
  };
  return measure(what, load, options, input, kernels, described);
}

} // namespace mgpu::pipeline
