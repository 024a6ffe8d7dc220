// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/tune/Tune.h"

#include "db/FileSystem.h"
#include "pipeline/tune/TuneTogether.h"

#include <cmath>
#include <fmt/format.h>
#include <random>

namespace mgpu::pipeline {

using tuner::TuningResult;

/// The decision of an earlier session, as a result of this one.
static TuningResult resultOf(const tuner::StoredDecision &earlier,
                             const LoadedProgram &program,
                             const TuneContext &context) {
  TuningResult result;
  result.fromStore = true;
  result.config = earlier.config;
  result.isDefault =
      result.config ==
      tuner::defaultConfig(program.dag, context.spaces, context.limits);
  result.times = earlier.times;
  result.exhausted = earlier.exhausted;
  result.agreement = earlier.agreement;
  return result;
}

/// Whether an earlier session spent the budget. An interrupted one is taken up
/// again.
static bool isEnough(const tuner::StoredDecision &earlier,
                     const SearchBudget &budget) {
  return earlier.complete &&
         (earlier.exhausted ||
          (std::isfinite(budget.seconds)
               ? earlier.seconds >= 0.9 * budget.seconds
               : earlier.evaluations >= budget.evaluations));
}

/// The program's inputs, those of `request.values` in place of its own.
static Result<std::vector<tuner::ProgramInput>>
inputsOf(const LoadedProgram &program, const TuneRequest &request) {
  std::vector<tuner::ProgramInput> given;
  for (const auto &[name, bytes] : request.values) {
    MGPU_TRY_ASSIGN(const planner::ProgramArgument *argument,
                    findArgument(program, name, "tune", false));
    const uint64_t size =
        argument->buffer ? program.dag.buffer(*argument->buffer).sizeBytes : 0;
    if (!argument->buffer || bytes.size() != size)
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' has {} bytes, and {} are given", name, size,
                              bytes.size()));
    given.push_back({*argument->buffer, argument->elementType, bytes});
  }
  return programInputs(program, std::move(given), request.madeUp);
}

/// Searches for the rest of a budget.
static Result<TuningResult> search(const LoadedProgram &program,
                                   const TuneContext &context,
                                   const SearchBudget &budget,
                                   const TuneRequest &request,
                                   db::TuningStore &store) {
  MGPU_TRY_ASSIGN(auto inputs, inputsOf(program, request));
  tuner::ProgramData data(program.dag, std::move(inputs));
  tuner::TuningOptions tuning;
  tuning.budget = budget;
  tuning.asked = request.budget.seconds;
  tuning.started = request.started;
  tuning.strategy = request.strategy;
  tuning.seed = request.seed;
  tuning.version = MGPU_VERSION;
  tuning.devices = context.devices;
  tuning.name = nameOf(program);
  tuning.evaluation.cache =
      request.coldCaches ? bench::CacheMode::Cold : bench::CacheMode::Hot;
  tuning.evaluation.compilers = context.environment.cores;
  tuning.evaluation.pinThreads = request.pinThreads;
  // CUDA maps far more than a candidate uses, all of it data to the system.
  tuning.evaluation.memoryBytes =
      context.target ? 0 : context.environment.memoryBytes;
  tuning.evaluation.freshSeed = std::random_device()();
  tuning.progress = request.progress;
  tuning.stop = request.stop;
  tuner::TuningSubject subject = tuningSubject(program, context, data);
  if (request.leader)
    request.leader->lead(subject, request.coldCaches, request.gpus);
  return tuner::tune(subject, tuning, &store);
}

Result<TuningResult> tuneProgram(const LoadedProgram &program,
                                 const TuneContext &context,
                                 const TuneRequest &request) {
  MGPU_TRY_ASSIGN(const std::string path,
                  db::databasePath(program.from.database));
  MGPU_TRY_ASSIGN(db::TuningStore store, db::TuningStore::open(path));
  const tuner::KeyInput keys = context.keys(program.dag, request.coldCaches);
  MGPU_TRY_ASSIGN(auto earlier, tuner::findDecision(keys, context.spaces,
                                                    context.settings, store));
  if (earlier && isEnough(*earlier, request.budget))
    return resultOf(*earlier, program, context);
  SearchBudget budget = request.budget;
  if (earlier) { // the rest of a larger budget
    budget.seconds -= std::min(budget.seconds, earlier->seconds);
    budget.evaluations -= std::min(budget.evaluations, earlier->evaluations);
  }
  return search(program, context, budget, request, store);
}

} // namespace mgpu::pipeline
