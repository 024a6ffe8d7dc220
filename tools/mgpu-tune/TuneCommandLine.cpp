// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The command lines of `tune`, `compare`, `profile`, `calibrate`, `report`,
// `kernels`, `devices` and `doctor`.
#include "tools/mgpu-tune/CommonOptions.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/options/OptionTable.h"
#include "tuner/strategy/SearchStrategy.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

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

} // namespace mgpu::tools
