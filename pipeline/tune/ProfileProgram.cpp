// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/ProfileProgram.h"

#include "device/host/HostDriver.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/build/Prepare.h"
#include "pipeline/run/Distributed.h"
#include "pipeline/run/Trace.h"
#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dagfile/DagJson.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/FileIO.h"
#include "tuner/record/MeasuredTimes.h"

#include <fmt/format.h>

#include <unistd.h>

namespace mgpu::pipeline {

using tuner::ProfileFacts;

Result<void> writeProfileTrace(const LoadedProgram &program,
                               const ProfileRequest &request,
                               const bench::ProfileSamples &samples, bool onGpu,
                               const planner::Plan &plan) {
  std::vector<double> durations = planner::durationsOf(plan, program.dag);
  for (size_t i = 0; onGpu && i < samples.nodeUs.size(); ++i)
    if (!samples.nodeUs[i].empty())
      durations[i] = bench::summarize(samples.nodeUs[i]).median.middle;
  return writeFileAtomic(
      request.traceFile,
      traceText(program.dag, {samples.last}, onGpu,
                planner::programJsonText(program.dag, durations)));
}
namespace {

/// The tuned configuration, else the default one.
Result<TunedChoice> chooseFor(const LoadedProgram &program,
                              const ProfileRequest &request,
                              const std::string &path) {
  // The file is made if it is not there, so that is not an error here.
  PrepareOptions looking;
  looking.needsDatabase = true;
  looking.useTuned = request.useTuned && access(path.c_str(), F_OK) == 0;
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, looking));
  if (choice)
    return std::move(*choice);
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  auto config =
      tuner::defaultConfig(program.dag, context.spaces, context.limits);
  return TunedChoice{std::move(context), std::move(config), false};
}

/// On the threads it was tuned for; else on one, and on as many as there may
/// be.
std::vector<uint32_t> threadCounts(const TunedChoice &choice) {
  if (choice.isTuned)
    return {choice.config.threads};
  if (const uint32_t most = choice.context.limits.mostThreads; most > 1)
    return {1, most};
  return {1};
}

/// The plan that a program has by the times stored. Not tuned here, a bundle
/// runs as it was planned.
Result<planner::Plan> planOf(const LoadedProgram &program,
                             const TunedChoice &choice) {
  if (program.bundle && !choice.isTuned)
    return program.bundle->plan();
  MGPU_TRY_ASSIGN(const planner::Machine machine, machineOf(program, choice));
  return tuner::planOf(program.dag, choice.config, machine, choice.isTuned);
}

/// The plans to measure, one for each number of threads.
Result<std::vector<bench::ProfileSubject>>
subjectsOf(const LoadedProgram &program, TunedChoice &choice) {
  std::vector<bench::ProfileSubject> subjects;
  for (uint32_t threads : threadCounts(choice)) {
    choice.config.threads = threads;
    MGPU_TRY_ASSIGN(planner::Plan plan, planOf(program, choice));
    subjects.push_back({std::move(plan), threads});
  }
  return subjects;
}

/// Stores what the nodes took, and with how many threads a replay is fastest,
/// which `choice` then has.
Result<void> storeTimes(const LoadedProgram &program, TunedChoice &choice,
                        std::span<const bench::ProfileSubject> subjects,
                        const bench::Profile &profile, db::TuningStore &store) {
  const tuner::KeyInput keys = choice.context.keys(program.dag, false);
  for (size_t k = 0; k < subjects.size(); ++k) {
    choice.config.threads = subjects[k].threads;
    MGPU_TRY(tuner::storeNodeTimes(keys, choice.config,
                                   profile.subjects[k].nodeUs, store));
  }
  const size_t best = profile.fastest();
  choice.config.threads = subjects[best].threads;
  if (choice.isTuned || program.bundle)
    return {};
  return tuner::storeThreads(keys, choice.config.threads,
                             profile.subjects[best].replayUs, store);
}

/// Measures on the host: all ranks call it, and rank 0's plans and kernels are
/// measured.
Result<bench::Profile> measure(planner::Dag &dag, tuner::ProgramData &data,
                               std::vector<bench::ProfileSubject> &subjects,
                               std::vector<Bytes> &kernels,
                               const ProfileRequest &request,
                               const std::vector<int> &cpus) {
  device::MessageRendezvous *others = theRanks();
  if (others)
    MGPU_TRY(shareSubjects(dag, subjects, kernels, *others));
  auto open = [&](uint32_t devices, uint32_t threads,
                  std::span<const int> workerCpus) {
    if (others)
      return device::createHostDriver(device::hostPart(devices, *others),
                                      threads);
    return openTarget(
        request.target, devices,
        OpenOptions{.threads = threads, .workerCpus = workerCpus});
  };
  auto bind = [&](capture::Replayer &replayer) { data.bind(replayer, 0); };
  return bench::measureProfile({dag, kernels, bind, open, cpus, false, others},
                               subjects, request.repeat);
}

} // namespace

Result<void> followProfile(LoadedProgram &program,
                           const ProfileRequest &request) {
  std::vector<std::string> madeUp; // rank 0 says it
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program, {}, &madeUp));
  tuner::ProgramData data(program.dag, std::move(inputs));
  std::vector<bench::ProfileSubject> subjects;
  std::vector<Bytes> kernels;
  MGPU_TRY(measure(program.dag, data, subjects, kernels, request, {}));
  return {};
}

Result<ProfileResult> profileOnHost(LoadedProgram &program,
                                    const ProfileRequest &request,
                                    const std::string &path) {
  MGPU_TRY_ASSIGN(TunedChoice choice, chooseFor(program, request, path));
  const db::TuningProblem key =
      tuner::programProblem(choice.context.keys(program.dag, false));
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program));
  std::optional<tuner::ProgramFacts> about;
  if (!choice.isTuned) // else `tune` has said it
    about = factsOf(program, choice.context, /*coldCaches=*/false);
  MGPU_TRY(transformChosen(program, choice));
  tuner::ProgramData data(program.dag, std::move(inputs));
  MGPU_TRY_ASSIGN(auto kernels,
                  compileConfig(program, choice.context, choice.config));
  MGPU_TRY_ASSIGN(auto subjects, subjectsOf(program, choice));
  // Ranks are bound to CPUs by whoever starts them.
  const std::vector<int> cpus = request.pinThreads && !theRanks()
                                    ? bench::cpusInOrder()
                                    : std::vector<int>();
  choice.context.environment.pinnedCpus = bench::cpusText(cpus);
  MGPU_TRY_ASSIGN(const bench::Profile profile,
                  measure(program.dag, data, subjects, kernels, request, cpus));
  const size_t best = profile.fastest();
  MGPU_TRY_ASSIGN(db::TuningStore store, db::TuningStore::open(path));
  MGPU_TRY(storeTimes(program, choice, subjects, profile, store));
  db::Pairs configuration =
      tuner::toPairs(choice.config, program.dag, choice.context.spaces);
  if (program.bundle && !choice.isTuned)
    configuration = {{"scheduler", subjects[best].plan.scheduler}};
  ProfileFacts facts = tuner::describeProfile(
      program.dag, std::move(configuration), subjects[best],
      profile.subjects[best], profile.serialUs);
  facts.pinnedCpus =
      bench::cpusText(bench::cpusFor(cpus, choice.config.threads));
  facts.timedBy = profile.timedBy;
  if (about) {
    about->peaks = bench::measurePeaks();
    tuner::addMeasured(*about, program.dag, subjects[best],
                       profile.subjects[best]);
    facts.program = std::move(about);
  }
  // `plan` and the trace go by the times that were stored.
  MGPU_TRY_ASSIGN(planner::Plan plan, planOf(program, choice));
  facts.plan = planner::planLine(plan, program.dag, choice.config.threads);
  MGPU_TRY(tuner::storeProfile(key, facts, MGPU_VERSION, store));
  if (!request.traceFile.empty())
    MGPU_TRY(writeProfileTrace(program, request, profile.subjects[best], false,
                               plan));
  ProfileResult out{std::move(facts), choice.isTuned, {}};
  for (size_t k = 0; k < subjects.size(); ++k)
    if (k != best)
      out.others.emplace_back(
          subjects[k].threads,
          tuner::Quartiles::of(profile.subjects[k].replayUs));
  return out;
}

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
