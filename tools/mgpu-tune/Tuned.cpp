// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Tuned.h"

#include "db/FileSystem.h"
#include "planner/plan/Workspace.h"
#include "planner/schedule/list/PlanBuilder.h"
#include "support/Clock.h"
#include "support/Parallel.h"
#include "tools/mgpu-tune/Arguments.h"
#include "tools/mgpu-tune/CardTuning.h"
#include "tools/mgpu-tune/CubinCache.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/Target.h"
#include "tuner/record/MeasuredTimes.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <set>
#include <unistd.h>

namespace mgpu::tune {

using tuner::ProgramConfig;

tuner::KeyInput TuneContext::keys(const planner::Dag &dag,
                                  bool coldCaches) const {
  return {dag,     compiled,   environment, MGPU_VERSION,
          devices, coldCaches, target};
}

/// What targets let be chosen of collectives, this one does not: the host, or
/// one card as several devices.
static std::vector<tuner::TargetSetting> settingsOf(const planner::Dag &dag) {
  if (std::none_of(dag.nodes.begin(), dag.nodes.end(),
                   [](const planner::DagNode &node) {
                     return workClass(node) == planner::WorkClass::Collective;
                   }))
    return {};
  constexpr const char *ofNccl = "is NCCL's, between several cards";
  return {{"algorithm",
           {"rank order"},
           "devices of one memory have one algorithm for each collective"},
          {"communicator_split", {"off"}, ofNccl},
          {"cta_policy", {"none"}, ofNccl}};
}

/// What of the context is a card's.
static Result<void> addCard(TuneContext &context, const Program &program,
                            const Options &options, bool usesCuda) {
  MGPU_TRY_ASSIGN(auto several,
                  severalCards(options.target, program.dag.numDevices));
  if (several)
    return fail(ErrorKind::Unsupported,
                fmt::format("target '{}': this version measures on one card; "
                            "cuda:{}/{} is one as so many devices",
                            options.target, several->front(),
                            program.dag.numDevices));
  MGPU_TRY_ASSIGN(context.target, identifyCard(options.target, usesCuda));
  auto cache = openCubinCache(options);
  MGPU_TRY_ASSIGN(context.texts, cudaTexts(program, cache.get()));
  for (const kernels::CudaText &text : context.texts)
    context.spaces.push_back(text.space.value_or(planner::KernelSpace()));
  context.limits = {1, streamsOf(options.target, 8)};
  if (!program.dag.kernels.empty())
    context.settings.push_back(pdlSetting(context.target->architecture));
  return {};
}

/// Of a kernel that is built already: one way.
static planner::KernelSpace builtSpace() {
  planner::KernelSpace space;
  space.reason = "the bundle has it built";
  for (size_t p = 0; p < planner::numKernelParameters; ++p)
    space.choices.push_back({planner::KernelParameter(p),
                             {space.defaults.values[p]},
                             space.reason});
  return space;
}

Result<TuneContext> makeTuneContext(const Program &program,
                                    const Options &options, bool usesCuda) {
  for (const planner::DagNode &node : program.dag.nodes)
    if (std::holds_alternative<planner::OpaqueCall>(node.work))
      return fail(ErrorKind::Unsupported,
                  fmt::format("'{}' is known only by its costs and cannot run: "
                              "give the program it was made of",
                              options.file));
  TuneContext context;
  MGPU_TRY_ASSIGN(context.devices,
                  targetDevices(options.target, program.dag.numDevices));
  context.environment = bench::readEnvironment();
  context.settings = settingsOf(program.dag);
  if (isCudaTarget(options.target)) {
    MGPU_TRY(addCard(context, program, options, usesCuda));
  } else {
    context.limits.mostLanes =
        std::max(1u, std::min(context.devices, context.environment.cores));
    if (program.bundle) {
      // Its kernels are built, each in one way or in some.
      MGPU_TRY_ASSIGN(auto spaces, program.bundle->hostSpaces());
      context.spaces =
          spaces ? std::move(*spaces)
                 : std::vector(program.dag.kernels.size(), builtSpace());
      MGPU_TRY_ASSIGN(HostKernels built, hostKernels(program, options.cpu));
      context.level = std::move(built.cpu);
      for (std::vector<std::byte> &object : built.objects)
        context.compiled.push_back(std::make_shared<Bytes>(std::move(object)));
      return context;
    }
    MGPU_TRY_ASSIGN(context.spaces, hostKernelSpaces(program.dag));
  }
  ProgramConfig defaults =
      tuner::defaultConfig(program.dag, context.spaces, context.limits);
  MGPU_TRY_ASSIGN(auto objects,
                  compileConfig(program, context, defaults, options));
  for (std::vector<std::byte> &object : objects)
    context.compiled.push_back(std::make_shared<Bytes>(std::move(object)));
  return context;
}

Result<std::vector<std::vector<std::byte>>>
compileConfig(const Program &program, const TuneContext &context,
              const ProgramConfig &config, const Options &options,
              const std::string &cpu) {
  auto cache = context.target ? openCubinCache(options) : nullptr;
  const bool awaits = usesPdl(config.settings);
  std::vector<Result<std::vector<std::byte>>> results(
      program.dag.kernels.size());
  const bool isBuilt = program.bundle && !context.target;
  // A bundle's file is read by one thread at a time.
  parallelFor(results.size(), isBuilt ? 1 : 0, [&](size_t k) {
    bool isDefault = config.kernels[k] == context.spaces[k].defaults;
    if (isDefault && cpu == "native" && !awaits && k < context.compiled.size())
      results[k] = *context.compiled[k];
    else if (context.target)
      results[k] =
          buildCardKernel(context.texts[k], config.kernels[k],
                          context.target->architecture, awaits, cache.get());
    else if (isBuilt)
      results[k] = program.bundle->hostKernel(uint32_t(k), context.level,
                                              config.kernels[k]);
    else
      results[k] = buildHostKernel(program.dag, {uint32_t(k)},
                                   context.spaces[k], config.kernels[k], cpu);
  });
  std::vector<std::vector<std::byte>> objects;
  for (auto &result : results) {
    MGPU_TRY_ASSIGN(auto object, std::move(result));
    objects.push_back(std::move(object));
  }
  return objects;
}

std::string describeConfig(const ProgramConfig &config, const planner::Dag &dag,
                           std::span<const planner::KernelSpace> spaces,
                           std::string_view indent) {
  std::string text = fmt::format(
      "{}scheduler={} streams={} lanes={} seed={}{}{}{}{}", indent,
      config.scheduler, config.streams, config.lanes, config.seed,
      config.freedoms.order ? "" : " order=program",
      config.freedoms.early ? "" : " early=off",
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

Result<void> transformChosen(Program &program, const TunedChoice &choice) {
  if (choice.config.transforms.empty())
    return {};
  MGPU_TRY_ASSIGN(program.dag,
                  tuner::transformed(program.dag, choice.config.transforms));
  return {};
}

Result<planner::Plan> planChosen(const planner::Dag &dag,
                                 const TunedChoice &choice,
                                 const std::string &path) {
  planner::RooflineEstimator roofline(planner::hostRates(), "host roofline");
  tuner::NodeTimes times(dag.nodes.size());
  if (access(path.c_str(), R_OK) == 0) {
    db::StoreOptions storing;
    storing.database.access = db::Access::ReadOnly;
    // What is damaged costs the times, and findTuned() has said so.
    if (auto store = db::TuningStore::open(path, storing)) {
      MGPU_TRY_ASSIGN(times,
                      tuner::readNodeTimes(choice.context.keys(dag, false),
                                           choice.config, *store));
    }
  }
  tuner::MeasuredEstimator measured(std::move(times), roofline);
  if (measured.numMeasured() == 0)
    return tuner::planFor(dag, choice.config);
  if (!choice.isTuned)
    return tuner::planFor(dag, choice.config, &measured);
  MGPU_TRY_ASSIGN(planner::Plan plan, tuner::planFor(dag, choice.config));
  for (planner::PlanStep &step : plan.steps)
    step.durationUs = measured.durationUs(dag, step.node);
  plan.model = measured.name();
  plan.lowerBoundUs = planner::makespanLowerBound(dag, measured);
  planner::predictTimes(plan, dag);
  return plan;
}

Result<std::optional<tuner::StoredDecision>>
readDecision(const Program &program, const TuneContext &context,
             const std::string &path) {
  db::StoreOptions storing;
  storing.database.access = db::Access::ReadOnly;
  MGPU_TRY_ASSIGN(db::TuningStore store, db::TuningStore::open(path, storing));
  return tuner::findDecision(context.keys(program.dag, false), context.spaces,
                             context.settings, store);
}

Result<std::vector<tuner::ProgramInput>> programInputs(const Program &program,
                                                       const Options &options) {
  MGPU_TRY_ASSIGN(auto arguments, loadArguments(program, options, true));
  std::set<const Binding *> given;
  for (const auto &[key, value] : options.arguments) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--arg", false));
    given.insert(binding);
  }
  std::string made;
  std::vector<tuner::ProgramInput> inputs;
  for (ArgumentArray &argument : arguments) {
    if (!given.contains(argument.binding))
      made += (made.empty() ? "" : ", ") + argument.binding->name;
    inputs.push_back({*argument.binding->buffer, argument.value.elementType,
                      std::move(argument.value.bytes)});
  }
  if (!made.empty())
    fmt::print(stderr,
               "mgpu-tune: no value for {}: random numbers are used "
               "(zeros for integers)\n",
               made);
  return inputs;
}

tuner::TuningSubject tuningSubject(const Program &program,
                                   const Options &options,
                                   const TuneContext &context,
                                   const tuner::ProgramData &data) {
  return {program.dag,
          data,
          context.spaces,
          [&](uint32_t kernel, const planner::KernelConfig &config,
              uint32_t variant) -> Result<Bytes> {
            // In a worker: a connection to the database is not inherited.
            if (context.target)
              return buildCardKernel(context.texts[kernel], config,
                                     context.target->architecture, variant != 0,
                                     openCubinCache(options).get());
            if (config == context.spaces[kernel].defaults)
              return *context.compiled[kernel];
            if (program.bundle) {
              MGPU_TRY_ASSIGN(auto bundle,
                              capture::Bundle::open(program.bundle->path()));
              return bundle.hostKernel(kernel, context.level, config);
            }
            return buildHostKernel(program.dag, {kernel},
                                   context.spaces[kernel], config);
          },
          [&](uint32_t, uint32_t lanes, std::span<const int> workerCpus) {
            return openTarget(
                options.target, program.dag.numDevices,
                OpenOptions{.lanes = lanes,
                            .workerCpus = workerCpus,
                            .compile = ownCompiler(options.database)});
          },
          context.limits.mostLanes,
          context.compiled,
          context.limits.mostStreams,
          context.settings,
          context.target,
          context.target
              ? device::profileOfArchitecture(context.target->architecture)
              : nullptr,
          tuner::Accuracy{[&](uint32_t kernel) {
                            return buildErrorKernel(program.dag, {kernel});
                          },
                          [](uint32_t devices, uint32_t lanes,
                             std::span<const int> workerCpus) {
                            return openTarget(
                                "host", devices,
                                OpenOptions{.lanes = lanes,
                                            .workerCpus = workerCpus});
                          }},
          [](const std::map<std::string, std::string> &settings) {
            return uint32_t(usesPdl(settings));
          }};
}

tuner::ProgramFacts factsOf(const Program &program, const TuneContext &context,
                            const Options &options) {
  tuner::ProgramFacts facts = tuner::describeProgram(
      program.dag, {options.file, options.entry, options.arguments});
  const tuner::KeyInput keys = context.keys(program.dag, options.coldCaches);
  const std::vector<Dim3> grids = planner::largestGrids(program.dag);
  for (uint32_t k = 0; k < facts.kernels.size(); ++k)
    facts.kernels[k].key = tuner::kernelProblem(keys, {k}, grids[k]).key();
  return facts;
}

/// The number of threads that `profile` found fastest, if it was asked.
static Result<std::optional<uint32_t>>
profiledThreads(const Program &program, const TuneContext &context,
                const std::string &path) {
  db::StoreOptions storing;
  storing.database.access = db::Access::ReadOnly;
  auto store = db::TuningStore::open(path, storing);
  if (!store) // findTuned() has said so where it matters
    return std::optional<uint32_t>();
  return tuner::readThreads(context.keys(program.dag, false), *store);
}

bool looksForTuned(const Options &options, bool usesCuda) {
  if ((isCudaTarget(options.target) && !usesCuda) || !options.useTuned ||
      options.choosesPlan || !options.tensorCores.empty() || options.pdl ||
      !options.cpu.empty())
    return false;
  auto path = db::databasePath(options.database);
  // No kernel is compiled for a key where there is no file to look in.
  return path &&
         (!options.database.empty() || access(path->c_str(), R_OK) == 0);
}

Result<std::optional<TunedChoice>>
findTuned(const Program &program, const Options &options, bool usesCuda) {
  using None = std::optional<TunedChoice>;
  if (!looksForTuned(options, usesCuda))
    return None();
  const bool asked = !options.database.empty();
  MGPU_TRY_ASSIGN(const std::string path, db::databasePath(options.database));
  auto context = makeTuneContext(program, options, usesCuda);
  // Nor is a bundle tuned here whose kernels are not for this machine.
  if (!context &&
      (context.error().kind == ErrorKind::Unsupported || program.bundle))
    return None();
  if (!context)
    return fail(context.error());
  auto found = readDecision(program, *context, path);
  if (!found && asked)
    return fail(found.error());
  if (!found)
    fmt::print(stderr, "mgpu-tune: warning: not tuned: {}\n",
               found.error().message);
  TunedChoice choice{std::move(*context), {}, false};
  if (found && *found) {
    choice.config = std::move((*found)->config);
    choice.isTuned = true;
    fmt::print(stderr,
               "mgpu-tune: using the configuration tuned in '{}' ({})\n", path,
               (*found)->sentence);
  } else if (program.bundle) {
    return None(); // it is the choice of whoever made it
  } else {
    choice.config = tuner::defaultConfig(program.dag, choice.context.spaces,
                                         choice.context.limits);
    MGPU_TRY_ASSIGN(auto threads,
                    profiledThreads(program, choice.context, path));
    choice.config.lanes =
        std::min(threads.value_or(choice.config.lanes), choice.config.lanes);
  }
  return None(std::move(choice));
}

Result<Prepared> prepare(Program &program, const Options &options,
                         const std::string &arch) {
  Prepared prepared;
  const bool hasPlan = !options.planFile.empty() || options.needsPlan;
  Clock::time_point start = Clock::now();
  // Before a plan's transforms: what was tuned is known by the program as it
  // is.
  const bool onCard = !arch.empty();
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, options, onCard));
  if (onCard && choice && !choice->isTuned)
    choice.reset(); // `profile` has nothing to say of a card
  prepared.compileUs = microsecondsSince(start);
  start = Clock::now();
  if (!hasPlan && choice) {
    MGPU_TRY_ASSIGN(const std::string path, db::databasePath(options.database));
    MGPU_TRY(transformChosen(program, *choice));
    MGPU_TRY_ASSIGN(prepared.plan, planChosen(program.dag, *choice, path));
  } else {
    MGPU_TRY_ASSIGN(prepared.plan, planFor(program, options));
  }
  prepared.planUs = microsecondsSince(start);
  start = Clock::now();
  if (choice) {
    MGPU_TRY_ASSIGN(prepared.kernels, compileConfig(program, choice->context,
                                                    choice->config, options));
    if (onCard)
      prepared.cpu = arch;
    prepared.lanes = choice->config.lanes;
    prepared.isTuned = choice->isTuned;
  } else if (onCard) {
    auto cache = openCubinCache(options);
    prepared.cpu = arch;
    MGPU_TRY_ASSIGN(kernels::CudaObjects kernels,
                    cudaKernels(program, prepared.cpu, cache.get()));
    prepared.kernels = std::move(kernels.objects);
    planner::addWorkspaces(program.dag, prepared.plan, kernels.workspaceBytes);
  } else {
    MGPU_TRY_ASSIGN(HostKernels kernels, hostKernels(program, options.cpu));
    prepared.kernels = std::move(kernels.objects);
    prepared.cpu = std::move(kernels.cpu);
    if (program.bundle && !options.choosesPlan && options.planFile.empty())
      prepared.lanes = program.bundle->threads();
  }
  prepared.compileUs += microsecondsSince(start);
  return prepared;
}

} // namespace mgpu::tune
