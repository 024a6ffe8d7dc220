// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu-tune: parse the command line, call the command, print what it says.
#include "kernels/compile/NvrtcCompiler.h"
#include "tools/mgpu-tune/DbCommand.h"
#include "tools/mgpu-tune/OptionChecks.h"
#include "tools/mgpu-tune/Options.h"
#include "tuner/strategy/SearchStrategy.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <new>
#include <system_error>

using namespace mgpu;
using tune::Options, tune::takeNumber, tune::takeWhole, tune::takeWord;

namespace {

const std::vector<std::string> cpuLevels = {"x86-64-v2", "x86-64-v3",
                                            "x86-64-v4"};

/// Takes a repeated option of the form K=V.
void addPairs(CLI::App *command, const char *name,
              std::map<std::string, std::string> &into, const char *help) {
  command
      ->add_option_function<std::vector<std::string>>(
          name,
          [name, &into](const std::vector<std::string> &pairs) {
            for (const std::string &pair : pairs) {
              size_t equals = pair.find('=');
              if (equals == 0 || equals == std::string::npos ||
                  equals + 1 == pair.size())
                throw CLI::ValidationError(
                    name, "'" + pair + "' is not of the form K=V");
              if (!into.emplace(pair.substr(0, equals), pair.substr(equals + 1))
                       .second)
                throw CLI::ValidationError(name, "'" + pair.substr(0, equals) +
                                                     "' is given twice");
            }
          },
          help)
      ->type_name("K=V")
      ->expected(1)
      ->allow_extra_args(false) // what follows the one value is not its
      ->take_all();
}

/// All but the file itself.
void addProgramOptions(CLI::App *command, Options &options) {
  command->add_option("--entry", options.entry, "The entry function")
      ->capture_default_str();
  addPairs(
      command, "--arg", options.arguments,
      "Value of argument K, a name or number (docs/cli.md lists the forms)");
  addPairs(command, "--role", options.roles,
           "Role of argument K: input, output, resident; of a scalar: "
           "specialised, dynamic");
  takeWhole(command
                ->add_option("--node-limit", options.nodeLimit,
                             "Most nodes the unrolled program may have")
                ->capture_default_str(),
            1, 1'000'000'000);
  takeWhole(command
                ->add_option("--roll-from", options.rollFrom,
                             "Trips from which the program's loop stays "
                             "rolled; 0: never")
                ->capture_default_str());
  command->add_flag(
      "!--no-fusion", options.fuse,
      "A launch for each linalg operation and parallel loop, even "
      "where several could share one");
  command->add_flag("--json", options.json, "Print the result as JSON");
}

void addProgram(CLI::App *command, Options &options) {
  command->add_option("FILE", options.file, "The program (.mlir) or bundle")
      ->required();
  addProgramOptions(command, options);
}

void addScheduling(CLI::App *command, Options &options) {
  auto chosen = [&options](const auto &) { options.choosesPlan = true; };
  takeWord(command
               ->add_option("--scheduler", options.scheduler,
                            "serial, list, or shuffled (a random legal plan, "
                            "for tests)")
               ->capture_default_str()
               ->each(chosen),
           {"serial", "list", "shuffled"});
  takeWhole(command
                ->add_option("--seed", options.seed,
                             "Seed of --scheduler shuffled, and of what is "
                             "random of plans for sim targets")
                ->capture_default_str()
                ->each(chosen));
  command
      ->add_option(
          "--transforms", options.transforms,
          "Changes to the program and its schedule that keep its bits: none, "
          "a list of algorithm, copies, scatter, bucket, chunk, split, order, "
          "early, nofork; auto: for sim targets those that gain; auto,-NAME: "
          "all but one")
      ->type_name("LIST")
      ->capture_default_str()
      ->each([&options](const std::string &list) {
        options.choosesPlan |= list != "none" && list != "auto";
      });
  takeWhole(
      command->add_option("--streams", options.streams, "Streams per device")
          ->capture_default_str()
          ->each(chosen),
      1, 8);
}

/// Of commands that use what was tuned.
void addTuned(CLI::App *command, Options &options) {
  tune::addDatabase(command, options, false);
  command->add_flag("!--no-tuned", options.useTuned,
                    "Do not look for a tuned configuration");
}

void addCompileTimeout(CLI::App *command, Options &options) {
  takeWhole(command
                ->add_option("--compile-timeout", options.compileSeconds,
                             "Of each program that NVRTC compiles; 0: none")
                ->type_name("SECONDS")
                ->capture_default_str(),
            0, 1'000'000);
}

void addTensorCores(CLI::App *command, Options &options) {
  takeWord(command->add_flag(
               "--tensor-cores{mma}", options.tensorCores,
               "On cards, products of f16 and bf16 by a form of ours, mma or "
               "for sm_90 wgmma; all products by cublaslt; or none. Not "
               "given: those of f16 and bf16 by a form that has passed on "
               "the card (db form), else by cuBLASLt where it is"),
           {"mma", "wgmma", "cublaslt", "none"});
}

void addPdl(CLI::App *command, Options &options) {
  command->add_flag("--pdl", options.pdl,
                    "On cards of sm_90 and later, a kernel that follows one "
                    "other may begin before that has ended, and waits for it. "
                    "Off until it has been seen to work on a card");
}

/// Of commands that measure on the host.
void addPinning(CLI::App *command, Options &options) {
  command->add_flag(
      "!--no-pin", options.pinThreads,
      "Leave it to the system on which CPUs threads are measured");
}

void addTarget(CLI::App *command, Options &options) {
  command
      ->add_option("--target", options.target,
                   "The machine: host[:N], N virtual devices; cuda:K[/N], card "
                   "K as N devices; cuda:K,L, several cards; plan takes "
                   "sim:NAME|FILE as well")
      ->type_name("TARGET");
}

void addCards(CLI::App *command, Options &options) {
  command
      ->add_option("--nccl", options.nccl,
                   "Of several cards: overlap (communicators that share at "
                   "most one rank run at once), windows (arenas in NCCL's "
                   "symmetric memory, from 2.27 on), min-ctas=N, max-ctas=N, "
                   "ctas=default|efficiency|zero")
      ->type_name("SETTING,...");
  takeWhole(command
                ->add_option("--deadline", options.deadlineSeconds,
                             "Of each replay on a card, after which it is "
                             "given up; 0: none")
                ->type_name("SECONDS")
                ->capture_default_str(),
            0, 1'000'000);
}

void addRun(CLI::App *command, Options &options) {
  addTarget(command, options);
  addPairs(
      command, "--out", options.outputs,
      "Write argument or result K after the run to FILE.npy. Of both --arg "
      "and --out, K@2=V is of a second round, which is replayed with the "
      "program as it is loaded; K@3=V of a third");
  takeWord(command
               ->add_option("--cpu", options.cpu,
                            "Level of the kernels; else the best here")
               ->type_name("LEVEL"),
           cpuLevels);
  takeWhole(command
                ->add_option("--repeat", options.repeat,
                             "Replays; each starts with what the one before "
                             "left in the arguments")
                ->capture_default_str(),
            1, 1'000'000'000);
  command->add_option("--trace", options.traceFile,
                      "Write a Chrome/Perfetto trace of one more replay");
  addCards(command, options);
}

constexpr const char *lostOutput =
    "cannot write to the standard output; the result is lost";

int report(ErrorKind kind, std::string message) {
  // What a file holds may be part of it, and a terminal obeys such bytes.
  for (char &c : message)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f')
      c = '?';
  std::fprintf(stderr, "mgpu-tune: error: %s\n", message.c_str());
  return int(kind);
}

} // namespace

/// The exit code; errors are reported.
static int
runCommand(const std::function<Result<int>(const tune::Options &)> &command,
           const tune::Options &options) {
  Result<int> code;
  try {
    code = command(options);
  } catch (const std::system_error &) { // fmt::print's only complaint
    return report(ErrorKind::Invalid, lostOutput);
  } catch (const std::bad_alloc &) {
    return report(ErrorKind::Absent, "out of memory");
  }
  bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (!code)
    return report(code.error().kind, code.error().message);
  return written ? *code : report(ErrorKind::Invalid, lostOutput);
}

int main(int argc, char **argv) {
  CLI::App app("Checks, plans and replays multi-GPU programs as prebuilt "
               "graphs.",
               "mgpu-tune");
  app.require_subcommand(1);
  app.set_version_flag("--version", MGPU_VERSION);
  Options options;
  std::function<Result<int>(const Options &)> command;

  CLI::App *check =
      app.add_subcommand("check", "Find races, deadlocks, mismatched "
                                  "collectives and bad shapes");
  addProgram(check, options);
  check->callback([&] { command = tune::runCheck; });

  CLI::App *run = app.add_subcommand("run", "Plan, compile and run a program");
  addProgram(run, options);
  addScheduling(run, options);
  addTuned(run, options);
  addRun(run, options);
  addTensorCores(run, options);
  addCompileTimeout(run, options);
  addPdl(run, options);
  run->callback([&] { command = tune::runRun; });

  CLI::App *plan = app.add_subcommand("plan", "Show the schedule and why");
  addProgram(plan, options);
  addTarget(plan, options);
  addScheduling(plan, options);
  plan->add_option("--memory", options.memory,
                   "Memory of each device, as 100GB; of sim targets")
      ->type_name("SIZE");
  plan->add_option("--budget", options.budget,
                   "How long to search: 60s, or a number of schedules; of sim "
                   "targets")
      ->type_name("TIME|N")
      ->capture_default_str();
  plan->add_option("--collectives", options.collectivesFile,
                   "Measured times of collectives (.csv), instead of the "
                   "curves built in; of sim targets")
      ->type_name("FILE");
  plan->add_flag("--explain", options.explain, "Say why each step is where");
  plan->add_option("--dot", options.dotFile, "Write the plan as Graphviz");
  plan->add_option("--trace", options.traceFile,
                   "Write the predicted timeline as a Chrome/Perfetto trace");
  plan->add_option("--svg", options.svgFile,
                   "Write the predicted timeline as a picture");
  plan->add_option("--what-if", options.whatIf,
                   "Plan again for link=2x, link.nvlink=2x, nic=2x, "
                   "host_link=2x, memory=2x, flops=2x or op:NAME=0.5x (NAME* "
                   "for all that begin so), and compare; of sim targets")
      ->type_name("CHANGE")
      ->expected(1)
      ->take_all();
  takeNumber(plan->add_option("--noise", options.noisePercent,
                              "Of sim targets: the makespan's 50th and 95th "
                              "percentile where each duration varies by so "
                              "much")
                 ->type_name("PERCENT"),
             0, 100);
  plan->add_flag("--pareto", options.pareto,
                 "Plan under less and less memory, and list time over memory; "
                 "of sim targets");
  plan->add_option("-o,--output", options.planFile,
                   "Write the plan's text form to FILE");
  addTensorCores(plan, options);
  addTuned(plan, options);
  plan->callback([&] {
    options.writesPlan = true;
    command = tune::runPlan;
  });

  CLI::App *replay =
      app.add_subcommand("replay", "Run a program with a stored plan");
  addProgram(replay, options);
  replay->add_option("--plan", options.planFile,
                     "A plan written by `plan -o`; a bundle has its own");
  addTuned(replay, options);
  addRun(replay, options);
  addTensorCores(replay, options);
  addCompileTimeout(replay, options);
  addPdl(replay, options);
  replay->callback([&] {
    options.needsPlan = true;
    command = tune::runRun;
  });

  CLI::App *bundle = app.add_subcommand(
      "bundle", "Put a program, planned and compiled, into one file");
  addProgram(bundle, options);
  bundle
      ->add_option("-o,--output", options.bundleFile,
                   "The bundle to write, as x.mgpu")
      ->required();
  addTarget(bundle, options);
  addScheduling(bundle, options);
  bundle->add_option("--plan", options.planFile,
                     "Store this plan, written by `plan -o`");
  options.bundleLevels = cpuLevels;
  takeWord(bundle
               ->add_option("--cpu", options.bundleLevels,
                            "CPU levels to compile the host's kernels for")
               ->delimiter(',')
               ->type_name("LEVEL,...")
               ->capture_default_str(),
           cpuLevels);
  bundle
      ->add_option("--arch", options.bundleArchs,
                   "Architectures to compile cubins for: sm_80,sm_90,...")
      ->delimiter(',')
      ->type_name("ARCH,...");
  bundle
      ->add_option("--alternatives", options.alternatives,
                   "Other ways to build each of the host's kernels, which "
                   "`tune` may choose of a bundle (default 0)")
      ->check(CLI::Range(0, 64));
  addTensorCores(bundle, options);
  addCompileTimeout(bundle, options);
  addPdl(bundle, options);
  addTuned(bundle, options);
  bundle->callback([&] { command = tune::runBundle; });

  CLI::App *tuneCommand = app.add_subcommand(
      "tune", "Find the fastest plan and kernels, and remember them");
  addProgram(tuneCommand, options);
  addTarget(tuneCommand, options);
  tuneCommand
      ->add_option("--budget", options.tuneBudget,
                   "How long to search: 60s, or a number of candidates; what "
                   "was spent before counts")
      ->type_name("TIME|N")
      ->capture_default_str();
  tune::addDatabase(tuneCommand, options, false);
  std::vector<std::string> strategies(tuner::strategyNames().begin(),
                                      tuner::strategyNames().end());
  takeWord(
      tuneCommand->add_option("--strategy", options.strategy, "How to search")
          ->capture_default_str(),
      strategies);
  takeWhole(
      tuneCommand->add_option("--seed", options.seed, "Seed of the search")
          ->capture_default_str());
  tuneCommand->add_flag("--cold", options.coldCaches,
                        "Measure with cold caches");
  addPinning(tuneCommand, options);
  tuneCommand->callback([&] { command = tune::runTune; });

  CLI::App *compare = app.add_subcommand(
      "compare", "Measure two ways to run a program against each other; of "
                 "two plans alone, say what moved");
  compare
      ->add_option("FILE", options.file,
                   "The program (.mlir) or bundle; with no B, a plan")
      ->required();
  compare
      ->add_option("A", options.sideA,
                   "default, serial, tuned, a database (.db), or a plan "
                   "written by `plan -o`")
      ->required();
  compare->add_option("B", options.sideB,
                      "As A; without it FILE and A are two plans, and nothing "
                      "is measured");
  addProgramOptions(compare, options);
  addTarget(compare, options);
  tune::addDatabase(compare, options, false);
  compare
      ->add_option("--budget", options.compareBudget,
                   "The most to spend: 10s, or a number of pairs of samples")
      ->type_name("TIME|N")
      ->capture_default_str();
  compare->add_flag("--cold", options.coldCaches, "Measure with cold caches");
  addPinning(compare, options);
  compare->callback([&, compare] {
    if (!options.sideB.empty()) {
      command = tune::runCompare;
      return;
    }
    for (const CLI::Option *given : compare->parse_order())
      if (!given->get_positional() && given->get_name() != "--json")
        throw CLI::ValidationError(
            given->get_name(), "is of `compare FILE A B`; two plans alone are "
                               "compared without a program");
    command = tune::runPlanDiff;
  });

  CLI::App *profile = app.add_subcommand(
      "profile", "Measure each node beside what the plan predicts");
  addProgram(profile, options);
  addTarget(profile, options);
  addTuned(profile, options);
  takeWhole(
      profile->add_option("--repeat", options.profileRepeat, "Timed replays")
          ->capture_default_str(),
      1, 1'000'000);
  profile->add_option("--trace", options.traceFile,
                      "Write a Chrome/Perfetto trace of one timed replay");
  addPinning(profile, options);
  profile->callback([&] { command = tune::runProfile; });

  CLI::App *calibrate = app.add_subcommand(
      "calibrate", "Measure a target, for plans of --target sim:FILE");
  calibrate->add_option(
      "FILE", options.file,
      "A bundle of the kernels measured with, "
      "tools/mgpu-tune/calibrate.mlir; else they are compiled");
  addTarget(calibrate, options);
  addCards(calibrate, options);
  calibrate
      ->add_option("-o,--output", options.calibrationFile,
                   "The topology to write, as node.json")
      ->required();
  calibrate->add_flag("--json", options.json,
                      "Print the topology instead of a summary");
  calibrate->callback([&] { command = tune::runCalibrate; });

  CLI::App *reportCommand = app.add_subcommand(
      "report", "Write what was tuned, how, and what came of it, as a page");
  reportCommand->add_option("FILE", options.file,
                            "The program (.mlir); else the one that was tuned "
                            "last");
  addProgramOptions(reportCommand, options);
  tune::addDatabase(reportCommand, options, false);
  reportCommand->add_option("-o,--output", options.reportFile,
                            "Where to write; else HTML goes to report.html, "
                            "the rest to the standard output");
  takeWord(reportCommand->add_option("--format", options.reportFormat,
                                     "html, md, json or csv (the trials); else "
                                     "as -o ends, else html"),
           {"html", "md", "json", "csv"});
  reportCommand
      ->add_option("--problem", options.reportProblem,
                   "Of the database, by its key or the front of one (`db "
                   "list`)")
      ->type_name("KEY");
  reportCommand->callback([&] { command = tune::runReport; });

  CLI::App *kernels = app.add_subcommand(
      "kernels", "List the kernels: registers, occupancy, legal shapes");
  addProgram(kernels, options);
  kernels
      ->add_option("--arch", options.arch,
                   "The architecture to compile for: sm_80, sm_90, sm_90a, ...")
      ->capture_default_str();
  addTensorCores(kernels, options);
  addCompileTimeout(kernels, options);
  addPdl(kernels, options);
  kernels
      ->add_option("--emit", options.emitFolder,
                   "Write each kernel's CUDA C++ to FOLDER/NAME.cu")
      ->type_name("FOLDER");
  tune::addDatabase(kernels, options, false);
  kernels->callback([&] { command = tune::runKernels; });

  tune::addDbCommand(app, options, command);

  CLI::App *devices =
      app.add_subcommand("devices", "List the targets of this machine");
  devices->add_flag("--json", options.json, "Print the result as JSON");
  devices->callback([&] { command = tune::runDevices; });

  CLI::App *doctor = app.add_subcommand(
      "doctor", "Say what of CUDA this machine has, and what will not work");
  doctor->add_flag("--json", options.json, "Print the result as JSON");
  doctor->callback([&] { command = tune::runDoctor; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() != 0)
      return report(ErrorKind::Usage, tune::usageError(app, error, argc, argv));
    app.exit(error, std::cout, std::cerr); // --help, --version
    std::cout.flush();
    return std::cout ? 0 : report(ErrorKind::Invalid, lostOutput);
  }
  // A limit on the size of files is an error of write(), not the end.
  std::signal(SIGXFSZ, SIG_IGN);
  for (const CLI::App *chosen = &app; !chosen->get_subcommands().empty();) {
    chosen = chosen->get_subcommands().front();
    for (const CLI::Option *option : chosen->get_options())
      if (option->count() > 0)
        options.given.insert(option->get_name());
  }
  const int exitCode = runCommand(command, options);
  if (kernels::hasLeftPrograms())
    std::_Exit(exitCode);
  return exitCode;
}
