// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/PtxasLog.h"

#include <charconv>

namespace mgpu::kernels {

/// The number right before `unit` ("24 registers"), 0 where there is none.
static uint32_t countBefore(std::string_view line, std::string_view unit) {
  size_t at = line.find(unit);
  if (at == std::string_view::npos)
    return 0;
  size_t first = at;
  while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9')
    --first;
  uint32_t value = 0;
  std::from_chars(line.data() + first, line.data() + at, value);
  return value;
}

/// The text between the first pair of quotes after `word`.
static std::string_view quotedAfter(std::string_view line,
                                    std::string_view word) {
  size_t at = line.find(word);
  if (at == std::string_view::npos)
    return {};
  size_t first = line.find('\'', at + word.size());
  size_t last =
      first == std::string_view::npos ? first : line.find('\'', first + 1);
  if (last == std::string_view::npos)
    return {};
  return line.substr(first + 1, last - first - 1);
}

std::vector<EntryUsage> parsePtxasLog(std::string_view log) {
  std::vector<EntryUsage> entries;
  for (size_t at = 0; at < log.size();) {
    size_t end = std::min(log.find('\n', at), log.size());
    std::string_view line = log.substr(at, end - at);
    at = end + 1;
    if (auto name = quotedAfter(line, "Compiling entry function");
        !name.empty()) {
      entries.emplace_back().name = name;
    } else if (entries.empty()) {
      continue;
    } else if (line.find("stack frame") != std::string_view::npos) {
      entries.back().stackBytes = countBefore(line, " bytes stack frame");
      entries.back().spillStoreBytes = countBefore(line, " bytes spill stores");
      entries.back().spillLoadBytes = countBefore(line, " bytes spill loads");
    } else if (line.find(" registers") != std::string_view::npos) {
      entries.back().registers = countBefore(line, " registers");
      entries.back().barriers = countBefore(line, " barriers");
      entries.back().sharedBytes = countBefore(line, " bytes smem");
      entries.back().constantBytes = countBefore(line, " bytes cmem[0]");
    }
  }
  return entries;
}

bool hasWarning(std::string_view log) {
  return log.find("warning") != std::string_view::npos;
}

} // namespace mgpu::kernels
