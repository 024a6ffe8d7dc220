// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_PLURAL_H
#define MGPU_SUPPORT_PLURAL_H

#include <cstdint>
#include <string>
#include <string_view>

namespace mgpu {

/// "1 node", "2 nodes"; `many` is the plural of a noun whose own is not the
/// noun and an s.
inline std::string counted(uint64_t count, std::string_view noun,
                           std::string_view many = {}) {
  std::string text = std::to_string(count) + " ";
  if (count == 1 || many.empty())
    text += noun;
  else
    text += many;
  if (count != 1 && many.empty())
    text += 's';
  return text;
}

} // namespace mgpu

#endif // MGPU_SUPPORT_PLURAL_H
