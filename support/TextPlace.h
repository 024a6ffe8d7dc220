// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_TEXTPLACE_H
#define MGPU_SUPPORT_TEXTPLACE_H

#include <algorithm>
#include <string>
#include <string_view>

namespace mgpu {

/// Where byte `at` of `text` is, both counted from 1: "line 2, column 7".
inline std::string placeIn(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const size_t line = size_t(std::count(before.begin(), before.end(), '\n'));
  const size_t start = before.rfind('\n') + 1; // npos + 1 is 0
  return "line " + std::to_string(line + 1) + ", column " +
         std::to_string(before.size() - start + 1);
}

} // namespace mgpu

#endif // MGPU_SUPPORT_TEXTPLACE_H
