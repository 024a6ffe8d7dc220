// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune calibrate`: a target as a topology, measured.
#include "bench/measure/Environment.h"
#include "device/cuda/CudaDriver.h"
#include "support/FileIO.h"
#include "tools/mgpu-tune/CubinCache.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/Target.h"
#include "tuner/session/Calibrate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <sys/mman.h>
#include <unistd.h>

namespace mgpu::tune {

namespace {

using planner::DagNode;
using planner::KernelCall;

constexpr std::string_view kernelsText =
#include "tools/mgpu-tune/Calibrate.inc"
    ;

/// What calibrate.mlir says of its kernels, in its order.
constexpr double arithmeticFlops = 65536.0 * 4 * 512 * 2;
struct Shape {
  const char *type;
  uint32_t m, n, k;
};
constexpr Shape shapes[] = {{"f32", 512, 512, 512}, {"bf16", 256, 256, 256}};

/// A file in memory, for the importer, which takes names.
class MemoryFile {
public:
  static Result<MemoryFile> create(std::string_view text) {
    MemoryFile file(memfd_create("calibrate.mlir", MFD_CLOEXEC));
    if (file.descriptor < 0 || write(file.descriptor, text.data(),
                                     text.size()) != ssize_t(text.size()))
      return fail(ErrorKind::Absent, "there is no memory for a file of the "
                                     "kernels to compile");
    return file;
  }
  ~MemoryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }
  MemoryFile(MemoryFile &&other) noexcept
      : descriptor(std::exchange(other.descriptor, -1)) {}
  MemoryFile &operator=(MemoryFile &&) = delete;
  std::string path() const {
    return fmt::format("/proc/self/fd/{}", descriptor);
  }

private:
  explicit MemoryFile(int descriptor) : descriptor(descriptor) {}
  int descriptor;
};

Result<Program> loadKernels(const Options &options) {
  Options loading = options;
  if (!options.file.empty())
    return loadProgram(loading, true);
  MGPU_TRY_ASSIGN(MemoryFile file, MemoryFile::create(kernelsText));
  loading.file = file.path();
  return loadProgram(loading, true);
}

tuner::CalibrationKernel kernelOf(const planner::Dag &dag, const DagNode &node,
                                  const std::vector<std::byte> &object) {
  const auto &call = std::get<KernelCall>(node.work);
  tuner::CalibrationKernel out;
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
  return out;
}

/// What no measurement says.
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
  if (size_t(cuda.cards[0]) >= machine.cards.size())
    return fail(ErrorKind::Absent,
                fmt::format("there is no card {}", cuda.cards[0]));
  const device::CudaMachine::Card &card = machine.cards[size_t(cuda.cards[0])];
  about.device.name = card.name;
  about.device.memoryBytes = card.memoryBytes / devices;
  about.device.smCount = card.multiprocessors;
  about.device.architecture =
      uint32_t(std::atoi(driver.architecture().c_str() + 3)); // of "sm_90"
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

} // namespace

Result<int> runCalibrate(const Options &options) {
  MGPU_TRY(checkFiles(options));
  std::string target = options.target;
  if (target.empty())
    target = fmt::format("host:{}",
                         std::clamp(bench::readEnvironment().cores, 2u, 8u));
  uint32_t devices = 1;
  if (isCudaTarget(target)) {
    MGPU_TRY_ASSIGN(CudaTarget cuda, parseCudaTarget(target));
    if (cuda.cards.size() > 1)
      return fail(ErrorKind::Unsupported,
                  fmt::format("target '{}': one card is calibrated at a time, "
                              "as cuda:{} or cuda:{}/N",
                              target, cuda.cards[0], cuda.cards[0]));
    devices = cuda.devicesOnCard;
  } else {
    MGPU_TRY_ASSIGN(devices, targetDevices(target, 1));
  }
  OpenOptions how;
  how.profiles = true;
  MGPU_TRY_ASSIGN(auto driver, openTarget(target, devices, how));
  MGPU_TRY_ASSIGN(Program program, loadKernels(options));
  std::vector<std::vector<std::byte>> objects;
  if (driver->architecture().empty()) {
    MGPU_TRY_ASSIGN(HostKernels kernels, hostKernels(program, ""));
    objects = std::move(kernels.objects);
  } else {
    auto cache = openCubinCache(options);
    MGPU_TRY_ASSIGN(kernels::CudaObjects kernels,
                    cudaKernels(program, driver->architecture(), cache.get()));
    objects = std::move(kernels.objects);
  }
  std::vector<tuner::CalibrationKernel> kernels;
  for (const DagNode &node : program.dag.nodes)
    if (const auto *call = std::get_if<KernelCall>(&node.work))
      kernels.push_back(
          kernelOf(program.dag, node, objects[call->kernel.value]));
  if (kernels.size() != 2 + std::size(shapes))
    return fail(ErrorKind::Invalid,
                fmt::format("'{}' has {} kernels: give a bundle of "
                            "tools/mgpu-tune/calibrate.mlir of this version",
                            options.file, kernels.size()));
  kernels[1].flops = arithmeticFlops;
  std::vector<tuner::CalibrationMatmul> matmuls;
  for (size_t k = 0; k < std::size(shapes); ++k)
    matmuls.push_back({shapes[k].type, shapes[k].m, shapes[k].n, shapes[k].k,
                       std::move(kernels[2 + k])});
  MGPU_TRY_ASSIGN(device::Topology about, describe(target, devices, *driver));
  about.name = options.calibrationFile;
  tuner::CalibrationInput input{
      *driver,
      std::move(kernels[0]),
      std::move(kernels[1]),
      std::move(matmuls),
      std::move(about),
      fmt::format("measured by calibrate on {:%Y-%m-%d}"
                  ", on {} ({}): ",
                  fmt::gmtime(std::time(nullptr)), target, driver->timedBy())};
  input.progress = [](const std::string &text) {
    fmt::print(stderr, "mgpu-tune: {}\n", text);
  };
  MGPU_TRY_ASSIGN(device::Topology measured, tuner::calibrate(input));
  const std::string text = device::topologyText(measured);
  // What is written is what can be read.
  MGPU_TRY(device::parseTopology(text, options.calibrationFile));
  MGPU_TRY(writeFileAtomic(options.calibrationFile, text));
  if (options.json)
    fmt::print("{}", text);
  else
    print(measured, options.calibrationFile);
  return 0;
}

} // namespace mgpu::tune
