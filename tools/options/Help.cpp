// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// -h and --help, made of the option table.
#include "pipeline/program/Version.h"
#include "tools/options/OptionTable.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace mgpu::tools {

namespace {

/// Columns of the terminal; 80 where there is none, so that what is written to
/// a file is the same everywhere.
size_t columns() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0)
    return std::clamp<size_t>(size.ws_col, 40, 120);
  return 80;
}

/// `text` in lines of at most `width` characters, each after `indent` spaces.
std::string wrap(std::string_view text, size_t indent, size_t width) {
  std::string out, line;
  auto flush = [&] {
    out += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!line.empty() && indent + line.size() + 1 + word.size() > width)
      flush();
    line += (line.empty() ? "" : " ") + std::string(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!line.empty())
    flush();
  return out;
}

std::string nameText(const OptionEntry &option) {
  std::string text = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.placeholder.empty())
    text += (option.placeholder[0] == '[' ? "" : " ") + option.placeholder;
  if (option.mayRepeat)
    text += " ...";
  return text;
}

std::string helpText(const OptionEntry &option) {
  std::string text = option.help;
  if (option.isRequired && !option.isPositional)
    text += " (required)";
  else if (!option.byDefault.empty())
    text += fmt::format(" (default {})", option.byDefault);
  return text;
}

/// The first sentence or clause, cut to the width.
std::string brief(std::string text, size_t width) {
  text = text.substr(0, text.find("; "));
  if (text.size() > width)
    text = text.substr(0, width - 3) + "...";
  return text;
}

void addOptions(std::string &out, const CommandEntry &command, bool isLong) {
  std::vector<OptionEntry> options = command.options;
  options.push_back({"Output",
                     {"-h"},
                     "",
                     "",
                     "A line for each option",
                     false,
                     false,
                     false});
  options.push_back({"Output",
                     {"--help"},
                     "",
                     "",
                     "This text, with examples "
                     "and exit codes",
                     false,
                     false,
                     false});
  std::string group;
  constexpr size_t column = 30;
  for (const OptionEntry &option : options) {
    if (option.group != group) {
      group = option.group;
      out += "\n" + group + ":\n";
    }
    const std::string name = "  " + nameText(option);
    if (isLong) {
      out += name + "\n" + wrap(helpText(option), 6, columns());
      continue;
    }
    out += name.size() + 2 > column
               ? name + "\n" + std::string(column, ' ')
               : name + std::string(column - name.size(), ' ');
    out += brief(option.help, columns() - column) + "\n";
  }
}

std::string usageOf(const CommandEntry &command) {
  std::string text = "mgpu-tune";
  if (!command.name.empty())
    text += " " + command.name;
  text += command.hasCommands ? " COMMAND" : "";
  for (const OptionEntry &option : command.options)
    if (option.isPositional)
      text += option.isRequired ? " " + option.names[0]
                                : " [" + option.names[0] + "]";
  return text + " [OPTIONS]";
}

class Help : public CLI::FormatterBase {
public:
  std::string make_help(const CLI::App *app, std::string,
                        CLI::AppFormatMode mode) const override {
    const bool isLong = mode == CLI::AppFormatMode::All;
    const CommandEntry command = commandEntry(*app);
    std::string out =
        wrap(command.help.ends_with('.') ? command.help : command.help + ".", 0,
             columns()) +
        "\nUsage: " + usageOf(command) + "\n";
    if (command.hasCommands) {
      out += "\nCommands:\n";
      for (const CLI::App *each :
           app->get_subcommands([](const CLI::App *) { return true; })) {
        if (each->get_group().empty())
          continue;
        const std::string name = "  " + each->get_name();
        const std::string text = each->get_description();
        // The name stands in the first line's indent.
        std::string lines = wrap(text, 13, columns());
        out += lines.replace(0, name.size(), name);
      }
    }
    addOptions(out, command, isLong);
    if (isLong && !command.examples.empty()) {
      out += "\nExamples:\n";
      for (const std::string &example : command.examples)
        out += "  " + example + "\n";
    }
    if (isLong) {
      out += "\nExit codes:\n";
      for (const auto &[code, meaning] : exitCodes()) {
        std::string lines = wrap(meaning, 7, columns());
        const std::string number = fmt::format("{:>5}", code);
        out += lines.replace(0, number.size(), number);
      }
      out += "\nMore: docs/cli.md" +
             (command.name.empty()
                  ? std::string()
                  : "#" + command.name.substr(0, command.name.find(' '))) +
             "\n";
    }
    return out;
  }
};

} // namespace

void setHelp(CLI::App &program) {
  program.formatter(std::make_shared<Help>());
  program.set_help_flag("-h", "A line for each option");
  program.set_help_all_flag("--help", "All there is to say");
}

/// `text` as roff prints it: a backslash, a hyphen and a point that begins a
/// line have a meaning there.
static std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (out.empty() && (c == '.' || c == '\''))
      out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

static std::string sentence(const std::string &text) {
  return roff(text.ends_with('.') || text.empty() ? text : text + ".");
}

static void addOption(std::string &out, const OptionEntry &option) {
  std::vector<std::string> names;
  for (const std::string &name : option.names)
    names.push_back("\\fB" + roff(name) + "\\fR");
  out += fmt::format(".TP\n{}", fmt::join(names, ", "));
  if (!option.placeholder.empty())
    out += fmt::format("{}\\fI{}\\fR", option.placeholder[0] == '[' ? "" : " ",
                       roff(option.placeholder));
  out += (option.mayRepeat ? " ...\n" : "\n") + sentence(option.help);
  if (option.isRequired && !option.isPositional)
    out += " Required.";
  else if (!option.byDefault.empty())
    out += " Default: " + roff(option.byDefault) + ".";
  out += "\n";
}

static void addCommand(std::string &out, const CommandEntry &command) {
  out += fmt::format(".SS mgpu\\-tune {}\n{}\n", roff(command.name),
                     sentence(command.help));
  for (const OptionEntry &option : command.options)
    addOption(out, option);
  for (const std::string &example : command.examples)
    out += ".PP\n.EX\n" + roff(example) + "\n.EE\n";
}

std::string manPage(const OptionTable &table) {
  const CommandEntry &program = table.front();
  std::string out =
      fmt::format(".TH MGPU\\-TUNE 1 \"\" \"mgpu {}\"\n.SH NAME\nmgpu\\-tune "
                  "\\- plan, tune and replay multi\\-GPU programs\n"
                  ".SH SYNOPSIS\n\\fBmgpu\\-tune\\fR \\fICOMMAND\\fR "
                  "[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n{}\n",
                  roff(pipeline::version()), sentence(program.help));
  for (const OptionEntry &option : program.options)
    addOption(out, option);
  out += ".SH COMMANDS\n";
  for (size_t k = 1; k < table.size(); ++k)
    addCommand(out, table[k]);
  out += ".SH EXIT STATUS\n";
  for (const auto &[code, meaning] : exitCodes())
    out += fmt::format(".TP\n{}\n{}\n", code, sentence(meaning));
  return out;
}

} // namespace mgpu::tools
