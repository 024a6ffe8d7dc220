// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Escape.h"

#include <cstdint>
#include <fmt/format.h>

namespace mgpu {

namespace {

/// A character at the front of a text: its bytes, and its number.
struct Utf8 {
  size_t bytes = 0; ///< 0: it is none
  uint32_t number = 0;
};

Utf8 firstOf(std::string_view text) {
  const auto lead = uint8_t(text.front());
  if (lead < 0x80)
    return {1, lead};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes)
    return {};
  uint32_t number = lead & (0xff >> (bytes + 1));
  for (char c : text.substr(1, bytes - 1)) {
    if ((uint8_t(c) & 0xc0) != 0x80)
      return {};
    number = number << 6 | (uint8_t(c) & 0x3f);
  }
  static constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool isSurrogate = number >= 0xd800 && number < 0xe000;
  if (number < least[bytes] || number > 0x10ffff || isSurrogate)
    return {};
  return {bytes, number};
}

bool isPlain(uint32_t number) {
  auto isIn = [&](uint32_t first, uint32_t last) {
    return number >= first && number <= last;
  };
  return !isIn(0, 0x1f) && !isIn(0x7f, 0x9f) && !isIn(0x200e, 0x200f) &&
         !isIn(0x2028, 0x202e) && !isIn(0x2066, 0x2069);
}

} // namespace

std::string escaped(std::string_view text, size_t most) {
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    if (out.size() >= most)
      return out + "...";
    const Utf8 first = firstOf(rest);
    const size_t bytes = first.bytes > 0 ? first.bytes : 1;
    if (first.bytes > 0 && isPlain(first.number))
      out += rest.substr(0, bytes);
    else
      for (char c : rest.substr(0, bytes))
        out += fmt::format("\\x{:02x}", uint8_t(c));
    rest.remove_prefix(bytes);
  }
  return out;
}

} // namespace mgpu
