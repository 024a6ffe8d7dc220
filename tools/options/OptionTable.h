// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_OPTIONS_OPTIONTABLE_H
#define MGPU_TOOLS_OPTIONS_OPTIONTABLE_H

// The commands and their options as plain data: what --help prints, what the
// tables of docs/cli.md hold, and what `mgpu-tune options` writes as JSON for
// whoever makes a manual page or a completion of it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mgpu::tools {

struct OptionEntry {
  std::string group;              ///< "Program", ...; see OptionTable.cpp
  std::vector<std::string> names; ///< "-o", "--output"; of a positional, FILE
  std::string placeholder;        ///< "FILE", "serial|list"; of a flag empty
  std::string byDefault;          ///< empty: none
  std::string help;
  bool isPositional = false, isRequired = false, mayRepeat = false;
};

struct CommandEntry {
  std::string name; ///< "run", "db list"; of the program itself ""
  std::string help;
  std::vector<std::string> examples;
  std::vector<OptionEntry> options; ///< by group
  bool hasCommands = false;
};

/// The command alone.
CommandEntry commandEntry(const CLI::App &command);
/// The program, then every command in the order of --help, those of a command
/// behind it.
std::vector<CommandEntry> optionTable(const CLI::App &program);
nlohmann::json toJson(const std::vector<CommandEntry> &table);

/// The exit codes, as code and meaning.
const std::vector<std::pair<int, std::string>> &exitCodes();

/// Makes `-h` (a line for each option) and `--help` (everything) of the table,
/// for the program and all commands that are added afterwards.
void setHelp(CLI::App &program);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_OPTIONS_OPTIONTABLE_H
