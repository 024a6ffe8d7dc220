// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Hmac.h"

#include "support/Sha256.h"

namespace mgpu {

static Digest digestOf(std::span<const std::byte> pad,
                       std::span<const std::byte> rest) {
  const Bytes bytes = *fromHex(Sha256().add(pad).add(rest).hex());
  Digest out;
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

Digest hmacSha256(std::span<const std::byte> key,
                  std::span<const std::byte> message) {
  std::array<std::byte, 64> block{}; // SHA-256's; a shorter key ends in zeros
  Digest hashed;
  if (key.size() > block.size()) {
    hashed = digestOf(key, {});
    key = hashed;
  }
  std::copy(key.begin(), key.end(), block.begin());
  auto padded = [&](uint8_t pad) {
    std::array<std::byte, 64> out = block;
    for (std::byte &each : out)
      each ^= std::byte(pad);
    return out;
  };
  return digestOf(padded(0x5c), digestOf(padded(0x36), message));
}

bool isSame(const Digest &a, const Digest &b) {
  std::byte differ{};
  for (size_t k = 0; k < a.size(); ++k)
    differ |= a[k] ^ b[k];
  return differ == std::byte(0);
}

std::string toHex(std::span<const std::byte> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (std::byte each : bytes) {
    out += digits[uint8_t(each) >> 4];
    out += digits[uint8_t(each) & 15];
  }
  return out;
}

std::optional<Bytes> fromHex(std::string_view text) {
  auto valueOf = [](char c) {
    if (c >= '0' && c <= '9')
      return c - '0';
    if (c >= 'a' && c <= 'f')
      return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (text.size() % 2 != 0)
    return std::nullopt;
  Bytes out;
  for (size_t k = 0; k < text.size(); k += 2) {
    const int high = valueOf(text[k]), low = valueOf(text[k + 1]);
    if (high < 0 || low < 0)
      return std::nullopt;
    out.push_back(std::byte(high * 16 + low));
  }
  return out;
}

} // namespace mgpu
