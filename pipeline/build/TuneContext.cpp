// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/TuneContext.h"

#include "device/cuda/api/Libraries.h"
#include "kernels/compile/KernelRecipe.h"
#include "pipeline/build/KernelListing.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/program/Arguments.h"
#include "pipeline/program/Compiler.h"
#include "pipeline/target/GpuIdentity.h"
#include "pipeline/target/OpenMachine.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "planner/schedule/HostReplay.h"
#include "support/Parallel.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace mgpu::pipeline {

using tuner::ProgramConfig;

tuner::KeyInput TuneContext::keys(const planner::Dag &dag,
                                  bool coldCaches) const {
  return {dag,     compiled,   environment, MGPU_VERSION,
          devices, coldCaches, target,      ranks};
}

static bool hasCollectives(const planner::Dag &dag) {
  return std::ranges::any_of(dag.nodes, [](const planner::DagNode &node) {
    return workClass(node) == planner::WorkClass::Collective;
  });
}

/// The choices of collectives that targets offer; the host, and one GPU as
/// several devices, offer none.
static std::vector<tuner::TargetSetting> settingsOf(const planner::Dag &dag) {
  if (!hasCollectives(dag))
    return {};
  constexpr const char *ofNccl = "is NCCL's, between several GPUs";
  return {{"algorithm",
           {"rank order"},
           "devices of one memory have one algorithm for each collective"},
          {"communicator_split", {"off"}, ofNccl},
          {"cta_policy", {"none"}, ofNccl}};
}

static constexpr const char *split = "communicator_split", *ctas = "cta_policy",
                            *windows = "windows";

/// The choices that NCCL offers, by its version.
static Result<std::vector<tuner::TargetSetting>>
ncclSettings(const planner::Dag &dag) {
  if (!hasCollectives(dag))
    return std::vector<tuner::TargetSetting>();
  MGPU_TRY_ASSIGN(const device::FoundLibrary nccl, device::findNccl());
  auto choice = [&](const char *name, std::vector<std::string> values,
                    int since) -> tuner::TargetSetting {
    if (nccl.number >= since)
      return {name, std::move(values), ""};
    values.resize(1);
    return {name, std::move(values),
            fmt::format("NCCL {} has no other", nccl.version)};
  };
  tuner::TargetSetting policy =
      choice(ctas, {"default", "efficiency", "zero"}, 22700);
  if (policy.values.size() > 1 && nccl.number < 22800)
    policy.values.pop_back();
  return std::vector<tuner::TargetSetting>{
      {"algorithm", {"NCCL's"}, "NCCL chooses for each collective"},
      choice(split, {"off", "on"}, 0),
      std::move(policy),
      choice(windows, {"off", "on"}, 22700)};
}

std::string ncclText(const std::map<std::string, std::string> &settings) {
  std::vector<std::string> words;
  for (const auto &[name, value] : settings) {
    if (name == split && value == "on")
      words.push_back("overlap");
    if (name == windows && value == "on")
      words.push_back("windows");
    if (name == ctas && (value == "efficiency" || value == "zero"))
      words.push_back("ctas=" + value);
  }
  return fmt::format("{}", fmt::join(words, ","));
}

tuner::TargetSetting pdlSetting(const std::string &arch, bool byDefault) {
  const char *name = factsOf(Variant::Pdl).name;
  if (!checkPdl(true, arch))
    return {name, {"off"}, "GPUs before sm_90 have no kernels that wait"};
  std::vector<std::string> values = {"off", "on"};
  if (byDefault)
    std::swap(values[0], values[1]);
  return {name, std::move(values), ""};
}

bool usesPdl(const std::map<std::string, std::string> &settings,
             bool byDefault) {
  auto at = settings.find(factsOf(Variant::Pdl).name);
  return at == settings.end() ? byDefault : at->second == "on";
}

/// Adds what is a GPU's.
static Result<void> addGpu(TuneContext &context, const LoadedProgram &program,
                           bool usesCuda) {
  std::string target = program.from.target;
  if (theRanks()) {
    MGPU_TRY_ASSIGN(const RankGpus here,
                    gpusOfRank(target, context.devices, *theRanks()));
    target = fmt::format("cuda:{}", here.gpus.front());
    context.ranks = ranksText();
    MGPU_TRY_ASSIGN(context.settings, ncclSettings(program.dag));
  } else {
    MGPU_TRY_ASSIGN(auto several, severalGpus(target, program.dag.numDevices));
    if (several)
      return fail(ErrorKind::Unsupported,
                  fmt::format("target '{}': several GPUs are measured by ranks "
                              "(--distributed), of which one may have them "
                              "all; cuda:{}/{} is one GPU as so many devices",
                              target, several->front(),
                              program.dag.numDevices));
  }
  MGPU_TRY_ASSIGN(context.target, identifyGpu(target, usesCuda || theRanks()));
  MGPU_TRY_ASSIGN(context.machine, openMachine(target, context.devices));
  auto cache = openCubinCache(program.from.database);
  MGPU_TRY_ASSIGN(context.texts, cudaTexts(program, cache.get()));
  for (const kernels::CudaText &text : context.texts)
    context.spaces.push_back(text.space.value_or(kernels::KernelSpace()));
  context.limits = {1, streamsOf(target, 8)};
  if (!program.dag.kernels.empty())
    context.settings.push_back(pdlSetting(context.target->architecture,
                                          program.variants.uses(Variant::Pdl)));
  return {};
}

/// A kernel that is built already has one variant.
static kernels::KernelSpace builtSpace() {
  kernels::KernelSpace space;
  space.reason = "the bundle has it built";
  space.offerDefaults(space.reason);
  return space;
}

/// Adds the host's kernels of a bundle, which are built, each in one way or in
/// some.
static Result<void> addBuilt(TuneContext &context,
                             const LoadedProgram &program) {
  MGPU_TRY_ASSIGN(auto spaces, program.bundle->hostSpaces());
  context.spaces = spaces
                       ? std::move(*spaces)
                       : std::vector(program.dag.kernels.size(), builtSpace());
  MGPU_TRY_ASSIGN(HostKernels built, hostKernels(program, ""));
  context.level = std::move(built.cpu);
  for (std::vector<std::byte> &object : built.objects)
    context.compiled.push_back(std::make_shared<Bytes>(std::move(object)));
  return {};
}

Result<TuneContext> makeTuneContext(const LoadedProgram &program,
                                    bool usesCuda) {
  MGPU_TRY(checkHasKernels(program, "cannot run"));
  const std::string &target = program.from.target;
  TuneContext context;
  context.devices = program.dag.numDevices;
  if (!theRanks() || !isCudaTarget(target)) {
    MGPU_TRY_ASSIGN(context.devices,
                    targetDevices(target, program.dag.numDevices));
  }
  context.environment = bench::readEnvironment();
  context.settings = settingsOf(program.dag);
  if (isCudaTarget(target)) {
    MGPU_TRY(addGpu(context, program, usesCuda));
  } else {
    context.ranks = ranksText();
    MGPU_TRY_ASSIGN(context.machine, openMachine(target, context.devices, "",
                                                 program.from.database));
    context.limits.mostThreads =
        std::max(1u, std::min(mostDevicesOfRank(context.devices),
                              context.environment.cores / numRanksHere()));
    if (context.limits.mostThreads > 1 && !theRanks()) {
      MGPU_TRY_ASSIGN(const planner::Plan plan,
                      planner::schedule(program.dag, context.machine));
      context.limits.defaultThreads =
          planner::usefulThreads(plan, program.dag, context.limits.mostThreads);
    }
    if (program.bundle) {
      MGPU_TRY(addBuilt(context, program));
      return context;
    }
    MGPU_TRY_ASSIGN(context.spaces,
                    program.compiler().hostKernelSpaces(program.dag));
  }
  const ProgramConfig defaults =
      tuner::defaultConfig(program.dag, context.spaces, context.limits);
  MGPU_TRY_ASSIGN(auto objects, compileConfig(program, context, defaults));
  for (std::vector<std::byte> &object : objects)
    context.compiled.push_back(std::make_shared<Bytes>(std::move(object)));
  return context;
}

/// A kernel of `config` for a GPU: compiled, or what it came as.
static Result<Bytes> gpuKernel(const LoadedProgram &program,
                               const TuneContext &context, size_t kernel,
                               const kernels::KernelConfig &config, bool awaits,
                               device::BlobCache *cache) {
  const std::string &arch = context.target->architecture;
  const kernels::CudaText &text = context.texts[kernel];
  if (config == context.spaces[kernel].defaults) {
    MGPU_TRY_ASSIGN(auto given,
                    givenCubin(program.dag.kernels[kernel], text, arch));
    if (given)
      return kernels::encodeImage(
          kernels::recipeOf(text, arch).imageOf(*given));
  }
  return kernels::buildGpuKernel(text, config, arch, awaits, cache);
}

Result<std::vector<std::vector<std::byte>>>
compileConfig(const LoadedProgram &program, const TuneContext &context,
              const ProgramConfig &config, const std::string &cpu) {
  auto cache = context.target ? openCubinCache(program.from.database) : nullptr;
  const bool byDefault = program.variants.uses(Variant::Pdl);
  const bool awaits = usesPdl(config.settings, byDefault);
  std::vector<Result<std::vector<std::byte>>> results(
      program.dag.kernels.size());
  const bool isBuilt = program.bundle && !context.target;
  // A bundle's file is read by one thread at a time.
  parallelFor(results.size(), isBuilt ? 1 : 0, [&](size_t k) {
    bool isDefault = config.kernels[k] == context.spaces[k].defaults;
    if (isDefault && cpu == "native" && awaits == byDefault &&
        k < context.compiled.size())
      results[k] = *context.compiled[k];
    else if (context.target)
      results[k] = gpuKernel(program, context, k, config.kernels[k], awaits,
                             cache.get());
    else if (isBuilt)
      results[k] = program.bundle->hostKernel(uint32_t(k), context.level,
                                              config.kernels[k]);
    else
      results[k] = program.compiler().buildHostKernel(
          program.dag, {uint32_t(k)}, context.spaces[k], config.kernels[k],
          cpu);
  });
  return allOf(std::move(results));
}

std::string describeConfig(const ProgramConfig &config, const planner::Dag &dag,
                           std::span<const kernels::KernelSpace> spaces,
                           std::string_view indent) {
  std::string text = fmt::format(
      "{}scheduler={} streams={} threads={} seed={}{}{}{}{}", indent,
      config.scheduler, config.streams, config.threads, config.seed,
      config.schedulePolicy.order ? "" : " order=program",
      config.schedulePolicy.early ? "" : " early=off",
      config.transforms.empty() ? "" : " ", tuner::toText(config.transforms));
  for (auto &[name, value] : config.settings)
    text += fmt::format(" {}={}", name, value);
  text += '\n';
  for (size_t k = 0; k < config.kernels.size(); ++k)
    if (config.kernels[k] != spaces[k].defaults)
      text += fmt::format("{}{}: {}\n", indent, dag.kernels[k].name,
                          toText(config.kernels[k]));
  return text;
}

Result<std::vector<tuner::ProgramInput>>
programInputs(const LoadedProgram &program,
              std::vector<tuner::ProgramInput> given,
              std::vector<std::string> *madeUp) {
  std::set<planner::BufferId> ofCaller;
  for (const tuner::ProgramInput &input : given)
    ofCaller.insert(input.buffer);
  auto isNeeded = [&](planner::BufferId id) { return !ofCaller.contains(id); };
  MGPU_TRY_ASSIGN(auto arguments,
                  loadArguments(program, true, isNeeded, madeUp));
  for (ArgumentArray &argument : arguments)
    given.push_back({*argument.argument->buffer, argument.value.elementType,
                     std::move(argument.value.bytes)});
  return given;
}

/// Builds one kernel in a worker process, which inherits no connection to a
/// database.
static Result<Bytes> buildInWorker(const LoadedProgram &program,
                                   const TuneContext &context, uint32_t kernel,
                                   const kernels::KernelConfig &config,
                                   bool awaits) {
  if (context.target)
    return gpuKernel(program, context, kernel, config, awaits,
                     openCubinCache(program.from.database).get());
  if (config == context.spaces[kernel].defaults)
    return *context.compiled[kernel];
  if (program.bundle) {
    MGPU_TRY_ASSIGN(auto bundle, capture::Bundle::open(program.bundle->path()));
    return bundle.hostKernel(kernel, context.level, config);
  }
  return program.compiler().buildHostKernel(
      program.dag, {kernel}, context.spaces[kernel], config, "native");
}

tuner::TuningSubject tuningSubject(const LoadedProgram &program,
                                   const TuneContext &context,
                                   const tuner::ProgramData &data) {
  tuner::TuningSubject subject{program.dag, data, context.spaces, {}, {}};
  subject.build = [&](uint32_t kernel, const kernels::KernelConfig &config,
                      uint32_t variant) {
    return buildInWorker(program, context, kernel, config, variant != 0);
  };
  subject.openDriver = [&](uint32_t, uint32_t threads,
                           std::span<const int> workerCpus) {
    return openTarget(
        program.from.target, program.dag.numDevices,
        OpenOptions{.threads = threads,
                    .workerCpus = workerCpus,
                    .compile = ownCompiler(program.from.database)});
  };
  subject.mostThreads = context.limits.mostThreads;
  subject.defaultThreads = context.limits.defaultThreads;
  subject.compiled = context.compiled;
  subject.mostStreams = context.limits.mostStreams;
  subject.settings = context.settings;
  subject.ranks = context.ranks;
  subject.target = context.target;
  subject.machine = context.machine;
  if (context.target) {
    subject.gpu = device::profileOfArchitecture(context.target->architecture);
    subject.predict = [&](uint32_t kernel,
                          std::span<const kernels::KernelConfig> configs) {
      return predictConfigs(program, context.machine, kernel,
                            context.texts[kernel], configs);
    };
  }
  subject.accuracy = tuner::Accuracy{
      [&](uint32_t kernel) {
        return program.compiler().buildErrorKernel(program.dag, {kernel});
      },
      [](uint32_t devices, uint32_t threads, std::span<const int> workerCpus) {
        return openTarget(
            "host", devices,
            OpenOptions{.threads = threads, .workerCpus = workerCpus});
      }};
  subject.variantOf = [byDefault = program.variants.uses(Variant::Pdl)](
                          const std::map<std::string, std::string> &settings) {
    return uint32_t(usesPdl(settings, byDefault));
  };
  return subject;
}

tuner::SubjectName nameOf(const LoadedProgram &program) {
  return {program.from.file, program.from.entry, program.from.arguments};
}

tuner::ProgramFacts factsOf(const LoadedProgram &program,
                            const TuneContext &context, bool coldCaches) {
  tuner::ProgramFacts facts =
      tuner::describeProgram(program.dag, nameOf(program));
  const tuner::KeyInput keys = context.keys(program.dag, coldCaches);
  const std::vector<Dim3> grids = planner::largestGrids(program.dag);
  for (uint32_t k = 0; k < facts.kernels.size(); ++k)
    facts.kernels[k].key = tuner::kernelProblem(keys, {k}, grids[k]).key();
  return facts;
}

} // namespace mgpu::pipeline
