// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/options/OptionChecks.h"

#include "support/Spelling.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::tools {

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
