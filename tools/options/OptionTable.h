// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_OPTIONS_OPTIONTABLE_H
#define MGPU_TOOLS_OPTIONS_OPTIONTABLE_H

// The commands and their options as plain data: what --help prints, what the
// tables of docs/cli.md hold, and what `mgpu-tune options` writes as JSON for
// whoever makes a manual page or a completion of it.

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <limits>
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

// Checks values of options, and says what is wrong with a command line.

/// Adds a check that the value is a decimal whole number of these; the
/// library's own conversion would wrap -1 and take 010 for 8.
void takeWhole(CLI::Option *option, uint64_t least = 0,
               uint64_t most = std::numeric_limits<uint64_t>::max());
/// A number of [least, most].
void takeNumber(CLI::Option *option, double least, double most);
/// One of `words`.
void takeWord(CLI::Option *option, const std::vector<std::string> &words);

/// The error as a sentence, and where the options are listed.
std::string usageError(const CLI::App &app, const CLI::ParseError &error,
                       int argc, char **argv);

// The option table as a manual page and as completions for shells. The build
// writes them by `mgpu-tune options --as FORMAT` and installs them.

using OptionTable = std::vector<CommandEntry>; ///< as optionTable() makes it

/// mgpu-tune(1), in the man macros of roff.
std::string manPage(const OptionTable &table);

std::string bashCompletion(const OptionTable &table);
std::string zshCompletion(const OptionTable &table);
std::string fishCompletion(const OptionTable &table);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_OPTIONS_OPTIONTABLE_H
