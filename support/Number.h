// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_NUMBER_H
#define MGPU_SUPPORT_NUMBER_H

#include <charconv>
#include <optional>
#include <string_view>

namespace mgpu {

/// All of `text` as a number; none if it is not one or the type is too small.
template <typename T>
std::optional<T> numberFrom(std::string_view text) {
  T value{};
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last ? std::optional(value)
                                             : std::nullopt;
}

} // namespace mgpu

#endif // MGPU_SUPPORT_NUMBER_H
