// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/build/Prepare.h"

#include "capture/replay/Workspaces.h"
#include "db/FileSystem.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/target/Target.h"
#include "pipeline/target/TheRanks.h"
#include "support/Clock.h"
#include "tuner/record/MeasuredTimes.h"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

namespace mgpu::pipeline {

bool mayUseRecord(const PrepareOptions &options) {
  return options.useTuned && !options.mustBeStored && options.planFile.empty();
}

/// Says what is wrong with the database, which the program runs without.
static void warnOfDatabase(const LoadedProgram &program, const Error &error) {
  if (!program.from.isQuiet)
    fmt::print(stderr, "mgpu-tune: warning: not tuned: {}\n", error.message);
}

static Result<db::TuningStore> openToRead(const std::string &path) {
  db::StoreOptions storing;
  storing.database.access = db::Access::ReadOnly;
  return db::TuningStore::open(path, storing);
}

Result<void> transformChosen(LoadedProgram &program,
                             const TunedChoice &choice) {
  if (choice.config.transforms.empty())
    return {};
  MGPU_TRY_ASSIGN(program.dag,
                  tuner::transformed(program.dag, choice.config.transforms));
  return {};
}

Result<planner::Machine> machineOf(const LoadedProgram &program,
                                   const TunedChoice &choice) {
  MGPU_TRY_ASSIGN(const std::string path,
                  db::databasePath(program.from.database));
  const planner::Machine &machine = choice.context.machine;
  if (access(path.c_str(), R_OK) != 0)
    return machine;
  auto store = openToRead(path);
  if (!store) // it costs the times, and findTuned() has said so
    return machine;
  auto times = tuner::readNodeTimes(choice.context.keys(program.dag, false),
                                    choice.config, *store);
  if (times)
    return machine.withTimes(std::move(*times));
  if (choice.needsDatabase)
    return fail(times.error());
  warnOfDatabase(program, times.error());
  return machine;
}

Result<std::optional<tuner::StoredDecision>>
readDecision(const LoadedProgram &program, const TuneContext &context,
             const std::string &path) {
  MGPU_TRY_ASSIGN(db::TuningStore store, openToRead(path));
  return tuner::findDecision(context.keys(program.dag, false), context.spaces,
                             context.settings, store);
}

/// Names a configuration that was chosen by other times than a replay's.
static void nameOlder(const TuneContext &context, const planner::Dag &dag,
                      const std::string &path) {
  const auto older = tuner::olderDecisionProblem(context.keys(dag, false));
  auto store = openToRead(path);
  if (!older || !store)
    return;
  if (const auto trials = store->trials(*older);
      trials && !trials->trials.empty())
    fmt::print(stderr,
               "mgpu-tune: what was tuned in '{}' was judged by load, replay "
               "and fetch together, and is not used: tune again\n",
               path);
}

/// The number of threads that `profile` found fastest, if it was asked.
static Result<std::optional<uint32_t>>
profiledThreads(const LoadedProgram &program, const TuneContext &context,
                const std::string &path) {
  auto store = openToRead(path);
  if (!store) // findTuned() has said so where it matters
    return std::optional<uint32_t>();
  return tuner::readThreads(context.keys(program.dag, false), *store);
}

bool looksForTuned(const LoadOptions &from, const PrepareOptions &options,
                   bool usesCuda) {
  if ((isCudaTarget(from.target) && !usesCuda) || !options.useTuned ||
      options.isChosen || !from.variants.isOpen() || !options.cpu.empty())
    return false;
  auto path = db::databasePath(from.database);
  // No kernel is compiled for a key where there is no file to look in.
  return path && (!from.database.empty() || access(path->c_str(), R_OK) == 0);
}

Result<std::optional<TunedChoice>> findTuned(const LoadedProgram &program,
                                             const PrepareOptions &options,
                                             bool usesCuda) {
  using None = std::optional<TunedChoice>;
  if (!looksForTuned(program.from, options, usesCuda))
    return None();
  const bool asked = !program.from.database.empty();
  MGPU_TRY_ASSIGN(const std::string path,
                  db::databasePath(program.from.database));
  auto context = makeTuneContext(program, usesCuda);
  // Nor is a bundle tuned here whose kernels are not for this machine.
  if (!context && (context.error().kind == ErrorKind::Unsupported ||
                   context.error().kind == ErrorKind::Absent || program.bundle))
    return None();
  if (!context)
    return fail(context.error());
  auto found = readDecision(program, *context, path);
  const bool isStrict = options.needsDatabase || program.bundle;
  const bool isThere = access(path.c_str(), R_OK) == 0;
  if (!found && asked && (isStrict || !isThere))
    return fail(found.error());
  if (!found) {
    warnOfDatabase(program, found.error());
    return None();
  }
  const bool says = !program.from.isQuiet;
  TunedChoice choice{std::move(*context), {}, false, isStrict};
  if (*found) {
    choice.config = std::move((*found)->config);
    choice.isTuned = true;
    const bool isDefault =
        choice.config == tuner::defaultConfig(program.dag,
                                              choice.context.spaces,
                                              choice.context.limits);
    if (says)
      fmt::print(stderr, "mgpu-tune: using the {} '{}' ({})\n",
                 isDefault ? fmt::format("default configuration, as nothing "
                                         "beats it in")
                           : std::string("configuration tuned in"),
                 path, (*found)->times.sentence);
  } else if (program.bundle) {
    return None(); // it is the choice of whoever made it
  } else {
    if (says)
      nameOlder(choice.context, program.dag, path);
    choice.config = tuner::defaultConfig(program.dag, choice.context.spaces,
                                         choice.context.limits);
    auto threads = profiledThreads(program, choice.context, path);
    if (!threads && isStrict)
      return fail(threads.error());
    if (!threads) {
      warnOfDatabase(program, threads.error());
      return None();
    }
    choice.config.threads = std::min(threads->value_or(choice.config.threads),
                                     choice.context.limits.mostThreads);
  }
  return None(std::move(choice));
}

/// Builds what a choice has tuned.
static Result<void> buildChosen(const LoadedProgram &program,
                                const TunedChoice &choice, Prepared &prepared) {
  MGPU_TRY_ASSIGN(prepared.kernels,
                  compileConfig(program, choice.context, choice.config));
  prepared.threads = choice.config.threads;
  prepared.isTuned = choice.isTuned;
  prepared.nccl = ncclText(choice.config.settings);
  if (choice.isTuned)
    prepared.configuration =
        describeConfig(choice.config, program.dag, choice.context.spaces, "");
  return {};
}

/// Builds the default kernels, for GPUs of `arch` or for the host.
static Result<void> buildDefault(const LoadedProgram &program,
                                 const PrepareOptions &options,
                                 const std::string &arch, Prepared &prepared) {
  if (!arch.empty()) {
    auto cache = openCubinCache(program.from.database);
    MGPU_TRY_ASSIGN(prepared.kernels, cudaKernels(program, arch, cache.get()));
    return {};
  }
  MGPU_TRY_ASSIGN(HostKernels kernels, hostKernels(program, options.cpu));
  prepared.kernels = std::move(kernels.objects);
  prepared.cpu = std::move(kernels.cpu);
  if (program.bundle && !options.isChosen && options.planFile.empty())
    prepared.threads = program.bundle->threads();
  return {};
}

Result<Prepared> prepare(LoadedProgram &program, const PrepareOptions &options,
                         const std::string &arch) {
  MGPU_TRY_ASSIGN(Prepared prepared, prepareBare(program, options, arch));
  capture::addWorkspaces(program.dag, prepared.plan, prepared.kernels);
  return prepared;
}

Result<Prepared> prepareBare(LoadedProgram &program,
                             const PrepareOptions &options,
                             const std::string &arch) {
  Prepared prepared;
  const bool onGpu = !arch.empty();
  const bool hasPlan = !options.planFile.empty() || options.mustBeStored;
  Clock::time_point start = Clock::now();
  // This comes before a plan's transforms: what was tuned is known by the
  // program as it is.
  MGPU_TRY_ASSIGN(auto choice, findTuned(program, options, onGpu));
  if (onGpu && choice && !choice->isTuned)
    choice.reset(); // `profile` has nothing to say of a GPU
  prepared.compileUs = microsecondsSince(start);
  start = Clock::now();
  if (!hasPlan && choice) {
    MGPU_TRY(transformChosen(program, *choice));
    MGPU_TRY_ASSIGN(const planner::Machine machine,
                    machineOf(program, *choice));
    MGPU_TRY_ASSIGN(prepared.plan, tuner::planOf(program.dag, choice->config,
                                                 machine, choice->isTuned));
  } else {
    MGPU_TRY_ASSIGN(planner::TargetPlan made, makePlan(program, {options}));
    prepared.plan = std::move(made.plan);
  }
  prepared.planUs = microsecondsSince(start);
  start = Clock::now();
  if (onGpu)
    prepared.cpu = arch;
  MGPU_TRY(choice ? buildChosen(program, *choice, prepared)
                  : buildDefault(program, options, arch, prepared));
  if (options.threads > 0)
    prepared.threads = options.threads;
  else if (prepared.threads == 0 && !onGpu && !theRanks())
    prepared.threads = threadsFor(prepared.plan, program.dag);
  prepared.compileUs += microsecondsSince(start);
  return prepared;
}

} // namespace mgpu::pipeline
