// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/OpenRunner.h"

#include "capture/graph/Communication.h"
#include "device/cuda/api/CusparseApi.h"
#include "device/cuda/api/Libraries.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/run/Distributed.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/Target.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

namespace {

/// Usage for options that are of one process.
Result<void> checkAlone(const RunnerOptions &options, bool areSeveral) {
  if (options.pin && areSeveral)
    return fail(ErrorKind::Usage,
                "--pin keeps the threads of one process on their CPUs: use it "
                "with --target host or one GPU, without --distributed (mpirun "
                "and srun bind processes themselves)");
  if (options.guard && areSeveral)
    return fail(ErrorKind::Usage,
                "--guard watches the memory of one process: use it with "
                "--target host or one GPU, without --distributed");
  if (options.audit.every > 0 && !options.distributed.empty())
    return fail(ErrorKind::Unsupported,
                "--audit compares replays of one process: leave --distributed "
                "out");
  if (options.audit.every > 0 && options.guard)
    return fail(ErrorKind::Usage,
                "--audit and --guard each move buffers: use one of them");
  return {};
}

/// The same, and options of several GPUs, once it is known whether there are.
Result<void> checkGpus(const RunnerOptions &options, bool areSeveral) {
  MGPU_TRY(checkAlone(options, areSeveral));
  if (!areSeveral && !options.nccl.empty())
    return fail(ErrorKind::Usage, "--nccl is for several GPUs: use it with "
                                  "--target cuda:0,1");
  return {};
}

OpenOptions openOptions(const RunnerOptions &options) {
  OpenOptions open;
  open.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  open.profiles = options.profiles;
  open.pins = options.pin;
  return open;
}

Result<std::unique_ptr<Runner>> openOne(LoadedProgram &program,
                                        const RunnerOptions &options,
                                        Prepared &prepared,
                                        const std::function<void()> &opened,
                                        tuner::GuardedDriver *&guard) {
  for (const char *option : {"--variant", "--deadline"})
    if (!isCudaTarget(program.from.target) &&
        program.from.given.contains(option) &&
        !(theRanks() && option == std::string_view("--deadline")))
      return fail(
          ErrorKind::Usage,
          fmt::format("{} is for GPUs: use it with --target cuda:0", option));
  if (theRanks())
    return openDistributed(program, options.prepare, *theRanks(), prepared,
                           opened);
  return openTargetRunner(program, options.prepare, openOptions(options),
                          prepared, opened, options.guard ? &guard : nullptr);
}

Result<std::unique_ptr<Runner>>
openSeveral(LoadedProgram &program, const std::vector<int> &gpus,
            const RunnerOptions &options, Prepared &prepared,
            const std::function<void()> &opened) {
  MGPU_TRY(capture::checkAcrossRanks(program.dag));
  MGPU_TRY_ASSIGN(const std::string arch, architectureOf(gpus));
  opened();
  MGPU_TRY_ASSIGN(prepared, prepare(program, options.prepare, arch));
  return openRanks(program, prepared, gpus, options);
}

Result<std::unique_ptr<Runner>>
openRemote(LoadedProgram &program, const RunnerOptions &options,
           Prepared &prepared, const std::function<void()> &opened) {
  MGPU_TRY_ASSIGN(const GpuRanks gpus,
                  gpuRanksOf(program, std::chrono::milliseconds(
                                          options.deadlineSeconds * 1000)));
  opened();
  auto prepareFirst = [&](const std::string &arch) {
    return prepareBare(program, options.prepare, arch);
  };
  auto open = [&](const Prepared &made) {
    return gpus.opening(options.nccl.empty() ? made.nccl : options.nccl);
  };
  return shareGpus(program.dag, gpus.here, open, prepareFirst, prepared,
                   factsOf(program.from));
}

} // namespace

Result<void> checkRunner(const RunnerOptions &options,
                         const LoadOptions &load) {
  MGPU_TRY(checkAlone(options, !options.distributed.empty()));
  MGPU_TRY(checkWorkers(options.prepare.threads, options.prepare.cpu, "--"));
  if (isCudaTarget(load.target) && options.prepare.threads > 0)
    return fail(ErrorKind::Usage, "--threads is of the host: leave it out, or "
                                  "--target");
  if (isCudaTarget(load.target) && !options.prepare.cpu.empty())
    return fail(ErrorKind::Usage,
                "--cpu is for the host's kernels: leave it out, or --target");
  if (load.variants.isAsked(Variant::CublasLt) && isCudaTarget(load.target))
    MGPU_TRY(device::findCublasLt());
  if (load.variants.isAsked(Variant::Cusparse) && isCudaTarget(load.target))
    MGPU_TRY(device::openCusparse());
  return {};
}

Result<std::unique_ptr<Runner>> openRunner(LoadedProgram &program,
                                           const RunnerOptions &options,
                                           Prepared &prepared,
                                           const std::function<void()> &opened,
                                           tuner::GuardedDriver *&guard) {
  const std::string &target = program.from.target;
  const bool areRemote = haveGpus(program.from);
  std::optional<std::vector<int>> gpus; // that processes of this one have
  if (!areRemote) {
    MGPU_TRY_ASSIGN(gpus, severalGpus(target, program.dag.numDevices));
  }
  MGPU_TRY(checkGpus(options, gpus || areRemote));
  if (areRemote)
    return openRemote(program, options, prepared, opened);
  return gpus ? openSeveral(program, *gpus, options, prepared, opened)
              : openOne(program, options, prepared, opened, guard);
}

Result<std::unique_ptr<serve::Audit>> openAudit(const LoadedProgram &program,
                                                const RunnerOptions &options,
                                                const Prepared &prepared,
                                                Runner &runner) {
  const std::string &target = program.from.target;
  if (!isCudaTarget(target))
    return serve::Audit::onHost(program.dag, prepared.plan, prepared.kernels,
                                runner);
  MGPU_TRY_ASSIGN(const auto gpus, severalGpus(target, program.dag.numDevices));
  const auto open =
      [&](const planner::Plan &plan) -> Result<std::unique_ptr<Runner>> {
    Prepared reference;
    reference.plan = plan;
    reference.kernels = prepared.kernels;
    if (gpus)
      return openRanks(program, reference, *gpus, options);
    OpenOptions how = openOptions(options);
    MGPU_TRY_ASSIGN(how.compile, ownCompilerOf(program));
    MGPU_TRY_ASSIGN(auto driver,
                    openTarget(target, program.dag.numDevices, how));
    MGPU_TRY_ASSIGN(auto replayer, capture::Replayer::create(
                                       program.dag, plan, reference.kernels,
                                       *driver, {}, capture::Arguments::Later));
    return capture::runOnOneTarget(std::move(driver), std::move(replayer),
                                   program.dag, plan);
  };
  return serve::Audit::onGpus(program.dag, prepared.plan, runner, open);
}

} // namespace mgpu::pipeline
