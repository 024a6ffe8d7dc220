// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune profile`: the time of each node, beside what the plan predicts.
#include "db/FileSystem.h"
#include "device/api/Topology.h"
#include "device/host/HostDriver.h"
#include "pipeline/ChooseOrder.h"
#include "pipeline/Distributed.h"
#include "pipeline/Faults.h"
#include "pipeline/GpuIdentity.h"
#include "pipeline/Kernels.h"
#include "pipeline/Load.h"
#include "pipeline/Target.h"
#include "pipeline/Trace.h"
#include "planner/cost/TopologyEstimator.h"
#include "planner/dagfile/DagJson.h"
#include "planner/schedule/list/PlanBuilder.h"
#include "planner/schedule/list/Schedulers.h"
#include "support/FileIO.h"
#include "support/Plural.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JoinRanks.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"
#include "tuner/record/MeasuredTimes.h"
#include "tuner/record/ProfileFacts.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <unistd.h>

namespace mgpu::pipeline {

using nlohmann::json;
using tuner::NodeProfile;
using tuner::ProfileFacts;

namespace {

PrepareOptions prepareOptions(const ProfileOptions &options) {
  PrepareOptions prepare;
  prepare.useTuned = options.useTuned;
  return prepare;
}

/// The tuned configuration, else the default one.
Result<TunedChoice> chooseFor(const LoadedProgram &program,
                              const ProfileOptions &options,
                              const std::string &path) {
  // The file is made if it is not there, so that is not an error here.
  PrepareOptions looking = prepareOptions(options);
  looking.useTuned &= access(path.c_str(), F_OK) == 0;
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

std::string medianText(const tuner::Quartiles &us) {
  return fmt::format("{:.3f} us (half of the samples within {:.3f} to {:.3f})",
                     us.us, us.p25Us, us.p75Us);
}

double errorPercent(const ProfileFacts &facts) {
  return 100 * (facts.recomputedUs / facts.replay.us - 1);
}

/// Hidden copies and collectives, in percent; none without any.
std::optional<double> hiddenPercent(const ProfileFacts &facts) {
  if (facts.communicationUs <= 0)
    return std::nullopt;
  return 100 * facts.hiddenUs / facts.communicationUs;
}

json toJson(const ProfileFacts &facts, bool isTuned,
            const ProfileOptions &options, const std::string &path) {
  json out{{"file", options.load.file},
           {"tuned", isTuned},
           {"timed_by", facts.timedBy},
           {"model", facts.model},
           {"repeat", options.repeat},
           {"threads", facts.threads},
           {"pinned_cpus", facts.pinnedCpus},
           {"predicted_before_us", facts.predictedUs},
           {"predicted_us", facts.recomputedUs},
           {"measured_us", facts.replay.us},
           {"measured_p25_us", facts.replay.p25Us},
           {"measured_p75_us", facts.replay.p75Us},
           {"error_percent", errorPercent(facts)},
           {"serial_us", facts.serial.us},
           {"serial_p25_us", facts.serial.p25Us},
           {"serial_p75_us", facts.serial.p75Us},
           {"communication_us", facts.communicationUs},
           {"hidden_us", facts.hiddenUs},
           {"database", path}};
  if (facts.span.us > 0)
    out["device_span_us"] = facts.span.us;
  if (auto percent = hiddenPercent(facts))
    out["overlap_percent"] = *percent;
  out["nodes"] = json::array();
  for (const NodeProfile &node : facts.nodes)
    out["nodes"].push_back(tuner::toJson(node));
  return out;
}

void printNodes(std::vector<NodeProfile> nodes) {
  double sum = 0;
  for (const NodeProfile &node : nodes)
    sum += node.measured.us;
  std::sort(nodes.begin(), nodes.end(),
            [](const NodeProfile &a, const NodeProfile &b) {
              return a.measured.us != b.measured.us
                         ? a.measured.us > b.measured.us
                         : a.node < b.node;
            });
  constexpr size_t mostRows = 40;
  fmt::print("{:<28} {:<10} {:>7} {:>12} {:>12} {:>7} {:>6} {:>7}\n", "node",
             "kind", "device", "predicted us", "measured us", "ratio", "share",
             "overlap");
  for (size_t k = 0; k < std::min(nodes.size(), mostRows); ++k) {
    const NodeProfile &node = nodes[k];
    fmt::print("{:<28} {:<10} {:>7} {:>12.3f} {:>12.3f} {:>7.2f} {:>5.1f}% "
               "{:>6.1f}%\n",
               node.name, toString(node.kind), node.devices, node.predictedUs,
               node.measured.us, node.ratio(),
               100 * node.measured.us / std::max(sum, 1e-12),
               100 * node.overlap);
  }
  if (nodes.size() > mostRows)
    fmt::print("... and {} more; --json lists all\n", nodes.size() - mostRows);
}

void print(const ProfileFacts &facts, const std::string &path) {
  const bool onGpu = facts.threads == 0;
  fmt::print("replay on {}: {:.3f} us predicted from these times "
             "({:+.1f} %; {:.3f} us before, {}), {} measured, {} samples\n",
             onGpu ? "the GPU" : counted(facts.threads, "thread"),
             facts.recomputedUs, errorPercent(facts), facts.predictedUs,
             facts.model, medianText(facts.replay), facts.samples);
  if (facts.span.us > 0)
    fmt::print("of it the GPU is busy from the first node to the last: {}\n",
               medianText(facts.span));
  fmt::print("serial{}: {}; planned is {:+.1f} %\n",
             onGpu ? "" : " on one thread", medianText(facts.serial),
             100 * (facts.replay.us / facts.serial.us - 1));
  if (auto percent = hiddenPercent(facts))
    fmt::print("overlap achieved: beside {:.1f} % of the {:.3f} us of copies "
               "and collectives a kernel ran\n",
               *percent, facts.communicationUs);
  fmt::print("nodes timed by {}\nstored in {}\n", facts.timedBy, path);
}

/// Writes the replay timed last, beside the program as a DAG file: with the
/// times measured and, where nothing was, those of `plan`.
Result<void> writeTrace(const LoadedProgram &program,
                        const ProfileOptions &options,
                        const bench::ProfileSamples &samples, bool onGpu,
                        const planner::Plan &plan) {
  std::vector<double> durations(program.dag.nodes.size());
  for (const planner::PlanStep &step : plan.steps)
    durations[step.node.value] = step.durationUs;
  for (size_t i = 0; onGpu && i < samples.nodeUs.size(); ++i)
    if (!samples.nodeUs[i].empty())
      durations[i] = bench::summarize(samples.nodeUs[i]).median.middle;
  return writeFileAtomic(
      options.traceFile,
      traceText(program.dag, {samples.last}, onGpu,
                planner::programJsonText(program.dag, durations)));
}
Result<void> writeTrace(const LoadedProgram &program,
                        const ProfileOptions &options,
                        const bench::ProfileSamples &samples,
                        const TunedChoice &choice) {
  if (options.traceFile.empty())
    return {};
  // Its durations are those that `plan` has from now on.
  MGPU_TRY_ASSIGN(const planner::Plan plan, makePlan(program, choice));
  return writeTrace(program, options, samples, false, plan);
}

int printFacts(const ProfileFacts &facts, bool isTuned,
               const ProfileOptions &options, const std::string &path) {
  if (options.json) {
    pipeline::printJson(toJson(facts, isTuned, options, path));
    return 0;
  }
  printNodes(facts.nodes);
  print(facts, path);
  return 0;
}

/// The machine built in whose GPUs are of this architecture; none: none is.
std::optional<device::Topology> topologyOf(std::string_view arch) {
  for (std::string_view name : device::builtinTopologies()) {
    auto topology = device::openTopology(fmt::format("sim:{}", name));
    if (topology && fmt::format("sm_{}", topology->device.architecture) == arch)
      return std::move(*topology);
  }
  return std::nullopt;
}

/// On one GPU, as one or several devices.
Result<int> profileGpu(LoadedProgram &program, const ProfileOptions &options,
                       const std::string &path) {
  OpenOptions how;
  how.deadline = std::chrono::minutes(2);
  MGPU_TRY_ASSIGN(how.compile, ownCompilerOf(program));
  // Opened once to ask what it is, and again by the measurement, with memory.
  std::string arch;
  {
    MGPU_TRY_ASSIGN(auto driver, openTarget(options.load.target,
                                            program.dag.numDevices, how));
    arch = driver->architecture();
  }
  MGPU_TRY_ASSIGN(tuner::TargetIdentity identity,
                  identifyGpu(options.load.target, true));
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program));
  const planner::Dag original = program.dag;
  MGPU_TRY_ASSIGN(Prepared prepared,
                  prepare(program, prepareOptions(options), arch));
  if (auto topology = topologyOf(arch)) {
    const planner::TopologyEstimator model(std::move(*topology));
    for (planner::PlanStep &step : prepared.plan.steps)
      step.durationUs = model.durationUs(program.dag, step.node);
    prepared.plan.model = model.name();
    planner::predictTimes(prepared.plan, program.dag);
  }
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(planner::Plan serial,
                  planner::scheduleSerial(program.dag, roofline));
  tuner::ProgramData data(program.dag, std::move(inputs));
  how.profiles = true;
  auto open = [&](uint32_t devices, uint32_t, std::span<const int>) {
    return openTarget(options.load.target, devices, how);
  };
  auto bind = [&](capture::Replayer &replayer) { data.bind(replayer, 0); };
  bench::ProfileInput input{program.dag, prepared.kernels, bind, open, {},
                            true};
  const std::vector<bench::ProfileSubject> subjects{{prepared.plan, 0}};
  MGPU_TRY_ASSIGN(
      bench::Profile profile,
      bench::measureProfile(input, serial, subjects, options.repeat));
  const bench::ProfileSamples &samples = profile.subjects.front();
  ProfileFacts facts = tuner::describeProfile(
      program.dag,
      {{"scheduler", prepared.plan.scheduler}, {"target", options.load.target}},
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
  if (!options.traceFile.empty())
    MGPU_TRY(writeTrace(program, options, samples, true, prepared.plan));
  return printFacts(facts, prepared.isTuned, options, path);
}

/// The plans to measure, one for each number of threads.
Result<std::vector<bench::ProfileSubject>>
subjectsOf(const LoadedProgram &program, TunedChoice &choice) {
  std::vector<bench::ProfileSubject> subjects;
  for (uint32_t threads : threadCounts(choice)) {
    choice.config.threads = threads;
    // Not tuned here, a bundle runs as it was planned.
    MGPU_TRY_ASSIGN(planner::Plan plan, program.bundle && !choice.isTuned
                                            ? program.bundle->plan()
                                            : makePlan(program, choice));
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
                               const ProfileOptions &options,
                               const std::vector<int> &cpus) {
  device::MessageRendezvous *others = theRanks();
  if (others)
    MGPU_TRY(shareSubjects(dag, subjects, kernels, *others));
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  MGPU_TRY_ASSIGN(planner::Plan serial, planner::scheduleSerial(dag, roofline));
  auto open = [&](uint32_t devices, uint32_t threads,
                  std::span<const int> workerCpus) {
    if (others)
      return device::createHostDriver(device::hostPart(devices, *others),
                                      threads);
    return openTarget(
        options.load.target, devices,
        OpenOptions{.threads = threads, .workerCpus = workerCpus});
  };
  auto bind = [&](capture::Replayer &replayer) { data.bind(replayer, 0); };
  return bench::measureProfile({dag, kernels, bind, open, cpus, false, others},
                               serial, subjects, options.repeat);
}

/// As a rank other than 0, which alone prints and stores.
Result<int> followProfile(LoadedProgram &program,
                          const ProfileOptions &options) {
  std::vector<std::string> madeUp; // rank 0 says it
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program, {}, &madeUp));
  tuner::ProgramData data(program.dag, std::move(inputs));
  std::vector<bench::ProfileSubject> subjects;
  std::vector<Bytes> kernels;
  MGPU_TRY(measure(program.dag, data, subjects, kernels, options, {}));
  return 0;
}

} // namespace

Result<int> runProfile(const ProfileOptions &options) {
  MGPU_TRY(filesRead(options.load).write("--trace", options.traceFile));
  LoadOptions load = options.load;
  load.usesRecord = options.useTuned;
  MGPU_TRY(checkDeadline(options, load));
  MGPU_TRY(joinAsked(options, load));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(load));
  MGPU_TRY(chooseOrder(program, PlanOptions()));
  MGPU_TRY_ASSIGN(const std::string path, db::databasePath(load.database));
  if (isCudaTarget(options.load.target))
    return profileGpu(program, options, path);
  nameFaults(program);
  if (theRanks())
    MGPU_TRY(agreeOnProgram(
        program.dag, *theRanks(),
        factsOf(load, {{"--repeat", std::to_string(options.repeat)}})));
  if (!isFirstRank())
    return followProfile(program, options);
  MGPU_TRY_ASSIGN(TunedChoice choice, chooseFor(program, options, path));
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
  const std::vector<int> cpus = options.pinThreads && !theRanks()
                                    ? bench::cpusInOrder()
                                    : std::vector<int>();
  choice.context.environment.pinnedCpus = bench::cpusText(cpus);
  MGPU_TRY_ASSIGN(const bench::Profile profile,
                  measure(program.dag, data, subjects, kernels, options, cpus));
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
  MGPU_TRY(tuner::storeProfile(key, facts, MGPU_VERSION, store));
  MGPU_TRY(writeTrace(program, options, profile.subjects[best], choice));
  if (!options.json)
    for (size_t k = 0; k < subjects.size(); ++k)
      if (k != best)
        fmt::print(
            "replay on {}: {}\n", counted(subjects[k].threads, "thread"),
            medianText(tuner::Quartiles::of(profile.subjects[k].replayUs)));
  return printFacts(facts, choice.isTuned, options, path);
}

} // namespace mgpu::pipeline
