// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-lsp-server/OperationDocs.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace mgpu::tools::lsp {

// docs/generated, as string literals.
static constexpr std::string_view documents[] = {
#include "tools/mgpu-lsp-server/MgpuDialect.inc"
    ,
#include "tools/mgpu-lsp-server/MpmdDialect.inc"
    ,
#include "tools/mgpu-lsp-server/SpmdDialect.inc"
};

/// A section begins with "### `mgpu.alloc` (...)" and ends at the next one.
static std::map<std::string, std::string> sectionsOf(std::string_view text) {
  std::map<std::string, std::string> sections;
  constexpr std::string_view mark = "\n### `";
  for (size_t at = text.find(mark); at != std::string_view::npos;) {
    const size_t name = at + mark.size(), nameEnd = text.find('`', name);
    const size_t body = text.find('\n', name);
    at = text.find(mark, name);
    const size_t end = std::min({at, text.find("\n## ", name), text.size()});
    if (nameEnd < body && body < end) {
      const std::string key(text.substr(name, nameEnd - name));
      sections[key] =
          "### " + key + "\n" + std::string(text.substr(body, end - body));
    }
  }
  return sections;
}

std::string documentOf(const std::string &operation) {
  static const auto sections = [] {
    std::map<std::string, std::string> all;
    for (std::string_view document : documents)
      all.merge(sectionsOf(document));
    return all;
  }();
  auto at = sections.find(operation);
  return at == sections.end() ? "" : at->second;
}

std::string nameAt(std::string_view text, size_t line, size_t character) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      return "";
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  auto isName = [&](size_t at) {
    const auto c = static_cast<unsigned char>(text[at]);
    return std::isalnum(c) || c == '_' || c == '.';
  };
  if (character >= text.size() || !isName(character))
    return "";
  size_t first = character, last = character;
  while (first > 0 && isName(first - 1))
    --first;
  while (last + 1 < text.size() && isName(last + 1))
    ++last;
  return std::string(text.substr(first, last - first + 1));
}

} // namespace mgpu::tools::lsp
