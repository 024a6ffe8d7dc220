// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/Batch.h"

#include "kernels/abi/LaunchForm.h"

#include <set>
#include <string_view>

namespace mgpu::kernels {

/// Adds the names of all `#define NAME` lines of `source`.
static void findMacros(std::string_view source, std::set<std::string> &names) {
  constexpr std::string_view directive = "#define ";
  for (size_t at = 0; at < source.size();) {
    size_t end = std::min(source.find('\n', at), source.size());
    std::string_view line = source.substr(at, end - at);
    at = end + 1;
    if (line.substr(0, directive.size()) != directive)
      continue;
    line.remove_prefix(directive.size());
    names.emplace(line.substr(0, line.find_first_of(" (\t")));
  }
}

std::string batchSource(std::span<const BatchItem> items) {
  std::string text;
  for (size_t k = 0; k < items.size(); ++k) {
    const BatchItem &item = items[k];
    std::set<std::string> macros;
    auto define = [&](const std::string &name, const std::string &value) {
      text += "#define " + name + " " + value + "\n";
      macros.insert(name);
    };
    if (item.entryName != item.entry) {
      define(item.entry, item.entryName);
      const std::string form(launchFormPrefix);
      define(form + item.entry, form + item.entryName);
    }
    for (const auto &[name, value] : item.macros)
      define(name, value);
    findMacros(item.source, macros);
    text += "namespace mgpu_batch_" + std::to_string(k) + " {\n" + item.source;
    if (!item.source.empty() && item.source.back() != '\n')
      text += '\n';
    text += "}\n";
    for (const std::string &name : macros)
      text += "#undef " + name + "\n";
  }
  return text;
}

} // namespace mgpu::kernels
