// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_COMMONOPTIONS_H
#define MGPU_TOOLS_MGPU_TUNE_COMMONOPTIONS_H

// Options that several commands have. The order of the calls is the order in
// which --help lists them.

#include "pipeline/program/Arguments.h"
#include "tools/mgpu-tune/CommandLine.h"
#include "tools/mgpu-tune/Options.h"
#include "tools/options/OptionTable.h"

#include <memory>

namespace mgpu::tools {

inline const std::vector<std::string> cpuLevels = {"x86-64-v2", "x86-64-v3",
                                                   "x86-64-v4"};

/// The program and how it is imported; without FILE, for commands that have
/// another use for it.
void addProgram(CLI::App *command, ProgramOptions &options);
void addProgramOptions(CLI::App *command, ProgramOptions &options);
void addScheduling(CLI::App *command, PlanOptions &options);
void addDatabase(CLI::App *command, std::string &database);
/// For commands that use what was tuned.
void addTuned(CLI::App *command, LoadOptions &load, bool &useTuned);
void addCompileTimeout(CLI::App *command, LoadOptions &load);
/// --variant and its old spellings.
void addVariants(CLI::App *command, LoadOptions &load);
void addOneDevice(CLI::App *command, LoadOptions &load);
void addCold(CLI::App *command, MeasureOptions &options);
/// For commands that measure on the host.
void addPinning(CLI::App *command, MeasureOptions &options);
void addTarget(CLI::App *command, LoadOptions &load);
void addGpus(CLI::App *command, GpuOptions &options);
void addDistributed(CLI::App *command, RankOptions &options);
void addDeadline(CLI::App *command, RankOptions &options);
void addJson(CLI::App *command, bool &json);
/// --out and its like: pairs of the form K=V, which may be repeated.
void addPairs(CLI::App *command, const char *name, Pairs &into,
              const char *help);

/// An option whose value --help calls `type`.
template <typename T>
CLI::Option *addValue(CLI::App *command, const char *name, T &into,
                      const char *type, const char *help) {
  return command->add_option(name, into, help)->type_name(type);
}

/// The options that the user typed: "--seed", ...
std::set<std::string> givenOptions(const CLI::App *command);

/// Runs `run` with the options once the command is chosen and parsed.
template <typename Options>
void onChosen(CLI::App *command, CommandLine &line,
              std::shared_ptr<Options> options,
              Result<int> (*run)(const Options &)) {
  if constexpr (requires { options->load; })
    options->load.compiler = &line.compiler;
  command->callback([=, &line] {
    if constexpr (requires { options->load; }) {
      options->load.given = givenOptions(command);
      line.needsCompiler = true;
    }
    line.chosen = [=] { return run(*options); };
  });
}

/// Adds a command, which runs `run` with the options that come with it.
template <typename Options>
std::pair<CLI::App *, Options &>
addCommand(CommandLine &line, const char *name, const char *help,
           Result<int> (*run)(const Options &)) {
  auto options = std::make_shared<Options>();
  CLI::App *command = line.app.add_subcommand(name, help);
  onChosen(command, line, options, run);
  return {command, *options};
}

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_COMMONOPTIONS_H
