// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune calibrate`: a target as a topology, measured.
#include "bench/measure/Environment.h"
#include "bench/profile/CalibrateRanks.h"
#include "device/api/Agreement.h"
#include "device/cuda/CudaDriver.h"
#include "device/host/HostDriver.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/Kernels.h"
#include "pipeline/Load.h"
#include "pipeline/Version.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JoinRanks.h"
#include "tools/mgpu-tune/OpenRanks.h"
#include "tools/mgpu-tune/TerminalLine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mgpu::pipeline {

namespace {

using planner::DagNode;
using planner::KernelCall;

constexpr std::string_view hostKernels =
#include "tools/mgpu-tune/Calibrate-host.inc"
    ;
constexpr std::string_view gpuKernels =
#include "tools/mgpu-tune/Calibrate-gpu.inc"
    ;

/// What calibrate.mlir says of its kernels, in its order: for each number of
/// the second four chains of 512 multiplications and additions; products of
/// square matrices.
constexpr double flopsOfNumber = 4 * 512 * 2;
struct Element {
  const char *type;
  uint64_t bytes;
};
constexpr Element products[] = {{"f32", 4}, {"bf16", 2}};

class Descriptor {
public:
  explicit Descriptor(int value) : value(value) {}
  ~Descriptor() {
    if (value >= 0)
      close(value);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  const int value;
};

Result<LoadedProgram> loadKernels(const LoadOptions &options, bool isGpu) {
  LoadOptions loading = options;
  loading.racesAreErrors = true;
  if (!options.file.empty())
    return loadProgram(loading);
  // In memory, for the importer, which takes names.
  const Descriptor file(memfd_create("calibrate.mlir", MFD_CLOEXEC));
  const std::string_view text = isGpu ? gpuKernels : hostKernels;
  if (file.value < 0 ||
      write(file.value, text.data(), text.size()) != ssize_t(text.size()))
    return fail(ErrorKind::Absent, "there is no memory for a file of the "
                                   "kernels to compile");
  loading.file = fmt::format("/proc/self/fd/{}", file.value);
  return loadProgram(loading);
}

/// `workspaceBytes` is what a call needs beside its arguments, and has as one
/// more (planner/plan/Workspace.h).
bench::CalibrationKernel kernelOf(const planner::Dag &dag, const DagNode &node,
                                  const std::vector<std::byte> &object,
                                  uint64_t workspaceBytes) {
  const auto &call = std::get<KernelCall>(node.work);
  bench::CalibrationKernel out;
  out.name = dag.kernels[call.kernel.value].name;
  out.object = object;
  out.grid = call.grid;
  out.flops = node.flops;
  out.bytes = double(node.bytesRead) + double(node.bytesWritten);
  for (const planner::KernelArgument &argument : call.arguments) {
    if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
      out.arguments.push_back({0, *bits});
      continue;
    }
    const planner::Buffer &buffer =
        dag.buffer(std::get<planner::BufferId>(argument.value));
    out.arguments.push_back({std::max<uint64_t>(buffer.sizeBytes, 1),
                             uint64_t(argument.offsetBytes)});
  }
  if (workspaceBytes > 0)
    out.arguments.push_back({workspaceBytes, 0});
  return out;
}

/// The bytes of each of its buffers.
uint64_t bytesOf(const bench::CalibrationKernel &kernel) {
  return kernel.arguments.empty() ? 0 : kernel.arguments.front().memoryBytes;
}

/// By calibrate.mlir, compiled for a target.
struct Kernels {
  bench::CalibrationKernel memory, arithmetic;
  std::vector<bench::CalibrationMatmul> matmuls;
};

/// `architecture` is the target's.
Result<Kernels> compileKernels(const LoadOptions &options,
                               const std::string &architecture) {
  MGPU_TRY_ASSIGN(LoadedProgram program,
                  loadKernels(options, !architecture.empty()));
  std::vector<std::vector<std::byte>> objects;
  std::vector<uint64_t> workspaceBytes(program.dag.kernels.size());
  if (architecture.empty()) {
    MGPU_TRY_ASSIGN(HostKernels kernels, pipeline::hostKernels(program, ""));
    objects = std::move(kernels.objects);
  } else {
    auto cache = openCubinCache(options.database);
    MGPU_TRY_ASSIGN(kernels::CudaObjects kernels,
                    cudaKernels(program, architecture, cache.get()));
    objects = std::move(kernels.objects);
    workspaceBytes = std::move(kernels.workspaceBytes);
  }
  std::vector<bench::CalibrationKernel> kernels;
  for (const DagNode &node : program.dag.nodes)
    if (const auto *call = std::get_if<KernelCall>(&node.work))
      kernels.push_back(kernelOf(program.dag, node, objects[call->kernel.value],
                                 workspaceBytes[call->kernel.value]));
  if (kernels.size() != 2 + std::size(products))
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has {} kernels: give a bundle of "
                            "tools/mgpu-tune/calibrate.mlir of this version",
                            options.file, kernels.size()));
  kernels[1].flops = flopsOfNumber * double(bytesOf(kernels[1]) / 4);
  Kernels out{std::move(kernels[0]), std::move(kernels[1]), {}};
  for (size_t k = 0; k < std::size(products); ++k) {
    const auto [type, bytes] = products[k];
    const auto edge =
        uint32_t(std::lround(std::sqrt(bytesOf(kernels[2 + k]) / bytes)));
    out.matmuls.push_back({type, edge, edge, edge, std::move(kernels[2 + k])});
  }
  return out;
}

/// What no measurement says. For GPUs it asks the driver.
Result<device::Topology> describe(const std::string &target, uint32_t devices,
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
  bool areGpus() const { return cuda.gpus.size() > 1; }
};

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

/// All ranks at once, each with as many of the host's devices. All find the
/// same.
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

} // namespace

Result<int> runCalibrate(const CalibrateOptions &options) {
  MGPU_TRY(filesRead(options.load).write("-o", options.output));
  MGPU_TRY(joinAsked(options, options.load));
  MGPU_TRY_ASSIGN(const Calibrated what, calibrated(options));
  const auto &[target, cuda, devices] = what;
  Kernels kernels;
  // Several GPUs' processes write what they say themselves to nowhere.
  const Descriptor words(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  TerminalLine line(words.value);
  const auto start = std::chrono::steady_clock::now();
  auto input = [&](device::Driver &driver) -> Result<bench::CalibrationInput> {
    MGPU_TRY_ASSIGN(device::Topology about, describe(target, devices, driver));
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
  device::Topology measured;
  if (what.areGpus()) {
    MGPU_TRY_ASSIGN(RanksToOpen opening,
                    ranksToOpen(cuda.gpus, options, options.load.database));
    MGPU_TRY_ASSIGN(const std::string architecture, architectureOf(cuda.gpus));
    MGPU_TRY_ASSIGN(kernels, compileKernels(options.load, architecture));
    MGPU_TRY_ASSIGN(measured,
                    bench::calibrateRanks(devices, std::move(opening.open),
                                          std::move(opening.how), input));
  } else if (theRanks()) {
    MGPU_TRY_ASSIGN(kernels, compileKernels(options.load, ""));
    MGPU_TRY_ASSIGN(measured, calibrateTogether(target, devices, input));
    if (!isFirstRank())
      return 0;
  } else {
    OpenOptions how;
    how.profiles = true;
    how.compile = ownCompiler(options.load.database);
    how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
    MGPU_TRY_ASSIGN(auto driver, openTarget(target, devices, how));
    MGPU_TRY_ASSIGN(kernels,
                    compileKernels(options.load, driver->architecture()));
    MGPU_TRY_ASSIGN(const bench::CalibrationInput made, input(*driver));
    MGPU_TRY_ASSIGN(measured, bench::calibrate(made));
  }
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
