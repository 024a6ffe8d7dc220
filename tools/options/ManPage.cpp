// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Version.h"
#include "tools/options/OptionPages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::tools {

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
