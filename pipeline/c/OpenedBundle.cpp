// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/c/OpenedBundle.h"

#include "bench/measure/Environment.h"
#include "capture/graph/Communication.h"
#include "capture/replay/Workspaces.h"
#include "device/cuda/api/Libraries.h"
#include "device/host/CpuLevel.h"
#include "kernels/compile/KernelRecipe.h"
#include "pipeline/c/Calls.h"
#include "pipeline/c/ThreadedGpus.h"
#include "pipeline/program/Roles.h"
#include "pipeline/target/Target.h"

#include <algorithm>
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
              "processes that share the host wait for each other as long as "
              "mgt_ranks says: leave deadline_ms at 0");
}

MemoryUse memoryOf(const planner::Program &program, const planner::Plan &plan) {
  MemoryUse out;
  std::vector<uint64_t> onDevice = plan.arenaBytes;
  for (const planner::Buffer &buffer : program.dag.buffers)
    if (buffer.device.isHost())
      out.host += buffer.sizeBytes;
    else if (!planner::isInArena(buffer))
      onDevice[size_t(buffer.device.value)] += buffer.sizeBytes;
  for (const uint64_t bytes : onDevice) {
    out.devices += bytes;
    out.mostOfDevice = std::max(out.mostOfDevice, bytes);
  }
  return out;
}

/// Absent where the buffers take more than `most` bytes.
static Result<void> checkMemory(const planner::Program &program,
                                const planner::Plan &plan,
                                const std::string &target, uint64_t most) {
  const MemoryUse use = memoryOf(program, plan);
  const bool isHost = !device::isCudaTarget(target),
             isShared = target.find('/') != std::string::npos;
  const uint64_t taken = isHost     ? use.devices + use.host
                         : isShared ? use.devices
                                    : use.mostOfDevice;
  if (taken <= most)
    return {};
  return fail(
      ErrorKind::Absent,
      fmt::format("the program's buffers take {} bytes {}, and `memory` is {} "
                  "bytes: allow more, or make the bundle again with --memory",
                  taken, isHost ? "of the host" : "of a GPU", most));
}

/// Gives arguments other roles, none of which may change the plan.
static Result<void> changeRoles(planner::Program &program,
                                const std::string &roles) {
  RoleOptions options;
  for (const std::string &each : wordsOf(roles)) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos)
      return fail(ErrorKind::Usage,
                  fmt::format("roles: '{}' is not name=role", each));
    options.rolePatterns.emplace_back(each.substr(0, equals),
                                      each.substr(equals + 1));
  }
  planner::Program changed = program;
  MadeResident made;
  MGPU_TRY(applyRoles(changed, options, made));
  if (changed.dag != program.dag)
    return fail(ErrorKind::Unsupported,
                fmt::format("roles '{}' change what is copied when, and so the "
                            "plan: make the bundle again with these as --role",
                            roles));
  program = std::move(changed);
  return {};
}

Result<std::unique_ptr<OpenedBundle>>
OpenedBundle::open(const Source &source, const std::string &target,
                   const How &how) {
  MGPU_TRY_ASSIGN(const device::NcclOptions settings,
                  device::parseNccl(how.nccl));
  MGPU_TRY(checkWorkersOf(target, how.threads, how.cpu, how.pins));
  MGPU_TRY_ASSIGN(capture::Bundle bundle, source.open());
  std::unique_ptr<OpenedBundle> out(new OpenedBundle);
  out->deadline = how.deadline;
  out->target = target.empty() ? "host" : target;
  MGPU_TRY(out->readBundle(bundle, how));
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
  MGPU_TRY(several ? out->openRanks(bundle, *several, settings, how.audits)
           : device::isCudaTarget(target)
               ? out->openGpu(bundle, target, how.audits)
               : out->openHost(bundle, target, how));
  for (planner::Buffer &buffer : out->theProgram.dag.buffers)
    buffer.contents = {}; // the target has them
  return out;
}

Result<void> OpenedBundle::readBundle(capture::Bundle &bundle, const How &how) {
  MGPU_TRY_ASSIGN(thePlan, bundle.plan());
  origin = bundle.origin();
  origin.text.clear();
  hash = bundle.hash();
  theProgram = bundle.takeProgram();
  if (!how.roles.empty())
    MGPU_TRY(changeRoles(theProgram, how.roles));
  if (how.memory)
    MGPU_TRY(checkMemory(theProgram, thePlan, target, *how.memory));
  return {};
}

Facts OpenedBundle::facts() const {
  return {theProgram.dag.name,
          origin.version,
          hash,
          origin.source,
          origin.sourceHash,
          target,
          code.empty() ? shared.cpu : code,
          theRunner->description(),
          origin.options};
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
OpenedBundle::openShared(const Source &source, const std::string &target,
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
  out->target = target.empty() ? "host" : target;
  MGPU_TRY_ASSIGN(out->ranks, pipeline::meetRanks(meeting));
  // The others wait for this rank, so they are told why it does not come.
  if (Result<void> done = areGpus
                              ? out->openGpuPart(source, target, how, settings)
                              : out->openPart(source, target, how);
      !done) {
    out->ranks->abort(done.error().message);
    return tl::unexpected(done.error());
  }
  return out;
}

Result<void> OpenedBundle::openPart(const Source &source,
                                    const std::string &target, const How &how) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, source.open());
  MGPU_TRY(readBundle(bundle, how));
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

Result<void> OpenedBundle::openGpuPart(const Source &source,
                                       const std::string &target,
                                       const How &how,
                                       const device::NcclOptions &nccl) {
  MGPU_TRY_ASSIGN(capture::Bundle bundle, source.open());
  MGPU_TRY(readBundle(bundle, how));
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

Result<std::unique_ptr<capture::Runner>>
OpenedBundle::run(std::unique_ptr<device::Driver> driver,
                  std::span<const std::vector<std::byte>> kernels,
                  const planner::Plan &plan) const {
  MGPU_TRY_ASSIGN(capture::Replayer replayer,
                  capture::Replayer::create(theProgram.dag, plan, kernels,
                                            *driver, {},
                                            capture::Arguments::Later));
  return capture::runOnOneTarget(std::move(driver), std::move(replayer),
                                 theProgram.dag, plan);
}

/// Opens the program by its plan, and its reference where there are audits.
Result<void> OpenedBundle::openWith(const serve::Audit::Open &open,
                                    bool audits) {
  MGPU_TRY_ASSIGN(theRunner, open(thePlan));
  if (!audits)
    return {};
  MGPU_TRY_ASSIGN(reference, serve::Audit::onGpus(theProgram.dag, thePlan,
                                                  *theRunner, open));
  return {};
}

Result<void> OpenedBundle::openHost(capture::Bundle &bundle,
                                    const std::string &target, const How &how) {
  std::vector<std::string_view> levels = device::cpuLevels();
  if (!how.cpu.empty())
    levels = {how.cpu};
  MGPU_TRY_ASSIGN(auto kernels, bundle.hostKernels(levels));
  code = kernels.level;
  OpenOptions open;
  open.threads = how.threads > 0        ? how.threads
                 : bundle.threads() > 0 ? bundle.threads()
                                        : threadsFor(thePlan, theProgram.dag);
  open.pins = how.pins;
  std::vector<int> cpus;
  MGPU_TRY_ASSIGN(
      auto driver,
      pipeline::openHost(target, theProgram.dag.numDevices, open, cpus));
  MGPU_TRY_ASSIGN(theRunner, run(std::move(driver), kernels.objects, thePlan));
  if (!how.audits)
    return {};
  MGPU_TRY_ASSIGN(reference, serve::Audit::onHost(theProgram.dag, thePlan,
                                                  kernels.objects, *theRunner));
  return {};
}

Result<std::vector<std::vector<std::byte>>>
OpenedBundle::takeCubins(capture::Bundle &bundle, const std::string &arch) {
  MGPU_TRY_ASSIGN(auto kernels, cudaObjects(bundle, arch));
  capture::addWorkspaces(theProgram.dag, thePlan, kernels);
  return kernels;
}

Result<void> OpenedBundle::openGpu(capture::Bundle &bundle,
                                   const std::string &target, bool audits) {
  MGPU_TRY_ASSIGN(device::CudaTarget gpu,
                  device::oneGpu(target, theProgram.dag.numDevices));
  device::CudaOptions options;
  options.gpu = gpu.gpus[0];
  options.numDevices = gpu.devicesOnGpu;
  if (deadline.count() > 0)
    options.deadline = deadline;
  MGPU_TRY_ASSIGN(options.compile, ownCompiler(bundle));
  MGPU_TRY_ASSIGN(auto driver, device::createCudaDriver(options));
  code = driver->architecture();
  MGPU_TRY_ASSIGN(const auto kernels, takeCubins(bundle, code));
  const auto open = [&](const planner::Plan &plan)
      -> Result<std::unique_ptr<capture::Runner>> {
    if (!driver) {
      MGPU_TRY_ASSIGN(driver, device::createCudaDriver(options));
    }
    return run(std::move(driver), kernels, plan);
  };
  return openWith(open, audits);
}

Result<void> OpenedBundle::openRanks(capture::Bundle &bundle,
                                     const std::vector<int> &ordinals,
                                     const device::NcclOptions &nccl,
                                     bool audits) {
  MGPU_TRY(
      capture::checkAcrossRanks(theProgram.dag)); // before CUDA is looked for
  MGPU_TRY_ASSIGN(code, device::architectureOf(ordinals));
  MGPU_TRY_ASSIGN(const device::CudaCompile compile, ownCompiler(bundle));
  MGPU_TRY_ASSIGN(const auto kernels, takeCubins(bundle, code));
  const auto open = [&](const planner::Plan &plan)
      -> Result<std::unique_ptr<capture::Runner>> {
    MGPU_TRY_ASSIGN(RanksToOpen gpus,
                    gpusInThreads(ordinals, 0, nccl, compile, deadline));
    return capture::Ranks::start(theProgram.dag, plan, kernels,
                                 std::move(gpus.open), std::move(gpus.how));
  };
  return openWith(open, audits);
}

} // namespace mgpu::pipeline
