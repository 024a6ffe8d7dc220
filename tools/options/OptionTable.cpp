// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/options/OptionTable.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

namespace {

struct Group {
  const char *name;
  std::vector<std::string> options;
};

/// In the order of --help. An option that is in none is of the last.
const std::vector<Group> &groups() {
  static const std::vector<Group> all = {
      {"Program",
       {"--entry", "--arg", "--random", "--role", "--dim", "--devices",
        "--grid", "--mesh", "--shard", "--per-device", "--assign", "--custom",
        "--schedule", "--remat", "--node-limit", "--roll-from", "--no-fusion",
        "--exact"}},
      {"Target",
       {"--target", "--distributed", "--cpu", "--arch", "--memory", "--nccl",
        "--deadline", "--variant", "--compile-timeout", "--guard"}},
      {"Plan",
       {"--plan", "--certificate", "--scheduler", "--transforms", "--streams",
        "--seed", "--collectives", "--what-if", "--noise", "--pareto",
        "--shardings", "--one-device", "--step"}},
      {"Measuring",
       {"--budget", "--strategy", "--repeat", "--cold", "--pin", "--no-pin"}},
      {"Database", {"--db", "--db-site", "--no-tuned", "--problem"}},
      {"Output", {}},
  };
  return all;
}

std::string groupOf(const OptionEntry &option) {
  if (option.isPositional)
    return "Arguments";
  for (const Group &group : groups())
    for (const std::string &name : option.names)
      if (std::find(group.options.begin(), group.options.end(), name) !=
          group.options.end())
        return group.name;
  return "Output";
}

size_t orderOf(const OptionEntry &option) {
  if (option.isPositional)
    return 0;
  size_t at = 1;
  for (const Group &group : groups()) {
    for (const std::string &name : group.options) {
      if (std::find(option.names.begin(), option.names.end(), name) !=
          option.names.end())
        return at;
      ++at;
    }
  }
  return at;
}

std::vector<std::string> examplesOf(const std::string &command) {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"check", {"mgpu-tune check saxpy.mlir --arg a=2"}},
      {"run",
       {"mgpu-tune run saxpy.mlir --arg a=2 --arg x=iota --arg y=x.npy --out "
        "y=y.npy",
        "mgpu-tune run saxpy.mlir --arg a=2 --arg x=1 --arg y=1 --repeat "
        "1000"}},
      {"plan",
       {"mgpu-tune plan saxpy.mlir --arg a=2 --explain",
        "mgpu-tune plan saxpy.mlir --arg a=2 --target sim:dgx-h200 -o "
        "saxpy.plan"}},
      {"replay",
       {"mgpu-tune replay saxpy.mlir --plan saxpy.plan --arg a=2 --arg x=iota "
        "--arg y=1"}},
      {"bundle", {"mgpu-tune bundle saxpy.mlir --arg a=2 -o saxpy.mgpu"}},
      {"tune", {"mgpu-tune tune saxpy.mlir --arg a=2 --budget 1m"}},
      {"compare",
       {"mgpu-tune compare saxpy.mlir --arg a=2 default tuned",
        "mgpu-tune compare a.plan b.plan"}},
      {"profile", {"mgpu-tune profile saxpy.mlir --arg a=2"}},
      {"calibrate", {"mgpu-tune calibrate --target host:4 -o node.json"}},
      {"report", {"mgpu-tune report saxpy.mlir -o report.html"}},
      {"kernels",
       {"mgpu-tune kernels saxpy.mlir --arg a=2 --emit cuda",
        "mgpu-tune kernels saxpy.mlir --arg a=2 --variant pdl=on"}},
      {"db list", {"mgpu-tune db list"}},
      {"db variant",
       {"mgpu-tune db variant",
        "mgpu-tune db variant pdl --target cuda:0 --replay-us 41 --without-us "
        "45"}},
      {"db show", {"mgpu-tune db show 9ab3"}},
  };
  auto at = all.find(command);
  return at == all.end() ? std::vector<std::string>() : at->second;
}

OptionEntry optionEntry(const CLI::Option &option) {
  OptionEntry entry;
  entry.isPositional = option.get_positional();
  if (entry.isPositional) {
    entry.names.push_back(option.get_name(true));
  } else {
    for (const std::string &name : option.get_snames())
      entry.names.push_back("-" + name);
    for (const std::string &name : option.get_lnames())
      entry.names.push_back("--" + name);
  }
  // A flag has no value, but for one that may take a word.
  if (option.get_fnames().size() == 1 &&
      option.get_type_name().find('|') != std::string::npos)
    entry.placeholder = "[=" + option.get_type_name() + "]";
  else if (option.get_items_expected_max() > 0 && !entry.isPositional)
    entry.placeholder = option.get_type_name();
  entry.byDefault = option.get_default_str();
  entry.help = option.get_description();
  entry.isRequired = option.get_required();
  entry.mayRepeat =
      option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll ||
      option.get_expected_max() > 1;
  entry.group = groupOf(entry);
  return entry;
}

std::string nameOf(const CLI::App &command) {
  const CLI::App *parent = command.get_parent();
  if (!parent)
    return "";
  const std::string before = nameOf(*parent);
  return before.empty() ? command.get_name()
                        : before + " " + command.get_name();
}

} // namespace

CommandEntry commandEntry(const CLI::App &command) {
  CommandEntry entry;
  entry.name = nameOf(command);
  entry.help = command.get_description();
  entry.examples = examplesOf(entry.name);
  for (const CLI::Option *option : command.get_options())
    if (option != command.get_help_ptr() &&
        option != command.get_help_all_ptr())
      entry.options.push_back(optionEntry(*option));
  // Options that no group names keep the order in which they were added.
  std::vector<std::pair<size_t, size_t>> order;
  for (size_t k = 0; k < entry.options.size(); ++k)
    order.push_back({orderOf(entry.options[k]), k});
  std::sort(order.begin(), order.end());
  std::vector<OptionEntry> sorted;
  for (auto [rank, k] : order)
    sorted.push_back(std::move(entry.options[k]));
  entry.options = std::move(sorted);
  entry.hasCommands =
      !command.get_subcommands([](auto *) { return true; }).empty();
  return entry;
}

std::vector<CommandEntry> optionTable(const CLI::App &program) {
  std::vector<CommandEntry> table = {commandEntry(program)};
  for (const CLI::App *command :
       program.get_subcommands([](const CLI::App *) { return true; })) {
    if (command->get_group().empty())
      continue; // hidden
    std::vector<CommandEntry> part = optionTable(*command);
    std::move(part.begin(), part.end(), std::back_inserter(table));
  }
  return table;
}

const std::vector<std::pair<int, std::string>> &exitCodes() {
  static const std::vector<std::pair<int, std::string>> codes = {
      {0, "success"},
      {1, "the program, plan or data is wrong, or a result could not be "
          "written"},
      {2, "the command line is wrong, or a file it names cannot be opened"},
      {3, "a device or library is not there"},
      {4, "a fault of mgpu"},
      {5, "a feature this version does not have"},
      {130, "cut short by Ctrl-C; `tune` has printed and stored what it found"},
      {143, "cut short by SIGTERM; likewise"}};
  return codes;
}

nlohmann::json toJson(const std::vector<CommandEntry> &table) {
  nlohmann::json out{{"schema", 1}, {"program", "mgpu-tune"}};
  for (const CommandEntry &command : table) {
    nlohmann::json options = nlohmann::json::array();
    for (const OptionEntry &option : command.options)
      options.push_back({{"group", option.group},
                         {"names", option.names},
                         {"placeholder", option.placeholder},
                         {"default", option.byDefault},
                         {"help", option.help},
                         {"positional", option.isPositional},
                         {"required", option.isRequired},
                         {"repeat", option.mayRepeat}});
    out["commands"].push_back({{"name", command.name},
                               {"help", command.help},
                               {"examples", command.examples},
                               {"has_commands", command.hasCommands},
                               {"options", std::move(options)}});
  }
  for (const auto &[code, meaning] : exitCodes())
    out["exit_codes"].push_back({{"code", code}, {"meaning", meaning}});
  return out;
}

} // namespace mgpu::tools
