// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/Topology.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/Kernels.h"
#include "pipeline/Prepare.h"
#include "pipeline/Profile.h"
#include "pipeline/Target.h"
#include "planner/cost/TopologyEstimator.h"
#include "planner/schedule/list/PlanBuilder.h"
#include "planner/schedule/list/Schedulers.h"
#include "tuner/record/MeasuredTimes.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using tuner::ProfileFacts;

/// The machine built in whose GPUs are of this architecture; none: none is.
static std::optional<device::Topology> topologyOf(std::string_view arch) {
  for (std::string_view name : device::builtinTopologies()) {
    auto topology = device::openTopology(fmt::format("sim:{}", name));
    if (topology && fmt::format("sm_{}", topology->device.architecture) == arch)
      return std::move(*topology);
  }
  return std::nullopt;
}

/// Gives the plan the times that the model of such a GPU predicts, if there is
/// one.
static void predictFor(std::string_view arch, planner::Plan &plan,
                       const planner::Dag &dag) {
  auto topology = topologyOf(arch);
  if (!topology)
    return;
  const planner::TopologyEstimator model(std::move(*topology));
  for (planner::PlanStep &step : plan.steps)
    step.durationUs = model.durationUs(dag, step.node);
  plan.model = model.name();
  planner::predictTimes(plan, dag);
}

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
  PrepareOptions preparing;
  preparing.useTuned = request.useTuned;
  MGPU_TRY_ASSIGN(Prepared prepared, prepare(program, preparing, arch));
  predictFor(arch, prepared.plan, program.dag);
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(planner::Plan serial,
                  planner::scheduleSerial(program.dag, roofline));
  tuner::ProgramData data(program.dag, std::move(inputs));
  how.profiles = true;
  auto open = [&](uint32_t devices, uint32_t, std::span<const int>) {
    return openTarget(request.target, devices, how);
  };
  auto bind = [&](capture::Replayer &replayer) { data.bind(replayer, 0); };
  bench::ProfileInput input{program.dag, prepared.kernels, bind, open, {},
                            true};
  const std::vector<bench::ProfileSubject> subjects{{prepared.plan, 0}};
  MGPU_TRY_ASSIGN(
      bench::Profile profile,
      bench::measureProfile(input, serial, subjects, request.repeat));
  const bench::ProfileSamples &samples = profile.subjects.front();
  ProfileFacts facts = tuner::describeProfile(
      program.dag,
      {{"scheduler", prepared.plan.scheduler}, {"target", request.target}},
      subjects.front(), samples, profile.serialUs);
  facts.timedBy = profile.timedBy;
  std::vector<tuner::KernelObject> compiled;
  for (const std::vector<std::byte> &object : prepared.kernels)
    compiled.push_back(std::make_shared<Bytes>(object));
  const bench::Environment environment = bench::readEnvironment();
  const db::TuningProblem key = tuner::programProblem(
      {original, compiled, environment, MGPU_VERSION, program.dag.numDevices,
       false, std::move(identity)});
  MGPU_TRY_ASSIGN(db::TuningStore store, db::TuningStore::open(path));
  MGPU_TRY(tuner::storeProfile(key, facts, MGPU_VERSION, store));
  if (!request.traceFile.empty())
    MGPU_TRY(writeProfileTrace(program, request, samples, true, prepared.plan));
  return ProfileResult{std::move(facts), prepared.isTuned, {}};
}

} // namespace mgpu::pipeline
