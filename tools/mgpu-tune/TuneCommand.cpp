// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune tune`.
#include "db/FileSystem.h"
#include "pipeline/plan/ChooseOrder.h"
#include "pipeline/program/Load.h"
#include "pipeline/run/JoinRanks.h"
#include "pipeline/tune/Tune.h"
#include "pipeline/tune/TuneTogether.h"
#include "support/Progress.h"
#include "support/Units.h"
#include "tools/mgpu-tune/CommonOptions.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/mgpu-tune/Options.h"
#include "tools/options/OptionTable.h"
#include "tuner/strategy/SearchStrategy.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <unistd.h>

namespace mgpu::tools {

// The command lines of `tune`, `compare`, `profile`, `calibrate`, `report`,
// `kernels`, `devices` and `doctor`.

void addTuneCommand(CommandLine &line) {
  auto [command, options] = addCommand<TuneOptions>(
      line, "tune", "Find the fastest plan and kernels, and remember them",
      runTune);
  addProgram(command, options);
  addTarget(command, options.load);
  addValue(command, "--budget", options.budget, "TIME|N",
           "How long to search: 60s, or a number of candidates; what "
           "was spent before counts")
      ->capture_default_str();
  addDatabase(command, options.load.database);
  std::vector<std::string> strategies(tuner::strategyNames().begin(),
                                      tuner::strategyNames().end());
  takeWord(command->add_option("--strategy", options.strategy, "How to search")
               ->capture_default_str(),
           strategies);
  takeWhole(command->add_option("--seed", options.seed, "Seed of the search")
                ->capture_default_str());
  addCold(command, options);
  addPinning(command, options);
  addDistributed(command, options);
  addDeadline(command, options);
}

void addCompareCommand(CommandLine &line) {
  auto shared = std::make_shared<CompareOptions>();
  CompareOptions &options = *shared;
  CLI::App *command = line.app.add_subcommand(
      "compare", "Measure two ways to run a program against each other; of "
                 "two plans alone, say what moved");
  command
      ->add_option("FILE", options.load.file,
                   "The program (.mlir) or bundle; with no B, a plan")
      ->required();
  command
      ->add_option("A", options.a,
                   "default, serial, tuned, a database (.db), or a plan "
                   "written by `plan -o`")
      ->required();
  command->add_option("B", options.b,
                      "As A; without it FILE and A are two plans, and nothing "
                      "is measured");
  addProgramOptions(command, options);
  addTarget(command, options.load);
  addDatabase(command, options.load.database);
  addValue(command, "--budget", options.budget, "TIME|N",
           "The most to spend: 10s, or a number of pairs of samples")
      ->capture_default_str();
  addCold(command, options);
  addPinning(command, options);
  options.load.compiler = &line.compiler;
  command->callback([command, shared, &line] {
    shared->load.given = givenOptions(command);
    line.needsCompiler = !shared->b.empty();
    line.chosen = [shared] {
      return shared->b.empty() ? runPlanDiff(*shared) : runCompare(*shared);
    };
    if (!shared->b.empty())
      return;
    for (const CLI::Option *given : command->parse_order())
      if (!given->get_positional() && given->get_name() != "--json")
        throw CLI::ValidationError(
            given->get_name(), "is of `compare FILE A B`; two plans alone are "
                               "compared without a program");
  });
}

void addProfileCommand(CommandLine &line) {
  auto [command, options] = addCommand<ProfileOptions>(
      line, "profile", "Measure each node beside what the plan predicts",
      runProfile);
  addProgram(command, options);
  addTarget(command, options.load);
  addTuned(command, options.load, options.useTuned);
  takeWhole(command->add_option("--repeat", options.repeat, "Timed replays")
                ->capture_default_str(),
            1, 1'000'000);
  addValue(command, "--trace", options.traceFile, "FILE",
           "Write a Chrome/Perfetto trace of one timed replay");
  addPinning(command, options);
  addDistributed(command, options);
  addDeadline(command, options);
}

void addCalibrateCommand(CommandLine &line) {
  auto [command, options] = addCommand<CalibrateOptions>(
      line, "calibrate", "Measure a target, for plans of --target sim:FILE",
      runCalibrate);
  command->add_option("FILE", options.load.file,
                      "A bundle of the kernels measured with, "
                      "pipeline/calibrate.mlir; else they are compiled");
  addTarget(command, options.load);
  addGpus(command, options);
  addDistributed(command, options);
  addDatabase(command, options.load.database);
  addValue(command, "-o,--output", options.output, "FILE",
           "The topology to write, as node.json; the host's rates go beside "
           "the database as well, where plan, run and tune find them");
  command->add_flag("--json", options.json,
                    "Print the topology instead of a summary");
}

void addReportCommand(CommandLine &line) {
  auto [command, options] = addCommand<ReportOptions>(
      line, "report",
      "Write what was tuned, how, and what came of it, as a page", runReport);
  command->add_option("FILE", options.load.file,
                      "The program (.mlir); else the one that was tuned "
                      "last");
  addProgramOptions(command, options);
  addDatabase(command, options.load.database);
  addValue(command, "-o,--output", options.output, "FILE",
           "Where to write; else HTML goes to report.html, "
           "the rest to the standard output");
  takeWord(command->add_option("--format", options.format,
                               "html, md, json or csv (the trials); else "
                               "as -o ends, else html"),
           {"html", "md", "json", "csv"});
  addValue(command, "--problem", options.problem, "KEY",
           "Of the database, by its key or the front of one (`db "
           "list`)");
}

void addKernelsCommand(CommandLine &line) {
  auto [command, options] = addCommand<KernelsOptions>(
      line, "kernels", "List the kernels: registers, occupancy, legal shapes",
      runKernels);
  addProgram(command, options);
  addValue(command, "--arch", options.arch, "ARCH",
           "The architecture to compile for: sm_80, sm_90, sm_90a, ...")
      ->capture_default_str();
  addValue(command, "--target", options.load.target, "TARGET",
           "A machine sim:NAME|FILE, on which launches are predicted as they "
           "are by default and in the best configuration; its architecture "
           "is what --arch is by default");
  addVariants(command, options.load);
  addCompileTimeout(command, options.load);
  addValue(command, "--emit", options.emitFolder, "FOLDER",
           "Write each kernel's CUDA C++ to FOLDER/NAME.cu");
  addDatabase(command, options.load.database);
}

void addDevicesCommand(CommandLine &line) {
  auto [command, options] = addCommand<HardwareOptions>(
      line, "devices", "List the targets of this machine", runDevices);
  addJson(command, options.json);
}

void addDoctorCommand(CommandLine &line) {
  auto [command, options] = addCommand<HardwareOptions>(
      line, "doctor",
      "Say what of CUDA this machine has, and what will not work", runDoctor);
  addJson(command, options.json);
}

// Prints what `tune` found, for people and as JSON.
// Prints what `tune` found, for people and as JSON.

using nlohmann::json;
using tuner::TuningResult;

namespace {

json partsJson(const std::vector<TuningResult::Part> &parts) {
  json out = json::array();
  for (const TuningResult::Part &part : parts) {
    json parameters = json::array();
    for (const tuner::SpaceParameter &parameter : part.parameters) {
      json &each = parameters.emplace_back(
          json{{"name", parameter.name}, {"values", parameter.values}});
      if (!parameter.reason.empty())
        each["reason"] = parameter.reason;
    }
    out.push_back({{"of", part.name},
                   {"points", part.points},
                   {"tried", part.tried},
                   {"coverage", double(part.tried) / part.points},
                   {"parameters", std::move(parameters)}});
  }
  return out;
}

/// "kernels alone 312 of 1300, together 220 of 5.3e+05"
std::string coverageText(const std::vector<TuningResult::Part> &parts) {
  double points = 0;
  uint64_t tried = 0;
  std::string together;
  for (const TuningResult::Part &part : parts) {
    if (&part == &parts.back()) {
      together = fmt::format("together {} of {:.3g}", part.tried, part.points);
      continue;
    }
    points += part.points;
    tried += part.tried;
  }
  return parts.size() > 1 ? fmt::format("kernels alone {} of {:.3g}, {}", tried,
                                        points, together)
                          : together;
}

} // namespace

/// `path` is the database's, `planOf` is planner::planLine().
static json toJson(const TuningResult &result, const LoadedProgram &program,
                   const TuneContext &context, const std::string &path,
                   const std::string &planOf) {
  json config = json::object();
  for (auto &[name, value] :
       tuner::toPairs(result.config, program.dag, context.spaces))
    config[name] = value;
  json failures = json::array();
  for (const tuner::FailedCandidate &failed : result.failed)
    failures.push_back({{"configuration", failed.configuration},
                        {"kind", toString(failed.fault.kind)},
                        {"what", failed.fault.what}});
  json environment = json::object();
  for (auto &[name, value] : context.environment.entries())
    environment[name] = value;
  if (!result.pinnedCpus.empty())
    environment["pinned_cpus"] = result.pinnedCpus;
  json history = json::array();
  for (const TuningResult::Step &step : result.history)
    history.push_back({{"seconds", step.seconds},
                       {"evaluation", step.evaluation},
                       {"best_us", step.bestUs}});
  json out{{"configuration", config},
           {"is_default", result.isDefault},
           {"from_database", result.fromStore},
           {"interrupted", result.interrupted},
           {"exhausted", result.exhausted},
           {"times", tuner::toJson(result.times)},
           {"default_us", result.times.before.us},
           {"tuned_us", result.times.after.us},
           {"comparison", result.times.sentence},
           {"plan", planOf},
           {"agreement", toText(result.agreement)},
           {"tolerance_share", result.agreement.share},
           {"space", result.spaceSize},
           {"transform_sets", result.numTransformLists},
           {"spaces", partsJson(result.parts)},
           {"evaluated", result.evaluated},
           {"resumed", result.resumed},
           {"compiled", result.compiled},
           {"seconds", result.seconds},
           {"failed", failures},
           {"history", history},
           {"database", path},
           {"environment", environment}};
  if (const auto &change = result.times.change)
    out["change_percent"] = {{"middle", 100 * change->middle},
                             {"low", 100 * change->low},
                             {"high", 100 * change->high},
                             {"verdict", result.times.verdict},
                             {"pairs", result.times.pairs},
                             {"processes", result.times.processes}};
  return out;
}

static void print(const TuningResult &result, const LoadedProgram &program,
                  const TuneContext &context, const std::string &path,
                  const std::string &planOf) {
  fmt::print("{} on {}: {} device{}", program.from.file,
             context.target ? context.target->device : "host", context.devices,
             context.devices == 1 ? "" : "s");
  if (context.target)
    fmt::print("\n");
  else
    fmt::print(", up to {} thread{}\n", context.limits.mostThreads,
               context.limits.mostThreads == 1 ? "" : "s");
  if (!result.fromStore) {
    std::map<std::string_view, int> kinds;
    for (const tuner::FailedCandidate &failed : result.failed)
      ++kinds[toString(failed.fault.kind)];
    std::string failures;
    for (auto &[kind, count] : kinds)
      failures += fmt::format(", {} {}", count, kind);
    fmt::print(
        "space    {:.3g} configurations ({}): {} tried{}, {} "
        "compiled, {} known before, {:.1f} s{}\n",
        result.spaceSize,
        result.numTransformLists > 1
            ? fmt::format("{} sets of transforms", result.numTransformLists)
            : "no transform applies",
        result.evaluated, failures, counted(result.compiled, "kernel"),
        counted(result.resumed, "result"), result.seconds,
        result.interrupted ? ", interrupted"
        : result.exhausted ? ", nothing left to try"
                           : "");
    fmt::print("coverage {}\n", coverageText(result.parts));
  }
  fmt::print("{}", decidedText(result.times));
  if (!result.agreement.isSameBits())
    fmt::print("result   {} (docs/numerics.md)\n", toText(result.agreement));
  if (!result.onlyBits.empty())
    fmt::print("no tolerance: candidates had to give the reference's bits, as "
               "{}\n",
               result.onlyBits);
  fmt::print("plan     {}\n", planOf);
  if (result.isDefault)
    fmt::print("keep     the default\n");
  else
    fmt::print("use      {}", describeConfig(result.config, program.dag,
                                             context.spaces, "         ")
                                  .substr(9));
  if (!path.empty())
    fmt::print("{}    {}\n", result.fromStore ? "found" : "stored", path);
}

// The progress that `tune` shows while it searches.

namespace {

/// One line that stays on a terminal; else a line now and then.
class ProgressLine {
public:
  void operator()(const tuner::Progress &now);

private:
  /// Bytes; a configuration of many kernels takes a screen.
  static constexpr size_t mostOfLast = 120;
  TerminalLine line;
  tuner::Stage stage = tuner::Stage::Final;
  uint64_t failed = 0;
  double printed = -1;
};

std::string_view wordsOf(tuner::Stage stage) {
  switch (stage) {
  case tuner::Stage::Start:
    return "measuring the default";
  case tuner::Stage::Kernels:
    return "trying kernels";
  case tuner::Stage::Joint:
    return "trying whole programs";
  case tuner::Stage::Final:
    return "comparing with the default";
  }
  return "";
}

/// Stage, bar, time left and the best so far.
std::string terminalLine(const tuner::Progress &now) {
  constexpr size_t cells = 10;
  const bool timed = std::isfinite(now.secondsLeft);
  const double done = timed ? now.seconds : double(now.evaluated);
  const double left = timed ? now.secondsLeft : double(now.evaluationsLeft);
  const auto full = size_t(cells * done / std::max(done + left, 1e-9));
  std::string line =
      fmt::format("{} [{:.<{}}] ", wordsOf(now.stage),
                  std::string(std::min(full, cells), '#'), cells);
  line += timed ? fmt::format("{:.0f} s left", left)
                : fmt::format("{:.0f} left to try", left);
  if (now.bestUs > 0) {
    line += ", best " + durationText(now.bestUs);
    if (now.bestUs < now.defaultUs)
      line += fmt::format(", {:.1f} % less than the default",
                          100 * (1 - now.bestUs / now.defaultUs));
  }
  line += fmt::format("; {} tried, {} failed", now.evaluated, now.failed);
  return line;
}

} // namespace

void ProgressLine::operator()(const tuner::Progress &now) {
  const bool news = now.stage != stage || now.failed != failed;
  const double pause = line.isTerminal() ? 0.1 : 2;
  if (!news && now.seconds - printed < pause)
    return;
  stage = now.stage;
  failed = now.failed;
  printed = now.seconds;
  if (line.isTerminal())
    return line.show(terminalLine(now));
  std::string text = fmt::format(
      "{:<7} {} tried, {} failed, best {} ({:+.1f} %), {:.1f}/s",
      tuner::toString(now.stage), now.evaluated, now.failed,
      durationText(now.bestUs), 100 * (now.bestUs / now.defaultUs - 1),
      double(now.evaluated) / std::max(now.seconds, 1e-3));
  if (std::isfinite(now.secondsLeft))
    text += fmt::format(", {:.0f} s left", now.secondsLeft);
  else
    text += fmt::format(", {} left", now.evaluationsLeft);
  fmt::print(stderr, "{}; {}\n", text,
             now.last.size() > mostOfLast
                 ? now.last.substr(0, mostOfLast - 3) + "..."
                 : now.last);
  std::fflush(stderr);
}

namespace {

std::atomic<bool> interrupted = false;
std::atomic<int> interruptedBy = 0;

/// The first interrupt ends the search; a second one the program.
void onInterrupt(int number) {
  constexpr char words[] =
      "\nmgpu-tune: stopping: what was found so far is compared with the "
      "default and stored; once more to stop at once\n";
  interrupted = true;
  interruptedBy = number;
  std::signal(number, SIG_DFL);
  [[maybe_unused]] ssize_t written =
      write(STDERR_FILENO, words, sizeof words - 1);
}

class CatchInterrupt {
public:
  CatchInterrupt() {
    interrupted = false;
    interruptedBy = 0;
    for (size_t k = 0; k < std::size(numbers); ++k)
      before[k] = std::signal(numbers[k], onInterrupt);
  }
  ~CatchInterrupt() {
    for (size_t k = 0; k < std::size(numbers); ++k)
      std::signal(numbers[k], before[k]);
  }

private:
  static constexpr int numbers[] = {SIGINT, SIGTERM};
  void (*before[2])(int);
};

/// Takes part as another rank than 0, which alone searches, prints and stores.
Result<int> followTune(const LoadedProgram &program, const TuneOptions &options,
                       const GpuRanks *gpus) {
  std::vector<std::string> madeUp; // rank 0 says it
  MGPU_TRY_ASSIGN(auto inputs, programInputs(program, {}, &madeUp));
  const tuner::ProgramData data(program.dag, std::move(inputs));
  MGPU_TRY(
      followTuning(program.dag, data, options.coldCaches, *theRanks(), gpus));
  return 0;
}

} // namespace

Result<int> runTune(const TuneOptions &options) {
  const Clock::time_point started = Clock::now();
  CatchInterrupt catching;
  MGPU_TRY_ASSIGN(const SearchBudget budget, parseBudget(options.budget));
  MGPU_TRY(checkDeadline(options, options.load));
  MGPU_TRY(joinAsked(options));
  MGPU_TRY_ASSIGN(LoadedProgram program, loadProgram(options.load));
  MGPU_TRY(chooseOrder(program, PlanOptions()));
  device::Facts facts{{"--cold", std::to_string(options.coldCaches)}};
  std::optional<GpuRanks> gpus; // of this rank, where their devices are GPUs
  if (haveGpus(options.load)) {
    MGPU_TRY_ASSIGN(gpus, agreedGpus(program, options, std::move(facts)));
  } else if (theRanks()) {
    MGPU_TRY(agreeOnProgram(program.dag, *theRanks(),
                            factsOf(options.load, std::move(facts))));
  }
  if (!isFirstRank())
    return followTune(program, options, gpus ? &*gpus : nullptr);
  MGPU_TRY_ASSIGN(TuneContext context, makeTuneContext(program));
  noteEarlierPlace(options.load.database);
  MGPU_TRY_ASSIGN(const std::string path,
                  db::databasePath(options.load.database));
  const auto search = [&]() -> Result<TuningResult> {
    ProgressLine line; // is gone before anything is printed
    std::optional<TuneLeader> leader;
    if (theRanks())
      leader.emplace(*theRanks(),
                     std::chrono::seconds(options.deadlineSeconds));
    MGPU_TRY_ASSIGN(
        TuningResult found,
        tuneProgram(program, context,
                    {.budget = budget,
                     .started = started,
                     .strategy = options.strategy,
                     .seed = options.seed,
                     .coldCaches = options.coldCaches,
                     // Ranks are bound to CPUs by whoever starts them.
                     .pinThreads = options.pinThreads && !leader,
                     .progress = std::ref(line),
                     .stop = &interrupted,
                     .leader = leader ? &*leader : nullptr,
                     .gpus = gpus ? &*gpus : nullptr}));
    if (leader)
      MGPU_TRY(leader->end());
    return found;
  };
  MGPU_TRY_ASSIGN(const TuningResult result, search());
  // `plan` says the same from now on, by the times that `profile` stored too.
  const TunedChoice choice{context, result.config, /*isTuned=*/true};
  LoadedProgram chosen = program;
  MGPU_TRY(transformChosen(chosen, choice));
  MGPU_TRY_ASSIGN(const planner::Machine machine, machineOf(chosen, choice));
  MGPU_TRY_ASSIGN(
      const planner::Plan plan,
      tuner::planOf(chosen.dag, result.config, machine, choice.isTuned));
  const std::string line =
      planLine(plan, chosen.dag, context.target ? 0 : result.config.threads);
  if (options.json)
    tools::printJson(toJson(result, program, context, path, line));
  else
    print(result, program, context, path, line);
  // The result is whole; the search is not, and a script must know.
  return result.interrupted ? 128 + interruptedBy : 0;
}

} // namespace mgpu::tools
