// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_COMMANDLINE_H
#define MGPU_TOOLS_MGPU_TUNE_COMMANDLINE_H

// The command line: each function below adds one command with its options.
// Parsing fills the command's option struct and sets CommandLine::chosen.

#include "support/Result.h"

#include <functional>

namespace CLI {
class App;
}

namespace mgpu::pipeline {
class Compiler;
}

namespace mgpu::tools {

struct CommandLine {
  CLI::App &app;
  const pipeline::Compiler &compiler;
  std::function<Result<int>()> chosen; ///< runs the command that was given
  bool needsCompiler = false;          ///< it takes a program
};

void addCheckCommand(CommandLine &line);
void addRunCommand(CommandLine &line);
void addPlanCommand(CommandLine &line);
void addReplayCommand(CommandLine &line);
void addBundleCommand(CommandLine &line);
void addTuneCommand(CommandLine &line);
void addCompareCommand(CommandLine &line);
void addProfileCommand(CommandLine &line);
void addCalibrateCommand(CommandLine &line);
void addReportCommand(CommandLine &line);
void addKernelsCommand(CommandLine &line);
void addDbCommand(CommandLine &line);
void addSecretCommand(CommandLine &line);
void addDevicesCommand(CommandLine &line);
void addDoctorCommand(CommandLine &line);
/// Hidden: the option table as JSON, for what is generated from it.
void addOptionsCommand(CommandLine &line);
/// Each of them, in the order of --help.
void addCommands(CommandLine &line);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_MGPU_TUNE_COMMANDLINE_H
