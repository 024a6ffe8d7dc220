// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/ProfileProgram.h"

#include "device/host/HostDriver.h"
#include "pipeline/build/Prepare.h"
#include "pipeline/run/Distributed.h"
#include "pipeline/run/Trace.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "planner/cost/TargetMachine.h"
#include "planner/dagfile/DagJson.h"
#include "planner/schedule/HostReplay.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/FileIO.h"
#include "tuner/record/MeasuredTimes.h"

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

} // namespace mgpu::pipeline
