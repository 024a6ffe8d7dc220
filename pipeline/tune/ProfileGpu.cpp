// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/Kernels.h"
#include "pipeline/build/Prepare.h"
#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "pipeline/tune/ProfileProgram.h"
#include "planner/cost/TargetMachine.h"
#include "planner/schedule/list/Schedulers.h"
#include "tuner/record/MeasuredTimes.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using tuner::ProfileFacts;

namespace {

/// The measurements of a program on GPUs, and the key they are stored under.
struct MeasuredGpus {
  const planner::Dag &original; ///< before the plan's transforms
  const Prepared &prepared;
  const bench::Profile &profile;
  tuner::TargetIdentity identity;
  std::string ranks; ///< as tuner::KeyInput
};

Result<ProfileResult> store(const LoadedProgram &program,
                            const ProfileRequest &request,
                            const std::string &path,
                            const MeasuredGpus &measured) {
  const Prepared &prepared = measured.prepared;
  const bench::ProfileSamples &samples = measured.profile.subjects.front();
  ProfileFacts facts = tuner::describeProfile(
      program.dag,
      {{"scheduler", prepared.plan.scheduler}, {"target", request.target}},
      {prepared.plan, 0}, samples, measured.profile.serialUs);
  facts.timedBy = measured.profile.timedBy;
  std::vector<tuner::KernelObject> compiled;
  for (const std::vector<std::byte> &object : prepared.kernels)
    compiled.push_back(std::make_shared<Bytes>(object));
  const bench::Environment environment = bench::readEnvironment();
  const db::TuningProblem key = tuner::programProblem(
      {measured.original, compiled, environment, MGPU_VERSION,
       program.dag.numDevices, false, measured.identity, measured.ranks});
  MGPU_TRY_ASSIGN(db::TuningStore store, db::TuningStore::open(path));
  MGPU_TRY(tuner::storeProfile(key, facts, MGPU_VERSION, store));
  if (!request.traceFile.empty())
    MGPU_TRY(writeProfileTrace(program, request, samples, true, prepared.plan));
  return ProfileResult{std::move(facts), prepared.isTuned, {}};
}

/// Gives a plan, which may have been stored, the times that are predicted here.
Result<void> predictFor(const std::string &target, planner::Plan &plan,
                        const planner::Dag &dag) {
  MGPU_TRY_ASSIGN(const planner::Machine model,
                  openMachine(target, dag.numDevices));
  planner::retime(plan, dag, model);
  return {};
}

PrepareOptions preparing(const ProfileRequest &request) {
  PrepareOptions out;
  out.useTuned = request.useTuned;
  return out;
}

} // namespace

Result<ProfileResult> profileOnGpu(LoadedProgram &program,
                                   const ProfileRequest &request,
                                   const std::string &path) {
  OpenOptions how;
  how.deadline = std::chrono::minutes(2);
  MGPU_TRY_ASSIGN(how.compile, ownCompilerOf(program));
  // Opened once to ask what it is, and again by the measurement, with memory.
  std::string arch;
  {
    MGPU_TRY_ASSIGN(auto driver,
                    openTarget(request.target, program.dag.numDevices, how));
    arch = driver->architecture();
  }
  MGPU_TRY_ASSIGN(tuner::TargetIdentity identity,
                  identifyGpu(request.target, true));
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program));
  const planner::Dag original = program.dag;
  MGPU_TRY_ASSIGN(Prepared prepared,
                  prepare(program, preparing(request), arch));
  MGPU_TRY(predictFor(request.target, prepared.plan, program.dag));
  tuner::ProgramData data(program.dag, std::move(inputs));
  how.profiles = true;
  auto open = [&](uint32_t devices, uint32_t, std::span<const int>) {
    return openTarget(request.target, devices, how);
  };
  auto bind = [&](capture::Replayer &replayer) { data.bind(replayer, 0); };
  bench::ProfileInput input{program.dag, prepared.kernels, bind, open, {},
                            true};
  const std::vector<bench::ProfileSubject> subjects{{prepared.plan, 0}};
  MGPU_TRY_ASSIGN(bench::Profile profile,
                  bench::measureProfile(input, subjects, request.repeat));
  return store(program, request, path,
               {original, prepared, profile, std::move(identity), ""});
}

Result<ProfileResult> profileOnRanks(LoadedProgram &program,
                                     const ProfileRequest &request,
                                     const std::string &path,
                                     const GpuRanks &gpus) {
  device::MessageRendezvous &others = *gpus.here.part.others;
  std::vector<std::string> madeUp; // rank 0 says it
  MGPU_TRY_ASSIGN(
      auto inputs,
      programInputs(program, {}, isFirstRank() ? nullptr : &madeUp));
  const planner::Dag original = program.dag;
  Prepared prepared;
  if (isFirstRank()) {
    MGPU_TRY_ASSIGN(prepared,
                    prepareBare(program, preparing(request), gpus.arch));
    MGPU_TRY(predictFor(fmt::format("cuda:{}", gpus.here.gpus.front()),
                        prepared.plan, program.dag));
  }
  MGPU_TRY(sharePrepared(program.dag, prepared, others, KernelsFor::Gpu));
  tuner::ProgramData data(program.dag, std::move(inputs));
  auto open =
      [&](const planner::Plan &plan) -> Result<std::unique_ptr<Runner>> {
    MGPU_TRY_ASSIGN(auto runner, openOnGpus(program.dag, plan, prepared.kernels,
                                            gpus, prepared.nccl));
    data.bind(
        [&](planner::BufferId id, std::span<const std::byte> bytes) {
          return runner->write(id, bytes);
        },
        0);
    return runner;
  };
  bench::ProfileInput input{program.dag, prepared.kernels, {}, {}, {},
                            true,        &others};
  input.openRunner = open;
  const std::vector<bench::ProfileSubject> subjects{{prepared.plan, 0}};
  MGPU_TRY_ASSIGN(const bench::Profile profile,
                  bench::measureProfile(input, subjects, request.repeat));
  if (!isFirstRank())
    return ProfileResult();
  MGPU_TRY_ASSIGN(
      tuner::TargetIdentity identity,
      identifyGpu(fmt::format("cuda:{}", gpus.here.gpus.front()), true));
  return store(program, request, path,
               {original, prepared, profile, std::move(identity), ranksText()});
}

} // namespace mgpu::pipeline
