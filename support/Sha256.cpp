// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Sha256.h"

#include "support/Sha256Blocks.h"

#include <algorithm>
#include <cstring>

namespace mgpu {

void Sha256::blocks(const uint8_t *bytes, size_t count) {
  if (!sha256Native(state, bytes, count))
    sha256Portable(state, bytes, count);
}

Sha256 &Sha256::add(std::span<const std::byte> bytes) {
  if (bytes.empty())
    return *this;
  auto *next = reinterpret_cast<const uint8_t *>(bytes.data());
  size_t rest = bytes.size(), held = length % 64;
  length += rest;
  if (held > 0) {
    size_t taken = std::min(rest, 64 - held);
    std::memcpy(pending + held, next, taken);
    next += taken;
    rest -= taken;
    if (held + taken < 64)
      return *this;
    blocks(pending, 1);
  }
  blocks(next, rest / 64);
  if (rest % 64 > 0)
    std::memcpy(pending, next + rest / 64 * 64, rest % 64);
  return *this;
}

Sha256 &Sha256::addField(std::string_view text) {
  return add(std::to_string(text.size())).add(":").add(text);
}

std::string Sha256::hex() {
  uint64_t bits = length * 8;
  std::string padding(1, '\x80');
  padding.append((119 - length % 64) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8)
    padding.push_back(char(bits >> shift));
  add(padding);
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4)
      text.push_back(digits[word >> shift & 15]);
  return text;
}

} // namespace mgpu
