// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/target/Target.h"

#include "device/cuda/CudaDriver.h"
#include "device/host/CpuLevel.h"
#include "device/host/HostDriver.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "planner/schedule/HostReplay.h"
#include "support/Affinity.h"
#include "support/Units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

namespace mgpu::pipeline {

namespace {

/// The GPU of a target that has room for the program.
Result<CudaTarget> findGpu(const std::string &target, uint32_t numDevices) {
  MGPU_TRY_ASSIGN(auto several, severalGpus(target, numDevices));
  if (several)
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': only run and replay take several "
                            "GPUs without --distributed; cuda:{}/{} is one as "
                            "so many devices",
                            target, several->front(), numDevices));
  return device::oneGpu(target, numDevices);
}

void warnUser(const std::string &sentence) {
  fmt::print(stderr, "mgpu-tune: warning: {}\n", sentence);
}

/// A CudaOptions::compile.
constexpr auto compile = [](auto &...what) {
  return kernels::compileCubin(what...);
};

Result<std::unique_ptr<device::Driver>> openGpu(const CudaTarget &cuda,
                                                const OpenOptions &how) {
  device::CudaOptions options;
  options.gpu = cuda.gpus[0];
  options.numDevices = cuda.devicesOnGpu;
  options.deadline = how.deadline;
  options.profiles = how.profiles;
  options.warn = warnUser;
  options.compile = how.compile ? how.compile : compile;
  return device::createCudaDriver(options);
}

} // namespace

Result<std::unique_ptr<device::Driver>>
openRank(int gpu, uint32_t rank, std::chrono::milliseconds deadline,
         const device::NcclOptions &nccl, std::function<Result<void>()> watch,
         device::CudaCompile compile) {
  // See CudaState::join(). The process is a worker of ours, and no one else's.
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1);
  device::CudaOptions options;
  options.gpu = gpu;
  options.only = DeviceId{int32_t(rank)};
  options.deadline = deadline;
  options.watch = std::move(watch);
  options.nccl = nccl;
  if (rank == 0) // the others would say the same
    options.warn = warnUser;
  options.compile = std::move(compile);
  return device::createCudaDriver(options);
}

Result<uint32_t> targetDevices(const std::string &target, uint32_t numDevices) {
  std::string kind = target.substr(0, target.find(':'));
  if (kind == "cuda") {
    MGPU_TRY_ASSIGN(auto several, severalGpus(target, numDevices));
    if (several)
      return uint32_t(several->size());
    MGPU_TRY_ASSIGN(CudaTarget cuda, findGpu(target, numDevices));
    return cuda.devicesOnGpu;
  }
  if (kind == "sim")
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': a machine that is not here can be "
                            "planned for, not run on",
                            target));
  if (!kind.empty() && kind != "host")
    return fail(ErrorKind::Usage,
                fmt::format("unknown target '{}'; use host, host:N, cuda, "
                            "cuda:K, cuda:K,L or cuda:K/N",
                            target));
  return device::hostTargetDevices(target, numDevices);
}

Result<std::unique_ptr<device::Driver>> openTarget(const std::string &target,
                                                   uint32_t numDevices,
                                                   const OpenOptions &options) {
  if (isCudaTarget(target)) {
    MGPU_TRY_ASSIGN(CudaTarget cuda, findGpu(target, numDevices));
    return openGpu(cuda, options);
  }
  MGPU_TRY_ASSIGN(uint32_t devices, targetDevices(target, numDevices));
  return device::createHostDriver(devices, options.threads, options.workerCpus);
}

std::string idleText(uint32_t used, uint32_t devices) {
  if (used >= devices)
    return "";
  return fmt::format(
      "idle       {} of {} devices: the program is for {}; give its arguments "
      "shardings (sdy, spmd.layout), or --devices {} where it has some "
      "(docs/tensor-programs.md)\n",
      devices - used, devices, used, devices);
}

uint32_t streamsOf(const std::string &target, uint32_t wished) {
  constexpr uint32_t channels = 8;
  auto cuda = parseCudaTarget(target);
  if (!cuda)
    return wished;
  return std::clamp(channels / cuda->devicesOnGpu, 1u, wished);
}

Result<void> checkWorkers(uint32_t threads, const std::string &cpu,
                          const char *where) {
  if (threads > usableCores())
    return fail(ErrorKind::Usage,
                fmt::format("{}threads {}: this process may use {} (affinity "
                            "and control group)",
                            where, threads, counted(usableCores(), "CPU")));
  const auto levels = device::cpuLevels();
  if (!cpu.empty() && std::ranges::find(levels, cpu) == levels.end())
    return fail(ErrorKind::Usage,
                fmt::format("{}cpu {}: this processor does not run it; it runs "
                            "{}",
                            where, cpu, fmt::join(levels, ", ")));
  return {};
}

Result<void> checkWorkersOf(const std::string &target, uint32_t threads,
                            const std::string &cpu, bool pins) {
  if (device::isCudaTarget(target) && (threads > 0 || !cpu.empty() || pins))
    return fail(ErrorKind::Usage,
                "threads, cpu and pin are of the host: leave them out on GPUs");
  return checkWorkers(threads, cpu, "");
}

uint32_t threadsFor(const planner::Plan &plan, const planner::Dag &dag) {
  return planner::usefulThreads(plan, dag,
                                std::min(dag.numDevices, usableCores()));
}

} // namespace mgpu::pipeline
