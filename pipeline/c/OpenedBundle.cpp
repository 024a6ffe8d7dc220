// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/c/OpenedBundle.h"

#include "bench/measure/Pinning.h"
#include "capture/graph/Communication.h"
#include "capture/replay/Workspaces.h"
#include "device/cuda/api/Libraries.h"
#include "device/host/CpuLevel.h"
#include "kernels/compile/KernelRecipe.h"
#include "pipeline/c/ThreadedGpus.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/Workers.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

/// The bundle's kernels for GPUs.
static Result<std::vector<std::vector<std::byte>>>
cudaObjects(capture::Bundle &bundle, const std::string &arch) {
  MGPU_TRY_ASSIGN(auto cubins, bundle.cubins(arch));
  MGPU_TRY_ASSIGN(auto texts, bundle.cudaTexts());
  return kernels::cudaObjects(texts, cubins, arch);
}

static Result<device::CudaCompile> ownCompiler(capture::Bundle &bundle) {
  MGPU_TRY_ASSIGN(capture::OwnCubins own, bundle.ownCubins());
  return [own = std::move(own)](
             const std::string &source, const std::string &name,
             const std::string &arch) -> Result<std::vector<std::byte>> {
    if (auto at = own.find(capture::ownKey(arch, source)); at != own.end())
      return at->second;
    return kernels::compileCubin(source, name, arch);
  };
}

Result<void> checkDeadline(const std::string &target,
                           std::chrono::milliseconds deadline) {
  if (deadline.count() == 0 || device::isCudaTarget(target))
    return {};
  return fail(ErrorKind::Unsupported,
              "a replay on the host has no deadline, as no thread of it can be "
              "stopped: leave deadline_ms at 0");
}

/// Usage for what is not of the target, or not to be had.
static Result<void> checkHow(const std::string &target,
                             const OpenedBundle::How &how) {
  if (device::isCudaTarget(target) &&
      (how.threads > 0 || !how.cpu.empty() || how.pins))
    return fail(ErrorKind::Usage,
                "threads, cpu and pin are of the host: leave them out on GPUs");
  return checkWorkers(how.threads, how.cpu, "");
}

Result<std::unique_ptr<OpenedBundle>>
OpenedBundle::open(const std::string &path, const std::string &target,
                   const How &how) {
  MGPU_TRY_ASSIGN(const device::NcclOptions settings,
                  device::parseNccl(how.nccl));
  MGPU_TRY(checkDeadline(target, how.deadline));
  MGPU_TRY(checkHow(target, how));
  MGPU_TRY_ASSIGN(capture::Bundle bundle, capture::Bundle::open(path));
  std::unique_ptr<OpenedBundle> out(new OpenedBundle);
  out->deadline = how.deadline;
  MGPU_TRY(out->readBundle(bundle));
  const std::string kind = target.substr(0, target.find(':'));
  if (!kind.empty() && kind != "host" && kind != "cuda")
    return fail(ErrorKind::Usage,
                fmt::format("unknown target '{}'; use host, host:N, cuda, "
                            "cuda:K, cuda:K,L or cuda:K/N",
                            target));
  MGPU_TRY_ASSIGN(auto several,
                  device::severalGpus(target, out->theProgram.dag.numDevices));
  if (!several && !how.nccl.empty())
    return fail(ErrorKind::Usage,
                fmt::format("NCCL's settings ({}) are for several GPUs: open "
                            "the program on cuda:0,1, or without",
                            how.nccl));
  MGPU_TRY(several ? out->openRanks(bundle, *several, settings)
           : device::isCudaTarget(target) ? out->openGpu(bundle, target)
                                          : out->openHost(bundle, target, how));
  return out;
}

Result<void> OpenedBundle::readBundle(capture::Bundle &bundle) {
  MGPU_TRY_ASSIGN(thePlan, bundle.plan());
  theProgram = bundle.takeProgram();
  return {};
}

Result<void> checkShared(const std::string &target) {
  if (target.empty() || target == "host" || target.starts_with("host:") ||
      device::isCudaTarget(target))
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("target '{}': several processes share devices of the "
                          "host or GPUs: open the program on host, cuda or "
                          "cuda:K,L",
                          target));
}

Result<std::unique_ptr<OpenedBundle>>
OpenedBundle::openShared(const std::string &path, const std::string &target,
                         const How &how, const Meeting &meeting) {
  MGPU_TRY_ASSIGN(const device::NcclOptions settings,
                  device::parseNccl(how.nccl));
  MGPU_TRY(checkShared(target));
  MGPU_TRY(checkDeadline(target, how.deadline));
  if (how.threads > 0 || !how.cpu.empty() || how.pins)
    return fail(ErrorKind::Usage,
                "threads, cpu and pin are of a program that is alone: leave "
                "them out with ranks");
  const bool areGpus = device::isCudaTarget(target);
  if (!areGpus && !how.nccl.empty())
    return fail(ErrorKind::Usage,
                fmt::format("NCCL's settings ({}) are for GPUs, and ranks "
                            "share the host",
                            how.nccl));
  std::unique_ptr<OpenedBundle> out(new OpenedBundle);
  out->deadline = how.deadline;
  MGPU_TRY_ASSIGN(out->ranks, pipeline::meetRanks(meeting));
  // The others wait for this rank, so they are told why it does not come.
  if (Result<void> done = areGpus ? out->openGpuPart(path, target, settings)
                                  : out->openPart(path, target);
      !done) {
    out->ranks->abort(done.error().message);
    return tl::unexpected(done.error());
  }
  return out;
}

Result<void> OpenedBundle::openPart(const std::string &path,
                                    const std::string &target) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, capture::Bundle::open(path));
  MGPU_TRY(readBundle(bundle));
  MGPU_TRY(pipeline::targetDevices(target.empty() ? "host" : target,
                                   theProgram.dag.numDevices));
  auto prepareFirst = [&]() -> Result<Prepared> {
    MGPU_TRY_ASSIGN(auto kernels, bundle.hostKernels(device::cpuLevels()));
    Prepared out;
    out.plan = std::move(thePlan);
    out.kernels = std::move(kernels.objects);
    out.cpu = kernels.level;
    out.threads = bundle.threads();
    return out;
  };
  MGPU_TRY_ASSIGN(theRunner, pipeline::shareDevices(
                                 theProgram.dag, prepareFirst, *ranks, shared));
  return {};
}

Result<void> OpenedBundle::openGpuPart(const std::string &path,
                                       const std::string &target,
                                       const device::NcclOptions &nccl) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, capture::Bundle::open(path));
  MGPU_TRY(readBundle(bundle));
  MGPU_TRY_ASSIGN(
      const RankGpus here,
      pipeline::gpusOfRank(target, theProgram.dag.numDevices, *ranks));
  MGPU_TRY_ASSIGN(device::CudaCompile compile, ownCompiler(bundle));
  auto open = [&](const Prepared &) {
    return gpusInThreads(here.gpus, here.part.first, nccl, compile, deadline);
  };
  auto prepareFirst = [&](const std::string &arch) -> Result<Prepared> {
    Prepared out;
    MGPU_TRY_ASSIGN(out.kernels, cudaObjects(bundle, arch));
    out.plan = std::move(thePlan);
    out.cpu = arch;
    return out;
  };
  MGPU_TRY_ASSIGN(theRunner, pipeline::shareGpus(theProgram.dag, here, open,
                                                 prepareFirst, shared));
  return {};
}

Result<void>
OpenedBundle::run(std::unique_ptr<device::Driver> driver,
                  std::span<const std::vector<std::byte>> kernels) {
  MGPU_TRY_ASSIGN(capture::Replayer replayer,
                  capture::Replayer::create(theProgram.dag, thePlan, kernels,
                                            *driver, {},
                                            capture::Arguments::Later));
  theRunner = capture::runOnOneTarget(std::move(driver), std::move(replayer),
                                      theProgram.dag, thePlan);
  return {};
}

Result<void> OpenedBundle::openHost(capture::Bundle &bundle,
                                    const std::string &target, const How &how) {
  std::vector<std::string_view> levels = device::cpuLevels();
  if (!how.cpu.empty())
    levels = {how.cpu};
  MGPU_TRY_ASSIGN(auto kernels, bundle.hostKernels(levels));
  OpenOptions open;
  open.threads = how.threads > 0        ? how.threads
                 : bundle.threads() > 0 ? bundle.threads()
                                        : threadsFor(thePlan, theProgram.dag);
  open.pins = how.pins;
  std::vector<int> cpus;
  MGPU_TRY_ASSIGN(
      auto driver,
      pipeline::openHost(target, theProgram.dag.numDevices, open, cpus));
  return run(std::move(driver), kernels.objects);
}

Result<std::vector<std::vector<std::byte>>>
OpenedBundle::takeCubins(capture::Bundle &bundle, const std::string &arch) {
  MGPU_TRY_ASSIGN(auto kernels, cudaObjects(bundle, arch));
  capture::addWorkspaces(theProgram.dag, thePlan, kernels);
  return kernels;
}

Result<void> OpenedBundle::openGpu(capture::Bundle &bundle,
                                   const std::string &target) {
  MGPU_TRY_ASSIGN(device::CudaTarget gpu,
                  device::oneGpu(target, theProgram.dag.numDevices));
  device::CudaOptions options;
  options.gpu = gpu.gpus[0];
  options.numDevices = gpu.devicesOnGpu;
  if (deadline.count() > 0)
    options.deadline = deadline;
  MGPU_TRY_ASSIGN(options.compile, ownCompiler(bundle));
  MGPU_TRY_ASSIGN(auto driver, device::createCudaDriver(options));
  MGPU_TRY_ASSIGN(auto kernels, takeCubins(bundle, driver->architecture()));
  return run(std::move(driver), kernels);
}

Result<void> OpenedBundle::openRanks(capture::Bundle &bundle,
                                     const std::vector<int> &ordinals,
                                     const device::NcclOptions &nccl) {
  MGPU_TRY(
      capture::checkAcrossRanks(theProgram.dag)); // before CUDA is looked for
  MGPU_TRY_ASSIGN(std::string arch, device::architectureOf(ordinals));
  MGPU_TRY_ASSIGN(device::CudaCompile compile, ownCompiler(bundle));
  MGPU_TRY_ASSIGN(
      RanksToOpen gpus,
      gpusInThreads(ordinals, 0, nccl, std::move(compile), deadline));
  MGPU_TRY_ASSIGN(auto kernels, takeCubins(bundle, arch));
  MGPU_TRY_ASSIGN(theRunner, capture::Ranks::start(
                                 theProgram.dag, thePlan, std::move(kernels),
                                 std::move(gpus.open), std::move(gpus.how)));
  return {};
}

} // namespace mgpu::pipeline
