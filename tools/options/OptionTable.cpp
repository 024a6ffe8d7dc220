// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/options/OptionTable.h"

#include "support/Spelling.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

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

namespace {

/// The whole of `text` as a decimal number.
template <typename T>
bool parseAll(const std::string &text, T &value) {
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last;
}

/// "" for a good value, which it may rewrite; else what is wrong with it.
using Check = std::function<std::string(std::string &)>;

/// `placeholder` stands in --help for the value of an option that has none.
void addCheck(CLI::Option *option, Check check,
              const std::string &placeholder) {
  option->transform(CLI::Validator(std::move(check), ""));
  const std::string now = option->get_type_name();
  if (now.empty() || now == "TEXT" || now == "UINT" || now == "FLOAT")
    option->type_name(placeholder);
}

/// CLI11's complaint about an option used wrongly, without its own words.
std::string mismatch(const std::string &what) {
  const std::string name = what.substr(0, what.find(':'));
  if (size_t at = what.find("received "); at != std::string::npos)
    return fmt::format("{} is given {} times, and takes one value", name,
                       what.substr(at + std::string_view("received ").size()));
  if (what.ends_with(" missing"))
    return name + " needs a value";
  return what;
}

} // namespace

void takeWhole(CLI::Option *option, uint64_t least, uint64_t most) {
  const bool isOpen = most == std::numeric_limits<uint64_t>::max();
  addCheck(
      option,
      [=](std::string &text) -> std::string {
        uint64_t value = 0;
        if (!parseAll(text, value) || value < least || value > most)
          return isOpen && least == 0
                     ? fmt::format("'{}' is not a whole number below 2^64",
                                   text)
                     : fmt::format("'{}' is not a whole number from {} to {}",
                                   text, least, most);
        text = std::to_string(value);
        return "";
      },
      "N");
}

void takeNumber(CLI::Option *option, double least, double most) {
  addCheck(
      option,
      [=](std::string &text) {
        double value = 0;
        return parseAll(text, value) && value >= least && value <= most
                   ? ""
                   : fmt::format("'{}' is not a number from {} to {}", text,
                                 least, most);
      },
      "NUMBER");
}

void takeWord(CLI::Option *option, const std::vector<std::string> &words) {
  addCheck(
      option,
      [=](std::string &text) {
        return std::find(words.begin(), words.end(), text) != words.end()
                   ? ""
                   : fmt::format("'{}' is none of {}{}", text,
                                 fmt::join(words, ", "),
                                 didYouMean(text, words));
      },
      fmt::format("{}", fmt::join(words, "|")));
}

static std::vector<std::string> commandNames(const CLI::App &group) {
  std::vector<std::string> names;
  for (const CLI::App *each :
       group.get_subcommands([](const CLI::App *) { return true; }))
    names.push_back(each->get_name());
  return names;
}

/// Whether a word begins as an option does; "-1" and "-" do not.
static bool looksLikeOption(const std::string &word) {
  return word.starts_with("--") ||
         (word.size() == 2 && word[0] == '-' && std::isalpha(word[1]));
}

/// The first word after the command that begins as an option and is none of
/// it, with what may have been meant. CLI11 would rather say what is missing,
/// which is often only misspelt.
static std::string unknownOption(const CLI::App &command, int argc, char **argv,
                                 int first) {
  std::vector<std::string> known;
  for (const CLI::Option *option : command.get_options()) {
    for (const std::string &name : option->get_lnames())
      known.push_back("--" + name);
    for (const std::string &name : option->get_snames())
      known.push_back("-" + name);
  }
  for (int k = first; k < argc; ++k) {
    std::string word = argv[k];
    word = word.substr(0, word.find('='));
    if (word == "--")
      break;
    if (looksLikeOption(word) &&
        std::find(known.begin(), known.end(), word) == known.end())
      return fmt::format("there is no option {}{}", word,
                         didYouMean(word, known));
  }
  return "";
}

/// The sentence about words that are no option's and no argument's.
static std::string nothingTakes(const std::vector<std::string> &words,
                                const CLI::App &command) {
  std::string what = fmt::format("nothing takes {}", fmt::join(words, " "));
  if (words[0].find('=') != std::string::npos &&
      command.get_option_no_throw("--arg"))
    what += "; did you mean '--arg " + words[0] + "'?";
  return what;
}

std::string usageError(const CLI::App &app, const CLI::ParseError &error,
                       int argc, char **argv) {
  // `list` is a command of `db`.
  std::string name = "mgpu-tune";
  const CLI::App *last = &app;
  int words = 1;
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    name += " " + last->get_name();
    ++words;
  }
  const bool isGroup =
      !last->get_subcommands([](auto *) { return true; }).empty();
  std::string what = error.what();
  // It would say "A subcommand is required" of a misspelt one.
  if (isGroup && argc > words && argv[words][0] != '-')
    what = "there is no command '" +
           (words > 1 ? last->get_name() + " " : std::string()) + argv[words] +
           "'" + didYouMean(argv[words], commandNames(*last));
  else if (std::string unknown = unknownOption(*last, argc, argv, words);
           !unknown.empty())
    what = std::move(unknown);
  else if (dynamic_cast<const CLI::ArgumentMismatch *>(&error))
    what = mismatch(what);
  else if (dynamic_cast<const CLI::ExtrasError *>(&error))
    what = nothingTakes(app.remaining(/*recurse=*/true), *last);
  return fmt::format("{}; '{} --help' lists the {}", what, name,
                     isGroup ? "commands" : "options");
}

} // namespace mgpu::tools
