// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune options`: the command line as data, for the build and for docs.
#include "tools/mgpu-tune/CommonOptions.h"
#include "tools/mgpu-tune/JsonOutput.h"
#include "tools/options/OptionTable.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace mgpu::tools {

void addOptionsCommand(CommandLine &line) {
  using Writer = std::string (*)(const OptionTable &);
  static const std::map<std::string, Writer> formats = {
      {"json", nullptr},
      {"man", manPage},
      {"bash", bashCompletion},
      {"zsh", zshCompletion},
      {"fish", fishCompletion}};
  CLI::App *command =
      line.app.add_subcommand("options", "Print every command and option");
  command->group(""); // hidden
  auto format = std::make_shared<std::string>("json");
  command
      ->add_option("--as", *format,
                   "JSON, a manual page, or a shell's completion")
      ->check(CLI::IsMember(formats))
      ->type_name("json|man|bash|zsh|fish");
  command->callback([&line, format] {
    line.chosen = [&line, format]() -> Result<int> {
      const OptionTable table = optionTable(line.app);
      if (Writer write = formats.at(*format))
        std::fputs(write(table).c_str(), stdout);
      else
        printJson(toJson(table));
      return 0;
    };
  });
}

} // namespace mgpu::tools
