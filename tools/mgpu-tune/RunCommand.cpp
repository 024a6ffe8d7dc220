// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune run` and `mgpu-tune replay`: the three phases, timed apart.
#include "bench/measure/Environment.h"
#include "bench/measure/Summary.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Expectations.h"
#include "pipeline/program/Faults.h"
#include "pipeline/program/Load.h"
#include "pipeline/run/Trace.h"
#include "pipeline/serve/Counters.h"
#include "pipeline/target/Target.h"
#include "support/FileIO.h"
#include "support/Number.h"
#include "support/Units.h"
#include "tools/mgpu-tune/CommonOptions.h"
#include "tools/mgpu-tune/FileUses.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>

namespace mgpu::tools {

// The command lines of `check`, `run`, `plan`, `replay` and `bundle`.

void addCheckCommand(CommandLine &line) {
  auto [command, options] =
      addCommand<CheckOptions>(line, "check",
                               "Find races, deadlocks, mismatched "
                               "collectives and bad shapes",
                               runCheck);
  addProgram(command, options);
  addTarget(command, options.load);
  command->add_flag("--sharding-report", options.load.reportSharding,
                    "Print the layout of each tensor of an annotated program, "
                    "and what each collective costs");
  command->add_flag("--probe", options.probe,
                    "Run each launch on the host, in memory of its own, and "
                    "compare what it touches with what the program says");
  addValue(command, "--plan", options.planFile, "FILE",
           "Verify a plan of the program, written by `plan -o`");
  addValue(command, "--certificate", options.certificateFile, "FILE",
           "Verify the proof of that plan's bound, written by `plan "
           "--certificate`");
  addOneDevice(command, options.load);
}

/// By serve::OnDifference.
static const std::vector<std::string> actions = {"go-on", "stop", "fall-back"};

/// Adds the options that `run` and `replay` have in common.
static void addRun(CLI::App *command, RunOptions &options) {
  addTarget(command, options.load);
  addPairs(
      command, "--out", options.outputs,
      "Write argument or result K after the run to FILE.npy. Of both --arg "
      "and --out, K@2=V is of a second round, which is replayed with the "
      "program as it is loaded; K@3=V of a third");
  takeWord(addValue(command, "--cpu", options.prepare.cpu, "LEVEL",
                    "Level of the kernels; else the best here"),
           cpuLevels);
  takeWhole(addValue(command, "--threads", options.prepare.threads, "N",
                     "Threads that replay on the host; else as many as are "
                     "worth it"),
            1, 1024);
  takeWhole(command
                ->add_option("--repeat", options.repeat,
                             "Replays; each starts with what the one before "
                             "left in the arguments")
                ->capture_default_str(),
            1, 1'000'000'000);
  addValue(command, "--trace", options.traceFile, "FILE",
           "Write a Chrome/Perfetto trace of one more replay");
  addValue(command, "--metrics", options.metricsFile, "FILE",
           "Write the times of the replays as the text that Prometheus reads");
  command->add_flag("--guard", options.guard,
                    "Put guard zones around all buffers and poison into "
                    "devices' memory, and fail where a kernel wrote into a "
                    "zone; slower, and of one target");
  command->add_flag("--pin", options.pin,
                    "Keep each thread that replays on a CPU of its own, and "
                    "say which; of one target");
  takeWhole(addValue(command, "--audit", options.audit.every, "K",
                     "Compare every K-th replay with a serial one in other "
                     "memory, and name the first node that differs"),
            1, 1'000'000'000);
  takeWord(addValue(command, "--on-difference", options.onDifference, "ACTION",
                    "After one that differs: go-on, stop, or fall-back to "
                    "serial replays"),
           actions);
  command->add_flag("--random", options.random,
                    "Random numbers of [0, 1) for arrays that --arg does not "
                    "give, and zeros for those of integers");
  addGpus(command, options);
  addDistributed(command, options);
}

void addRunCommand(CommandLine &line) {
  auto [command, options] = addCommand<RunOptions>(
      line, "run", "Plan, compile and run a program", runRun);
  addProgram(command, options);
  addScheduling(command, options.prepare);
  addTuned(command, options.load, options.prepare.useTuned);
  addRun(command, options);
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
}

void addPlanCommand(CommandLine &line) {
  auto [command, options] = addCommand<PlanCommandOptions>(
      line, "plan", "Show the schedule and why", runPlan);
  addProgram(command, options);
  addTarget(command, options.load);
  addScheduling(command, options.prepare);
  addValue(command, "--memory", options.prepare.memory, "SIZE",
           "Memory of each device, as 100GB, or none; by default a GPU's own");
  addValue(command, "--budget", options.prepare.budget, "TIME|N",
           "How long to search: 60s, or a number of schedules; by default 1s "
           "for sim targets, else by the size of the program");
  addValue(command, "--collectives", options.prepare.collectivesFile, "FILE",
           "Measured times of collectives (.csv), instead of the "
           "curves built in; of GPUs");
  command->add_flag("--explain", options.explain, "Say why each step is where");
  command->add_flag("--steps", options.steps,
                    "List the steps after the summary, with their lines in the "
                    "source");
  addValue(command, "--dot", options.dotFile, "FILE",
           "Write the plan as Graphviz");
  addValue(command, "--trace", options.traceFile, "FILE",
           "Write the predicted timeline as a Chrome/Perfetto trace");
  addValue(command, "--svg", options.svgFile, "FILE",
           "Write the predicted timeline as a picture");
  addValue(command, "--dag", options.dagFile, "FILE",
           "Write what was planned, with its durations, as an mgpu-dag/2 file");
  addValue(command, "--certificate", options.certificateFile, "FILE",
           "Write the proof of the plan's bound, which `check` verifies");
  addValue(command, "--what-if", options.whatIf, "CHANGE",
           "Plan again for link=2x, link.nvlink=2x, nic=2x, "
           "host_link=2x, memory=2x, flops=2x or op:NAME=0.5x (NAME* "
           "for all that begin so), and compare")
      ->expected(1)
      ->take_all();
  takeNumber(addValue(command, "--noise", options.noisePercent, "PERCENT",
                      "The makespan's 50th and 95th percentile where each "
                      "duration varies by so much"),
             0, 100);
  command->add_flag(
      "--pareto", options.pareto,
      "Plan under less and less memory, and list time over memory");
  takeWhole(addValue(command, "--shardings", options.shardings, "N",
                     "Plan up to N other annotations of an annotated "
                     "program's arguments, and print the program with the "
                     "shortest plan's"),
            1, 1'000'000);
  addOneDevice(command, options.load);
  addValue(command, "--step", options.load.step, "NAME",
           "Of a recorded trace, the step ProfilerStep#N alone");
  addValue(command, "-o,--output", options.output, "FILE",
           "Write the plan's text form to FILE; - is the standard output");
  addDistributed(command, options);
  addDeadline(command, options);
  addVariants(command, options.load);
  addTuned(command, options.load, options.prepare.useTuned);
}

void addReplayCommand(CommandLine &line) {
  auto [command, options] = addCommand<RunOptions>(
      line, "replay", "Run a program with a stored plan", runRun);
  options.prepare.mustBeStored = true;
  addProgram(command, options);
  addValue(command, "--plan", options.prepare.planFile, "FILE",
           "A plan written by `plan -o`; a bundle has its own");
  addTuned(command, options.load, options.prepare.useTuned);
  addRun(command, options);
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
}

static void addPerDevice(CLI::App *command, LoadOptions &load) {
  command
      ->add_option_function<std::string>(
          "--per-device",
          [&load](const std::string &text) {
            const size_t comma = std::min(text.find(','), text.size());
            const auto replicas = numberFrom<uint32_t>(text.substr(0, comma));
            const auto partitions = numberFrom<uint32_t>(
                text.substr(std::min(comma + 1, text.size())));
            constexpr uint32_t most = 1024;
            if (!replicas || !partitions || *replicas < 1 || *partitions < 1 ||
                *replicas > most || *partitions > most / *replicas)
              throw CLI::ValidationError(
                  "--per-device", "'" + text +
                                      "' is not two numbers as 2,1, of 1024 "
                                      "devices at most");
            load.replicas = *replicas;
            load.partitions = *partitions;
          },
          "Each device has arguments and results of its own, as a client of "
          "PJRT calls the program (docs/pjrt.md)")
      ->type_name("REPLICAS,PARTITIONS");
}

void addBundleCommand(CommandLine &line) {
  auto [command, options] = addCommand<BundleCommandOptions>(
      line, "bundle", "Put a program, planned and compiled, into one file",
      runBundle);
  addProgram(command, options);
  addValue(command, "-o,--output", options.output, "FILE",
           "The bundle to write, as x.mgpu")
      ->required();
  addTarget(command, options.load);
  addScheduling(command, options.prepare);
  addValue(command, "--plan", options.prepare.planFile, "FILE",
           "Store this plan, written by `plan -o`");
  options.bundle.levels = cpuLevels;
  std::vector<std::string> levelsOrNone = cpuLevels;
  levelsOrNone.push_back("none");
  takeWord(
      command
          ->add_option("--cpu", options.bundle.levels,
                       "CPU levels to compile the host's kernels for; none: a "
                       "bundle for GPUs alone")
          ->delimiter(',')
          ->type_name("LEVEL,...")
          ->capture_default_str(),
      levelsOrNone);
  addValue(command, "--arch", options.bundle.archs, "ARCH",
           "Architectures to compile cubins for: sm_80,sm_90,...")
      ->delimiter(',')
      ->type_name("ARCH,...");
  command
      ->add_option("--alternatives", options.bundle.alternatives,
                   "Other variants of each of the host's kernels, which "
                   "`tune` may choose of a bundle (default 0)")
      ->type_name("N")
      ->check(CLI::Validator(CLI::Range(0, 64)).description(""));
  addPerDevice(command, options.load);
  addPairs(command, "--prefix-map", options.bundle.prefixMap,
           "Paths in the bundle that begin with K begin with V instead; those "
           "in the program's own folder lose it");
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
  addTuned(command, options.load, options.prepare.useTuned);
}

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

/// The audits of --audit; without, replays are what they are.
struct Audits {
  std::unique_ptr<serve::Audit> audit;
  std::optional<serve::Auditor> auditor;
  uint64_t numReplays = 0, numAudits = 0, numPlain = 0;
  double plainUs = 0, auditsUs = 0; ///< all together, audits with all they do
  std::vector<std::string> differences;

  /// After the load of `runner`.
  Result<void> start(const LoadedProgram &program, const RunOptions &options,
                     const Prepared &prepared, Runner &runner) {
    if (options.audit.every == 0)
      return {};
    MGPU_TRY_ASSIGN(audit, openAudit(program, options, prepared, runner));
    auditor.emplace(*audit, options.audit);
    return audit->load();
  }
  Result<void> replay(Runner &runner, std::vector<double> &us) {
    if (!auditor)
      return runner.replay(us);
    std::vector<double> plain, audited;
    for (size_t k = 0; k < us.size(); ++k)
      MGPU_TRY(replayOne(runner, plain, audited));
    us = plain.empty() ? std::move(audited) : std::move(plain);
    return {};
  }
  /// The time that audits take beyond their serial replays, as a part of the
  /// time that all replays take; none where no replay was without one.
  std::optional<double> cost() const {
    if (numPlain == 0 || numAudits == 0)
      return std::nullopt;
    const double us = plainUs / double(numPlain);
    return (auditsUs - audit->serialUs() - double(numAudits) * us) /
           (double(numReplays) * us);
  }

private:
  Result<void> replayOne(Runner &runner, std::vector<double> &plain,
                         std::vector<double> &audited) {
    const Clock::time_point start = Clock::now();
    double us = plain.empty() ? 0 : plain.back();
    MGPU_TRY_ASSIGN(const serve::Auditor::Done done,
                    auditor->replay(
                        false, [] { return std::string(); },
                        [&](double &each) {
                          return runner.replay({&each, 1});
                        },
                        us));
    const double wholeUs = microsecondsSince(start);
    ++numReplays;
    (done.isAudited ? audited : plain)
        .push_back(done.isAudited ? done.auditedUs : us);
    (done.isAudited ? numAudits : numPlain) += 1;
    (done.isAudited ? auditsUs : plainUs) += wholeUs;
    if (done.difference.empty())
      return {};
    const std::string line =
        fmt::format("audit of replay {}: {}", numReplays, done.difference);
    if (done.stops)
      return fail(ErrorKind::Internal, line);
    fmt::print(stderr, "{}\n", line);
    differences.push_back(line);
    return {};
  }
};

/// Replays all rounds. Replays that write their own inputs are steps of a
/// computation, and the count is the user's, so none is spent on warming up.
Result<void> replayRounds(const LoadedProgram &program,
                          const RunOptions &options,
                          const std::vector<Round> &rounds, Runner &runner,
                          tuner::GuardedDriver *guard, Audits &audits,
                          Times &times, std::string &printed) {
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
  const auto replays = [&](std::vector<double> &us) {
    return audits.replay(runner, us);
  };
  MGPU_TRY_ASSIGN(times.fetchUs,
                  runRound(times.first, options.repeat, runner, replays));
  if (guard)
    MGPU_TRY(checkGuard(*guard));
  MGPU_TRY(output());
  MGPU_TRY(writeOutputs(program, options.outputs, runner, Written::Others));
  MGPU_TRY(checkExpectations(program, runner));
  for (size_t k = 0; k < rounds.size(); ++k) {
    MGPU_TRY_ASSIGN(double us,
                    runRound(times.later[k], options.repeat, runner, replays));
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
               const Audits &audits, const std::string &printed,
               const Runner &runner) {
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
  if (audits.auditor) {
    out["audits"] = {{"count", audits.numAudits},
                     {"differences", audits.differences},
                     {"serial_us", audits.audit->serialUs()}};
    if (const auto cost = audits.cost())
      out["audits"]["cost"] = *cost;
  }
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
               const Times &times, const Audits &audits) {
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
  if (audits.auditor) {
    const auto cost = audits.cost();
    fmt::print("audits  {} of {} replays, {}; serial replays {}{}\n",
               audits.numAudits, audits.numReplays,
               audits.differences.empty()
                   ? "none differs"
                   : fmt::format("{} differ", audits.differences.size()),
               durationText(audits.audit->serialUs()),
               cost ? fmt::format(", and beyond them {:.2g} % of the time of "
                                  "all replays",
                                  100 * *cost)
                    : "");
  }
  fmt::print("fetch   {}\n", durationText(times.fetchUs));
  printWritten(program, options.outputs, "");
  for (size_t k = 0; k < rounds.size(); ++k)
    printWritten(program, rounds[k].outputs, fmt::format("@{}", k + 2));
}

/// Writes --metrics.
Result<void> writeMetrics(const LoadedProgram &program,
                          const RunOptions &options, const Times &times,
                          const Audits &audits) {
  if (options.metricsFile.empty())
    return {};
  serve::Counters counters(program.dag.name);
  for (const double us : times.first.replayUs)
    counters.replayed(us);
  for (const MadeRound &round : times.later)
    for (const double us : round.replayUs)
      counters.replayed(us);
  for (uint64_t k = 0; k < audits.numAudits; ++k) {
    counters.count(serve::Event::Audit);
    if (audits.numPlain > 0) // else its time is one of those above
      counters.count(serve::Event::Replay);
  }
  for (size_t k = 0; k < audits.differences.size(); ++k)
    counters.count(serve::Event::Difference);
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

/// Takes --on-difference, which is of --audit.
Result<void> takeAction(RunOptions &options) {
  if (options.onDifference.empty())
    return {};
  if (options.audit.every == 0)
    return fail(ErrorKind::Usage,
                "--on-difference says what follows an audit: use it with "
                "--audit");
  options.audit.onDifference = serve::OnDifference(
      std::ranges::find(actions, options.onDifference) - actions.begin());
  return {};
}

/// Usage where no replay of `numRounds` would be compared.
Result<void> checkAudits(const RunOptions &options, size_t numRounds) {
  const uint64_t replays = uint64_t(options.repeat) * numRounds;
  if (options.audit.every <= replays)
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("--audit {0} compares one of {0} replays, and with "
                          "{1} none is: give it a K of at most {1}, or more "
                          "replays (--repeat)",
                          options.audit.every, replays));
}

} // namespace

Result<int> runRun(const RunOptions &given) {
  RunOptions options = given;
  options.profiles = !options.traceFile.empty();
  MGPU_TRY(takeAction(options));
  FileUses uses =
      filesRead(options.load, {{"--plan", options.prepare.planFile}});
  for (const auto &[key, file] : options.outputs)
    MGPU_TRY(uses.write("--out " + key, file));
  MGPU_TRY(uses.write("--trace", options.traceFile));
  MGPU_TRY(uses.write("--metrics", options.metricsFile));
  MGPU_TRY(checkScheduler(options.prepare, options.load.given));
  MGPU_TRY_ASSIGN(std::vector<Round> rounds,
                  takeRounds(options.load.arguments, options.outputs));
  MGPU_TRY(checkAudits(options, 1 + rounds.size()));
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
  Audits audits;
  MGPU_TRY(audits.start(program, options, prepared, *runner));
  std::string printed;
  MGPU_TRY(replayRounds(program, options, rounds, *runner, guard, audits, times,
                        printed));
  MGPU_TRY(runner->close());
  if (isFirstRank())
    MGPU_TRY(writeMetrics(program, options, times, audits));
  if (!isFirstRank())
    return 0;
  if (options.json)
    printJson(program, options, prepared, times, audits, printed, *runner);
  else
    printText(program, options, rounds, prepared, times, audits);
  return audits.differences.empty() ? 0 : 1;
}

} // namespace mgpu::tools
