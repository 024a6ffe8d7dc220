// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/options/OptionTable.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::tools {

namespace {

/// The commands of `parent` ("": of the program), by the word that is typed.
std::vector<std::pair<std::string, const CommandEntry *>>
commandsOf(const OptionTable &table, const std::string &parent) {
  std::vector<std::pair<std::string, const CommandEntry *>> found;
  const std::string before = parent.empty() ? "" : parent + " ";
  for (const CommandEntry &command : table) {
    if (command.name.empty() || !command.name.starts_with(before))
      continue;
    std::string word = command.name.substr(before.size());
    if (word.find(' ') == std::string::npos)
      found.emplace_back(std::move(word), &command);
  }
  return found;
}

/// The words that a value may be; none where the placeholder is not a list.
std::vector<std::string> valuesOf(const OptionEntry &option) {
  std::vector<std::string> values;
  std::string_view text = option.placeholder;
  if (text.find('|') == text.npos || text.starts_with('['))
    return values;
  for (size_t at = 0; at <= text.size();) {
    const size_t bar = std::min(text.find('|', at), text.size());
    values.emplace_back(text.substr(at, bar - at));
    at = bar + 1;
  }
  const bool areWords =
      std::all_of(values.begin(), values.end(), [](const std::string &value) {
        return value.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"
                                       "_") == std::string::npos;
      });
  return areWords ? values : std::vector<std::string>();
}

bool takesValue(const OptionEntry &option) {
  return !option.placeholder.empty() && option.placeholder[0] != '[';
}

std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

/// The first sentence or clause, on one line.
std::string brief(const std::string &text) {
  return text.substr(0, std::min(text.find("; "), text.find(". ")));
}

} // namespace

std::string bashCompletion(const OptionTable &table) {
  std::vector<std::string> names;
  std::string options, values, commands;
  for (const CommandEntry &command : table) {
    if (!command.name.empty())
      names.push_back("\" " + command.name + "\"");
    std::vector<std::string> words;
    for (const OptionEntry &option : command.options) {
      if (option.isPositional)
        continue;
      for (const std::string &name : option.names) {
        words.push_back(name);
        if (auto known = valuesOf(option); !known.empty())
          values += fmt::format("    \"{}:{}\") words=\"{}\" ;;\n",
                                command.name, name, fmt::join(known, " "));
      }
    }
    words.insert(words.end(), {"-h", "--help"});
    options += fmt::format("    \"{}\") words=\"{}\" ;;\n", command.name,
                           fmt::join(words, " "));
    if (!command.hasCommands)
      continue;
    std::vector<std::string> below;
    for (const auto &[word, entry] : commandsOf(table, command.name))
      below.push_back(word);
    commands += fmt::format("    \"{}\") words=\"{}\" ;;\n", command.name,
                            fmt::join(below, " "));
  }
  return fmt::format(R"(# bash completion of mgpu-tune, made of its option table
_mgpu_tune() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} at= words= word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case " ${{at:+$at }}$word" in
    {}) at="${{at:+$at }}$word" ;;
    esac
  done
  case "$at:$prev" in
{}  esac
  if [[ -z $words && $cur == -* ]]; then
    case "$at" in
{}    esac
  elif [[ -z $words ]]; then
    case "$at" in
{}    esac
  fi
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}}
complete -o filenames -F _mgpu_tune mgpu-tune
)",
                     fmt::join(names, "|"), values, options, commands);
}

std::string zshCompletion(const OptionTable &table) {
  auto escaped = [](std::string text) {
    for (size_t at = 0; (at = text.find_first_of("[]:\\", at)) != text.npos;
         at += 2)
      text.insert(at, 1, '\\');
    return text;
  };
  auto specs = [&](const CommandEntry &command) {
    std::string lines;
    for (const OptionEntry &option : command.options) {
      if (option.isPositional)
        continue;
      const auto values = valuesOf(option);
      const std::string value =
          !takesValue(option)
              ? ""
              : fmt::format(":{}:{}", escaped(option.placeholder),
                            values.empty()
                                ? "_files"
                                : fmt::format("({})", fmt::join(values, " ")));
      for (const std::string &name : option.names)
        lines += " \\\n        " +
                 quoted(fmt::format("{}{}[{}]{}", option.mayRepeat ? "*" : "",
                                    name, escaped(brief(option.help)), value));
    }
    return lines + " \\\n        '-h[A line for each option]' \\\n        "
                   "'--help[All there is to say]'";
  };
  std::string cases;
  for (const CommandEntry &command : table) {
    std::string rest = " \\\n        '*:FILE:_files'";
    if (command.hasCommands) {
      std::vector<std::string> words;
      for (const auto &[word, entry] : commandsOf(table, command.name))
        words.push_back(quoted(word + ":" + escaped(brief(entry->help))));
      cases += fmt::format("    {})\n      local -a below=({})\n      "
                           "(( CURRENT == {} )) && _describe command below\n",
                           quoted(command.name), fmt::join(words, " "),
                           command.name.empty() ? 2 : 3);
      rest = "";
    }
    if (command.hasCommands)
      cases += "      [[ $PREFIX == -* ]] && ";
    else
      cases += fmt::format("    {})\n      ", quoted(command.name));
    cases += "_arguments" + specs(command) + rest + " ;;\n";
  }
  return "#compdef mgpu-tune\n# zsh completion of mgpu-tune, made of its "
         "option table\n_mgpu-tune() {\n  local at=''\n  (( CURRENT > 2 )) && "
         "at=$words[2]\n  [[ $at == db ]] && (( CURRENT > 3 )) && at=\"db "
         "$words[3]\"\n  case $at in\n" +
         cases + "  esac\n}\n_mgpu-tune \"$@\"\n";
}

std::string fishCompletion(const OptionTable &table) {
  std::string out =
      "# fish completion of mgpu-tune, made of its option table\n";
  for (const CommandEntry &command : table) {
    std::string when = "__fish_use_subcommand";
    if (!command.name.empty()) {
      when.clear();
      for (size_t at = 0; at <= command.name.size();) {
        const size_t end =
            std::min(command.name.find(' ', at), command.name.size());
        when += (when.empty() ? "" : "; and ") +
                std::string("__fish_seen_subcommand_from ") +
                command.name.substr(at, end - at);
        at = end + 1;
      }
    }
    const std::string head = "complete -c mgpu-tune -n " + quoted(when);
    if (command.hasCommands)
      for (const auto &[word, entry] : commandsOf(table, command.name))
        out += fmt::format("{} -f -a {} -d {}\n", head, word,
                           quoted(brief(entry->help)));
    for (const OptionEntry &option : command.options) {
      if (option.isPositional)
        continue;
      out += head;
      for (const std::string &name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2)
                                      : " -s " + name.substr(1);
      if (takesValue(option)) {
        const auto values = valuesOf(option);
        out += values.empty()
                   ? std::string(" -r")
                   : fmt::format(" -x -a \"{}\"", fmt::join(values, " "));
      }
      out += " -d " + quoted(brief(option.help)) + "\n";
    }
  }
  return out;
}

} // namespace mgpu::tools
