// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune calibrate`: a target as a topology, measured.
#include "bench/measure/Environment.h"
#include "pipeline/CalibrateTarget.h"
#include "pipeline/CalibrationKernels.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/OwnKernels.h"
#include "pipeline/Target.h"
#include "support/Descriptor.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JoinRanks.h"
#include "tools/mgpu-tune/OpenRanks.h"
#include "tools/mgpu-tune/TerminalLine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace mgpu::pipeline {

namespace {

void print(const device::Topology &t, const std::string &path) {
  fmt::print("{}, {} device{}\n", t.device.name, t.devices,
             t.devices == 1 ? "" : "s");
  fmt::print("memory      {:.3f} GB/s\nFP32        {:.3f} GFLOP/s\n"
             "BF16        {:.3f} GFLOP/s\n",
             t.device.memoryBytesPerSecond / 1e9, t.device.flopsPerSecond / 1e9,
             t.device.bf16FlopsPerSecond / 1e9);
  fmt::print("link        {:.3f} GB/s\nhost link   {:.3f} GB/s\n",
             t.link.bytesPerSecond / 1e9, t.hostLink.bytesPerSecond / 1e9);
  const device::Topology::Calibration &c = *t.calibration;
  fmt::print("launch      {:.3f} us\ncopy from   {:.3f} us\n", c.launchUs,
             c.copyLatencyUs);
  fmt::print("{} times of collectives, {} of products\n", c.collectives.size(),
             c.matmuls.size());
  for (const auto &each : c.contention)
    fmt::print("{} beside {}: {:.2f} times as long\n", each.work, each.beside,
               each.factor);
  for (const auto &each : c.besideKernel)
    fmt::print(
        "kernel beside one of {} multiprocessors: {:.2f} times as long\n",
        each.multiprocessors, each.factor);
  fmt::print("written to {}: --target sim:{}{}\n", path,
             path.find('/') == std::string::npos && !path.ends_with(".json")
                 ? "./"
                 : "",
             path);
}

/// What is calibrated.
struct Calibrated {
  std::string target;
  CudaTarget cuda; ///< set for GPUs
  uint32_t devices = 1;
  bool areGpus() const {
    return cuda.gpus.size() > 1 || (theRanks() && !cuda.gpus.empty());
  }
};

/// A GPU for each rank, or those of the target on each machine.
Result<GpuRanks> ranksGpus(const Calibrated &what,
                           const CalibrateOptions &options) {
  MGPU_TRY_ASSIGN(RankGpus here,
                  gpusOfRank(what.target, what.devices, *theRanks()));
  std::optional<std::string> database; // rank 0 alone writes it
  if (isFirstRank())
    database = options.load.database;
  return GpuRanks{std::move(here),
                  std::chrono::milliseconds(options.deadlineSeconds * 1000),
                  ownCompiler(std::move(database))};
}

Result<Calibrated> calibrated(const CalibrateOptions &options) {
  Calibrated out;
  out.target = options.load.target;
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
    if (options.load.given.contains("--deadline") && !theRanks())
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

/// All ranks or GPUs, or one process. `kernels` and `described`, the GPUs here,
/// are what `input` measures with.
Result<device::Topology> measure(const Calibrated &what,
                                 const CalibrateOptions &options,
                                 const bench::MakeCalibration &input,
                                 CalibrationKernels &kernels,
                                 std::string &described) {
  if (what.areGpus() && theRanks()) {
    MGPU_TRY_ASSIGN(const GpuRanks gpus, ranksGpus(what, options));
    described = targetOf(gpus.here.gpus);
    MGPU_TRY_ASSIGN(const std::string architecture,
                    architectureOf(gpus.here.gpus));
    MGPU_TRY_ASSIGN(kernels, compileCalibration(options.load, architecture));
    return calibrateGpusTogether(gpus, options.nccl, input);
  }
  if (what.areGpus()) {
    MGPU_TRY_ASSIGN(RanksToOpen opening, ranksToOpen(what.cuda.gpus, options,
                                                     options.load.database));
    MGPU_TRY_ASSIGN(const std::string architecture,
                    architectureOf(what.cuda.gpus));
    MGPU_TRY_ASSIGN(kernels, compileCalibration(options.load, architecture));
    return bench::calibrateRanks(what.devices, std::move(opening.open),
                                 std::move(opening.how), input);
  }
  if (theRanks()) {
    MGPU_TRY_ASSIGN(kernels, compileCalibration(options.load, ""));
    return calibrateTogether(what.target, what.devices, input);
  }
  OpenOptions how;
  how.profiles = true;
  how.compile = ownCompiler(options.load.database);
  how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  MGPU_TRY_ASSIGN(auto driver, openTarget(what.target, what.devices, how));
  MGPU_TRY_ASSIGN(kernels,
                  compileCalibration(options.load, driver->architecture()));
  MGPU_TRY_ASSIGN(const bench::CalibrationInput made, input(*driver));
  return bench::calibrate(made);
}

} // namespace

Result<int> runCalibrate(const CalibrateOptions &options) {
  MGPU_TRY(filesRead(options.load).write("-o", options.output));
  MGPU_TRY(joinAsked(options));
  MGPU_TRY_ASSIGN(const Calibrated what, calibrated(options));
  const std::string &target = what.target;
  std::string described = target; // the GPUs here
  CalibrationKernels kernels;
  // Several GPUs' processes write what they say themselves to nowhere.
  const Descriptor words(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  TerminalLine line(words.value);
  const auto start = std::chrono::steady_clock::now();
  auto input = [&](device::Driver &driver) -> Result<bench::CalibrationInput> {
    MGPU_TRY_ASSIGN(device::Topology about,
                    describeTarget(described, what.devices, driver));
    about.name = options.output;
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
    out.progress = [&](const std::string &text) {
      if (line.isTerminal())
        line.show(fmt::format("{}, {:%M:%S} so far", text,
                              std::chrono::floor<std::chrono::seconds>(
                                  std::chrono::steady_clock::now() - start)));
      else
        dprintf(words.value, "mgpu-tune: %s\n", text.c_str());
    };
    return out;
  };
  MGPU_TRY_ASSIGN(const device::Topology measured,
                  measure(what, options, input, kernels, described));
  if (!isFirstRank())
    return 0;
  line.clear();
  const std::string text = device::topologyText(measured);
  // What is written is what can be read.
  MGPU_TRY(device::parseTopology(text, options.output));
  MGPU_TRY(writeFileAtomic(options.output, text));
  if (options.json)
    fmt::print("{}", text);
  else
    print(measured, options.output);
  return 0;
}

} // namespace mgpu::pipeline
