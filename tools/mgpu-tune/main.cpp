// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mgpu-tune: parse the command line, call the command, print what it says.
#include "tools/mgpu-tune/Options.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <functional>
#include <iostream>
#include <new>
#include <system_error>

using namespace mgpu;
using tune::Options;

namespace {

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
      ->take_all();
}

void addProgram(CLI::App *command, Options &options) {
  command->add_option("FILE", options.file, "The program (.mlir)")->required();
  command->add_option("--entry", options.entry, "The entry function")
      ->capture_default_str();
  addPairs(
      command, "--arg", options.arguments,
      "Value of argument K, a name or number (docs/cli.md lists the forms)");
  addPairs(command, "--role", options.roles,
           "Role of argument K: input, output, resident; of a scalar: "
           "specialised, dynamic");
  command
      ->add_option("--node-limit", options.nodeLimit,
                   "Most nodes the unrolled program may have")
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print the result as JSON");
}

void addScheduling(CLI::App *command, Options &options) {
  command
      ->add_option("--scheduler", options.scheduler,
                   "serial, list, or shuffled (a random legal plan, for tests)")
      ->check(CLI::IsMember({"serial", "list", "shuffled"}))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of --scheduler shuffled")
      ->capture_default_str();
  command
      ->add_option("--transforms", options.transforms,
                   "Changes to the program that keep its bits: none, a list of "
                   "copies, scatter, bucket, split; auto: for sim targets "
                   "those that gain, else none")
      ->type_name("LIST")
      ->capture_default_str();
  command->add_option("--streams", options.streams, "Streams per device")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
}

void addTarget(CLI::App *command, Options &options) {
  command
      ->add_option("--target", options.target,
                   "The machine: host[:N], N virtual devices; plan takes "
                   "sim:NAME|FILE as well")
      ->type_name("TARGET");
}

void addRun(CLI::App *command, Options &options) {
  addTarget(command, options);
  addPairs(command, "--out", options.outputs,
           "Write argument or result K after the run to FILE.npy");
  command->add_option("--repeat", options.repeat, "Replays")
      ->check(CLI::Range(uint64_t(1), uint64_t(1'000'000'000)))
      ->capture_default_str();
  command->add_option("--trace", options.traceFile,
                      "Write a Chrome/Perfetto trace of one more replay");
}

constexpr const char *lostOutput =
    "cannot write to the standard output; the result is lost";

int report(ErrorKind kind, const std::string &message) {
  std::fprintf(stderr, "mgpu-tune: error: %s\n", message.c_str());
  return int(kind);
}

/// CLI11's complaint, and where the options are listed.
std::string usageError(const CLI::App &app, const CLI::ParseError &error,
                       int argc, char **argv) {
  auto subcommands = app.get_subcommands();
  if (!subcommands.empty())
    return std::string(error.what()) + "; 'mgpu-tune " +
           subcommands.front()->get_name() + " --help' lists the options";
  std::string what = error.what();
  // It would say "A subcommand is required" of a misspelt one.
  if (argc > 1 && argv[1][0] != '-')
    what = "there is no command '" + std::string(argv[1]) + "'";
  return what + "; 'mgpu-tune --help' lists the commands";
}

} // namespace

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
  addRun(run, options);
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
  plan->add_flag("--pareto", options.pareto,
                 "Plan under less and less memory, and list time over memory; "
                 "of sim targets");
  plan->add_option("-o,--output", options.planFile,
                   "Write the plan's text form to FILE");
  plan->callback([&] { command = tune::runPlan; });

  CLI::App *replay =
      app.add_subcommand("replay", "Run a program with a stored plan");
  addProgram(replay, options);
  replay->add_option("--plan", options.planFile, "A plan written by `plan -o`")
      ->required();
  addRun(replay, options);
  replay->callback([&] { command = tune::runRun; });

  CLI::App *compare = app.add_subcommand(
      "compare", "Say what moved between two plans, and what it bought");
  compare->add_option("A", options.file, "A plan written by `plan -o`")
      ->required();
  compare->add_option("B", options.otherFile, "Another one")->required();
  compare->add_flag("--json", options.json, "Print the result as JSON");
  compare->callback([&] { command = tune::runCompare; });

  CLI::App *kernels = app.add_subcommand(
      "kernels", "List the kernels: registers, occupancy, legal shapes");
  addProgram(kernels, options);
  kernels
      ->add_option("--arch", options.arch,
                   "The architecture to compile for: sm_80, sm_90, sm_90a, ...")
      ->capture_default_str();
  kernels
      ->add_option("--emit", options.emitFolder,
                   "Write each kernel's CUDA C++ to FOLDER/NAME.cu")
      ->type_name("FOLDER");
  kernels->callback([&] { command = tune::runKernels; });

  CLI::App *devices =
      app.add_subcommand("devices", "List the targets of this machine");
  devices->add_flag("--json", options.json, "Print the result as JSON");
  devices->callback([&] { command = tune::runDevices; });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() != 0)
      return report(ErrorKind::Usage, usageError(app, error, argc, argv));
    app.exit(error, std::cout, std::cerr); // --help, --version
    std::cout.flush();
    return std::cout ? 0 : report(ErrorKind::Invalid, lostOutput);
  }
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
