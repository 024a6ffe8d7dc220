// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune run` and `mgpu-tune replay`: the three phases, timed apart.
#include "bench/measure/Pinning.h"
#include "bench/measure/Summary.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Expectations.h"
#include "pipeline/program/Faults.h"
#include "pipeline/program/Load.h"
#include "pipeline/run/Trace.h"
#include "pipeline/serve/Counters.h"
#include "pipeline/target/Target.h"
#include "support/FileIO.h"
#include "support/Units.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>

namespace mgpu::tools {

using nlohmann::json;

namespace {

json toJson(const bench::Summary &replayed, uint64_t repeat) {
  return {{"repeat", repeat},    {"median", replayed.median.middle},
          {"min", replayed.min}, {"p25", replayed.p25},
          {"p75", replayed.p75}, {"p95", replayed.p95}};
}

std::string textOf(const bench::Summary &replayed, uint64_t repeat) {
  std::string text = durationText(replayed.median.middle);
  if (repeat > 1)
    text +=
        fmt::format(" median of {} (min {}, p25 {}, p75 {}, p95 {})", repeat,
                    durationText(replayed.min), durationText(replayed.p25),
                    durationText(replayed.p75), durationText(replayed.p95));
  return text;
}

/// The times of the phases, in microseconds.
struct Times {
  double importUs = 0, loadUs = 0, readyUs = 0, fetchUs = 0;
  MadeRound first;
  std::vector<MadeRound> later;
};

/// Replays all rounds. Replays that write their own inputs are steps of a
/// computation, and the count is the user's, so none is spent on warming up.
Result<void> replayRounds(const LoadedProgram &program,
                          const RunOptions &options,
                          const std::vector<Round> &rounds, Runner &runner,
                          tuner::GuardedDriver *guard, Times &times,
                          std::string &printed) {
  // In JSON the text is a field, else it goes where the kernels' texts go.
  const OutputSinks sinks{
      [&](const std::string &text) {
        if (options.json)
          printed += text;
        else
          fmt::print("{}", text);
      },
      [](const std::string &text) { fmt::print(stderr, "{}", text); }};
  auto output = [&] { return giveOutputs(program, runner, sinks); };
  MGPU_TRY_ASSIGN(times.fetchUs, runRound(times.first, options.repeat, runner));
  if (guard)
    MGPU_TRY(checkGuard(*guard));
  MGPU_TRY(output());
  MGPU_TRY(writeOutputs(program, options.outputs, runner, Written::Others));
  MGPU_TRY(checkExpectations(program, runner));
  for (size_t k = 0; k < rounds.size(); ++k) {
    MGPU_TRY_ASSIGN(double us,
                    runRound(times.later[k], options.repeat, runner));
    times.fetchUs += us;
    if (guard)
      MGPU_TRY(checkGuard(*guard));
    MGPU_TRY(output());
    MGPU_TRY(writeOutputs(program, rounds[k].outputs, runner));
    MGPU_TRY(checkExpectations(program, runner));
  }
  MGPU_TRY(writeOutputs(program, options.outputs, runner, Written::Residents));
  if (options.traceFile.empty())
    return {};
  MGPU_TRY_ASSIGN(auto timed, runner.replayTimed());
  if (!isFirstRank())
    return {};
  return writeFileAtomic(
      options.traceFile,
      traceText(program.dag, timed, isCudaTarget(program.from.target)));
}

void printJson(const LoadedProgram &program, const RunOptions &options,
               const Prepared &prepared, const Times &times,
               const std::string &printed, const Runner &runner) {
  auto replayed = [&](const MadeRound &round) {
    return toJson(bench::summarize(round.replayUs), options.repeat);
  };
  json out{{"file", options.load.file},
           {"target", runner.description()},
           {"scheduler", prepared.plan.scheduler},
           {"plan", planLine(prepared.plan, program.dag, prepared.threads)},
           {"tuned", prepared.isTuned},
           {"cpu", prepared.cpu},
           {"pinned_cpus", bench::cpusText(prepared.cpus)},
           {"nodes", program.dag.nodes.size()},
           {"import_us", times.importUs},
           {"plan_us", prepared.planUs},
           {"compile_us", prepared.compileUs},
           {"load_us", times.loadUs},
           {"ready_us", times.readyUs},
           {"fetch_us", times.fetchUs},
           {"replay_us", replayed(times.first)}};
  for (const MadeRound &round : times.later)
    out["rounds"].push_back(
        {{"bind_us", round.bindUs}, {"replay_us", replayed(round)}});
  addPrediction(out, planner::predictReplay(prepared.plan, program.dag,
                                            prepared.threads));
  addUploads(out, program, durationsOf(prepared.plan, program.dag));
  if (!program.outputs.empty())
    out["printed"] = printed;
  tools::printJson(out);
}

/// "r0 -> r.npy (16 x f32)", in the order of the command line's names.
void printWritten(const LoadedProgram &program, const Pairs &outputs,
                  std::string_view round) {
  for (const auto &[key, file] : outputs)
    if (auto argument = findArgument(program, key, "--out", true)) {
      std::string shape;
      for (int64_t size : (*argument)->shape)
        shape += fmt::format("{}x", size);
      fmt::print("wrote   {}{} -> {} ({}{})\n", (*argument)->name, round, file,
                 shape, toString((*argument)->elementType));
    }
}

void printText(const LoadedProgram &program, const RunOptions &options,
               const std::vector<Round> &rounds, const Prepared &prepared,
               const Times &times) {
  auto replayed = [&](const MadeRound &round) {
    return textOf(bench::summarize(round.replayUs), options.repeat);
  };
  fmt::print(
      "prepare {} (import {}, plan {}, compile {})\n",
      durationText(times.importUs + prepared.planUs + prepared.compileUs),
      durationText(times.importUs), durationText(prepared.planUs),
      durationText(prepared.compileUs));
  const uint32_t used = program.dag.numDevices;
  fmt::print(
      "plan    {}\n{}{}",
      planLine(prepared.plan, program.dag, prepared.threads),
      idleText(used, targetDevices(program.from.target, used).value_or(used)),
      uploadsText(program, durationsOf(prepared.plan, program.dag)));
  if (!prepared.cpus.empty())
    fmt::print("pinned  CPU{} {}\n", prepared.cpus.size() == 1 ? "" : "s",
               bench::cpusText(prepared.cpus));
  fmt::print("load    {}\n", durationText(times.loadUs));
  fmt::print("replay  {}\n", replayed(times.first));
  for (size_t k = 0; k < times.later.size(); ++k)
    fmt::print("round {} {}, its data bound in {}\n", k + 2,
               replayed(times.later[k]), durationText(times.later[k].bindUs));
  fmt::print("fetch   {}\n", durationText(times.fetchUs));
  printWritten(program, options.outputs, "");
  for (size_t k = 0; k < rounds.size(); ++k)
    printWritten(program, rounds[k].outputs, fmt::format("@{}", k + 2));
}

/// Writes --metrics.
Result<void> writeMetrics(const LoadedProgram &program,
                          const RunOptions &options, const Times &times) {
  if (options.metricsFile.empty())
    return {};
  serve::Counters counters(program.dag.name);
  for (const double us : times.first.replayUs)
    counters.replayed(us);
  for (const MadeRound &round : times.later)
    for (const double us : round.replayUs)
      counters.replayed(us);
  return writeFileAtomic(options.metricsFile, serve::metricsText());
}

/// Rank 0 has what the program writes: it alone compares, prints and writes.
void forgetResults(LoadedProgram &program, RunOptions &options,
                   std::vector<Round> &rounds) {
  program.outputs.clear();
  program.expectations.clear();
  options.outputs.clear();
  for (Round &round : rounds)
    round.outputs.clear();
}

} // namespace

Result<int> runRun(const RunOptions &given) {
  RunOptions options = given;
  options.profiles = !options.traceFile.empty();
  FileUses uses =
      filesRead(options.load, {{"--plan", options.prepare.planFile}});
  for (const auto &[key, file] : options.outputs)
    MGPU_TRY(uses.write("--out " + key, file));
  MGPU_TRY(uses.write("--trace", options.traceFile));
  MGPU_TRY(uses.write("--metrics", options.metricsFile));
  MGPU_TRY(checkScheduler(options.prepare, options.load.given));
  MGPU_TRY_ASSIGN(std::vector<Round> rounds,
                  takeRounds(options.load.arguments, options.outputs));
  MGPU_TRY(checkRunner(options, options.load));
  MGPU_TRY(joinAsked(options));
  const Clock::time_point began = Clock::now();
  MGPU_TRY(parseNccl(options.nccl));
  options.load.usesRecord = mayUseRecord(options.prepare);
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(options.load));
  MGPU_TRY(chooseOrder(program, options.prepare));
  MGPU_TRY(checkOutputs(program, options.outputs));
  for (const Round &round : rounds)
    MGPU_TRY(checkOutputs(program, round.outputs, /*isLater=*/true));
  if (!isFirstRank())
    forgetResults(program, options, rounds);
  if (!isCudaTarget(options.load.target))
    nameFaults(program);
  Times times;
  Prepared prepared;
  auto opened = [&] { times.importUs = microsecondsSince(began); };
  tuner::GuardedDriver *guard = nullptr;
  MGPU_TRY_ASSIGN(const std::unique_ptr<Runner> runner,
                  openRunner(program, options, prepared, opened, guard));
  MGPU_TRY(bindArguments(program, *runner, options.random));
  MGPU_TRY_ASSIGN(times.later, makeRounds(program, rounds, *runner));
  const Clock::time_point start = Clock::now();
  MGPU_TRY(runner->load());
  times.loadUs = microsecondsSince(start);
  times.readyUs = microsecondsSince(began);
  std::string printed;
  MGPU_TRY(
      replayRounds(program, options, rounds, *runner, guard, times, printed));
  MGPU_TRY(runner->close());
  if (isFirstRank())
    MGPU_TRY(writeMetrics(program, options, times));
  if (!isFirstRank())
    return 0;
  if (options.json)
    printJson(program, options, prepared, times, printed, *runner);
  else
    printText(program, options, rounds, prepared, times);
  return 0;
}

} // namespace mgpu::tools
