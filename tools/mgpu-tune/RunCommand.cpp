// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune run` and `mgpu-tune replay`: the three phases, timed apart.
#include "bench/measure/Summary.h"
#include "capture/replay/Replayer.h"
#include "device/cuda/api/Libraries.h"
#include "support/Clock.h"
#include "support/FileIO.h"
#include "support/Npy.h"
#include "tools/mgpu-tune/Arguments.h"
#include "tools/mgpu-tune/CudaKernels.h"
#include "tools/mgpu-tune/Faults.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/OpenRanks.h"
#include "tools/mgpu-tune/Program.h"
#include "tools/mgpu-tune/Rounds.h"
#include "tools/mgpu-tune/Target.h"
#include "tools/mgpu-tune/Trace.h"
#include "tools/mgpu-tune/Tuned.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace mgpu::tune {

using capture::Runner;
using nlohmann::json;

namespace {

Result<void> bindArguments(const Program &program, const Options &options,
                           Runner &runner) {
  MGPU_TRY_ASSIGN(auto values, loadArguments(program, options));
  for (const auto &[binding, array] : values) {
    std::span<std::byte> bytes = runner.hostBuffer(*binding->buffer);
    if (bytes.size() != array.bytes.size())
      return fail(ErrorKind::Internal,
                  fmt::format("--arg {}: {} bytes for a buffer of {}",
                              binding->name, array.bytes.size(), bytes.size()));
    std::copy(array.bytes.begin(), array.bytes.end(), bytes.begin());
  }
  return {};
}

using Outputs = std::map<std::string, std::string>;

Result<void> checkOutputs(const Program &program, const Outputs &outputs) {
  for (const auto &[key, file] : outputs) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--out", true));
    if (!binding->buffer)
      return fail(ErrorKind::Usage,
                  fmt::format("--out {}: it is a scalar, not an output", key));
    if (file.size() < 5 || file.compare(file.size() - 4, 4, ".npy") != 0)
      return fail(
          ErrorKind::Usage,
          fmt::format("--out {}={}: outputs are written as .npy", key, file));
  }
  return {};
}

Result<void> writeOutputs(const Program &program, const Outputs &outputs,
                          Runner &runner) {
  for (const auto &[key, file] : outputs) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--out", true));
    std::span<std::byte> bytes = runner.hostBuffer(*binding->buffer);
    MGPU_TRY(writeNpy(file, Array{binding->elementType,
                                  binding->shape,
                                  {bytes.begin(), bytes.end()}}));
  }
  return {};
}

/// A round after the first, ready to be bound, and what it took.
struct MadeRound {
  std::vector<std::pair<planner::BufferId, std::span<std::byte>>> memory;
  double bindUs = 0;
  bench::Summary replayed;
};

/// In memory that the target reaches: to bind it is then all there is to do.
Result<std::vector<MadeRound>> makeRounds(const Program &program,
                                          const std::vector<Round> &rounds,
                                          Runner &runner) {
  std::vector<MadeRound> made(rounds.size());
  for (size_t k = 0; k < rounds.size(); ++k) {
    MGPU_TRY_ASSIGN(auto values, loadRound(program, rounds[k]));
    for (const auto &[binding, array] : values) {
      MGPU_TRY_ASSIGN(std::span<std::byte> memory,
                      runner.makeMemory(*binding->buffer));
      if (memory.size() != array.bytes.size())
        return fail(ErrorKind::Internal,
                    fmt::format("--arg {}: {} bytes for a buffer of {}",
                                binding->name, array.bytes.size(),
                                memory.size()));
      std::copy(array.bytes.begin(), array.bytes.end(), memory.begin());
      made[k].memory.push_back({*binding->buffer, memory});
    }
  }
  return made;
}

/// Binds the round's data, replays, and fetches; the last in microseconds.
Result<double> runRound(MadeRound &round, uint64_t repeat, Runner &runner) {
  Clock::time_point start = Clock::now();
  for (const auto &[id, memory] : round.memory)
    MGPU_TRY(runner.bind(id, memory));
  round.bindUs = microsecondsSince(start);
  std::vector<double> samples(repeat);
  MGPU_TRY(runner.replay(samples));
  round.replayed = bench::summarize(std::move(samples));
  start = Clock::now();
  MGPU_TRY(runner.fetch());
  return microsecondsSince(start);
}

json toJson(const bench::Summary &replayed, uint64_t repeat) {
  return {{"repeat", repeat},    {"median", replayed.median.middle},
          {"min", replayed.min}, {"p25", replayed.p25},
          {"p75", replayed.p75}, {"p95", replayed.p95}};
}

std::string textOf(const bench::Summary &replayed, uint64_t repeat) {
  std::string text = fmt::format("{:.3f} ms", replayed.median.middle / 1e3);
  if (repeat > 1)
    text += fmt::format(
        " median of {} (min {:.3f}, p25 {:.3f}, p75 {:.3f}, p95 {:.3f})",
        repeat, replayed.min / 1e3, replayed.p25 / 1e3, replayed.p75 / 1e3,
        replayed.p95 / 1e3);
  return text;
}

/// The times before anything runs.
struct Times {
  double importUs = 0;
  Prepared prepared;
};

Result<std::unique_ptr<Runner>> openOne(Program &program,
                                        const Options &options,
                                        Clock::time_point start, Times &times) {
  OpenOptions openOptions;
  openOptions.deadline =
      std::chrono::milliseconds(options.deadlineSeconds * 1000);
  openOptions.profiles = !options.traceFile.empty();
  const bool onCard = isCudaTarget(options.target);
  for (const char *option : {"--tensor-cores", "--pdl", "--deadline"})
    if (!onCard && options.given.count(option))
      return fail(
          ErrorKind::Usage,
          fmt::format("{} is for cards: use it with --target cuda:0", option));
  std::unique_ptr<device::Driver> driver;
  if (onCard) {
    MGPU_TRY_ASSIGN(openOptions.compile,
                    ownCompilerOf(program, options.database));
    MGPU_TRY_ASSIGN(driver, openTarget(options.target, program.dag.numDevices,
                                       openOptions));
  } else {
    MGPU_TRY(targetDevices(options.target, program.dag.numDevices));
  }
  times.importUs = microsecondsSince(start);
  MGPU_TRY_ASSIGN(
      times.prepared,
      prepare(program, options, onCard ? driver->architecture() : ""));
  if (!onCard) {
    openOptions.lanes = times.prepared.lanes;
    MGPU_TRY_ASSIGN(driver, openTarget(options.target, program.dag.numDevices,
                                       openOptions));
  }
  MGPU_TRY_ASSIGN(capture::Replayer replayer,
                  capture::Replayer::create(program.dag, times.prepared.plan,
                                            times.prepared.kernels, *driver));
  return capture::runOnOneTarget(std::move(driver), std::move(replayer),
                                 program.dag, times.prepared.plan);
}

} // namespace

Result<int> runRun(const Options &given) {
  Options options = given;
  MGPU_TRY(checkFiles(given));
  MGPU_TRY(checkSeed(given));
  MGPU_TRY_ASSIGN(const std::vector<Round> rounds, takeRounds(options));
  if (isCudaTarget(options.target) && !options.cpu.empty())
    return fail(ErrorKind::Usage,
                "--cpu is for the host's kernels: leave it out, or --target");
  if (options.tensorCores == "cublaslt" && isCudaTarget(options.target))
    MGPU_TRY(device::findCublasLt());
  const Clock::time_point began = Clock::now();
  Clock::time_point start = began;
  MGPU_TRY(parseNccl(options.nccl));
  MGPU_TRY_ASSIGN(Program program, loadProgram(options, false));
  MGPU_TRY(checkOutputs(program, options.outputs));
  for (const Round &round : rounds)
    MGPU_TRY(checkOutputs(program, round.outputs));
  MGPU_TRY_ASSIGN(auto cards,
                  severalCards(options.target, program.dag.numDevices));
  if (!cards && !options.nccl.empty())
    return fail(ErrorKind::Usage, "--nccl is for several cards: use it with "
                                  "--target cuda:0,1");
  if (!isCudaTarget(options.target))
    nameFaults(program, options);
  Times times;
  std::unique_ptr<Runner> runner;
  if (cards) {
    MGPU_TRY_ASSIGN(std::string arch, architectureOf(program, *cards));
    times.importUs = microsecondsSince(start);
    MGPU_TRY_ASSIGN(times.prepared, prepare(program, options, arch));
    MGPU_TRY_ASSIGN(runner,
                    openRanks(program, times.prepared, *cards, options));
  } else {
    MGPU_TRY_ASSIGN(runner, openOne(program, options, start, times));
  }
  const Prepared &prepared = times.prepared;
  const planner::Plan &plan = prepared.plan;
  const double importUs = times.importUs, planUs = prepared.planUs,
               compileUs = prepared.compileUs;
  MGPU_TRY(bindArguments(program, options, *runner));
  MGPU_TRY_ASSIGN(std::vector<MadeRound> later,
                  makeRounds(program, rounds, *runner));

  start = Clock::now();
  MGPU_TRY(runner->load());
  double loadUs = microsecondsSince(start);
  const double readyUs = microsecondsSince(began);
  // Replays that write their own inputs are steps of a computation; the count
  // is the user's, so none is spent on warming up.
  MadeRound first;
  MGPU_TRY_ASSIGN(double fetchUs, runRound(first, options.repeat, *runner));
  MGPU_TRY(writeOutputs(program, options.outputs, *runner));
  for (size_t k = 0; k < later.size(); ++k) {
    MGPU_TRY_ASSIGN(double us, runRound(later[k], options.repeat, *runner));
    fetchUs += us;
    MGPU_TRY(writeOutputs(program, rounds[k].outputs, *runner));
  }
  if (!options.traceFile.empty()) {
    MGPU_TRY_ASSIGN(auto timed, runner->replayTimed());
    MGPU_TRY(writeFileAtomic(
        options.traceFile,
        traceText(program.dag, timed, isCudaTarget(options.target))));
  }
  MGPU_TRY(runner->close());

  if (options.json) {
    json out{{"file", options.file},
             {"target", runner->description()},
             {"scheduler", plan.scheduler},
             {"tuned", prepared.isTuned},
             {"cpu", prepared.cpu},
             {"nodes", program.dag.nodes.size()},
             {"import_us", importUs},
             {"plan_us", planUs},
             {"compile_us", compileUs},
             {"load_us", loadUs},
             {"ready_us", readyUs},
             {"fetch_us", fetchUs},
             {"replay_us", toJson(first.replayed, options.repeat)}};
    for (const MadeRound &round : later)
      out["rounds"].push_back(
          {{"bind_us", round.bindUs},
           {"replay_us", toJson(round.replayed, options.repeat)}});
    fmt::print("{}\n", out.dump(2));
    return 0;
  }
  fmt::print("prepare {:.3f} ms (import {:.3f}, plan {:.3f}, compile {:.3f})\n",
             (importUs + planUs + compileUs) / 1e3, importUs / 1e3,
             planUs / 1e3, compileUs / 1e3);
  fmt::print("load    {:.3f} ms\n", loadUs / 1e3);
  fmt::print("replay  {}\n", textOf(first.replayed, options.repeat));
  for (size_t k = 0; k < later.size(); ++k)
    fmt::print("round {} {}, its data bound in {:.3f} ms\n", k + 2,
               textOf(later[k].replayed, options.repeat),
               later[k].bindUs / 1e3);
  fmt::print("fetch   {:.3f} ms\n", fetchUs / 1e3);
  return 0;
}

} // namespace mgpu::tune
