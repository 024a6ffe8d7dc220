// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_SHA256_H
#define MGPU_SUPPORT_SHA256_H

// Content addresses. The runtime half has no LLVM to ask.

#include "support/Bytes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mgpu {

/// SHA-256 (FIPS 180-4) of what was added, in pieces.
class Sha256 {
public:
  Sha256 &add(std::span<const std::byte> bytes);
  Sha256 &add(std::string_view text) {
    return add(std::as_bytes(std::span(text.data(), text.size())));
  }
  /// Adds the text and its length, so that no two lists of fields are alike.
  Sha256 &addField(std::string_view text);
  /// 64 lower-case hexadecimal digits. Nothing may be added afterwards.
  std::string hex();

private:
  void blocks(const uint8_t *bytes, size_t count);

  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t pending[64] = {};
  uint64_t length = 0;
};

/// The step of SHA-256 (FIPS 180-4, section 6.2.2) for `count` blocks of 64
/// bytes each, on the eight words of `state`.
void sha256Portable(uint32_t *state, const uint8_t *bytes, size_t count);

/// Hashes blocks with the processor's own instructions; false, and nothing
/// done, where it has none.
bool sha256Native(uint32_t *state, const uint8_t *bytes, size_t count);

// HMAC, by which two processes prove to each other that they share a secret.

using Digest = std::array<std::byte, 32>;

/// HMAC-SHA-256 (RFC 2104, FIPS 198-1).
Digest hmacSha256(std::span<const std::byte> key,
                  std::span<const std::byte> message);

/// Whether two digests are alike, in a time that does not say where they
/// differ.
bool isSame(const Digest &a, const Digest &b);

/// Two lower-case hexadecimal digits for each byte.
std::string toHex(std::span<const std::byte> bytes);
/// Reads what toHex() wrote, also in upper case; none for any other text.
std::optional<Bytes> fromHex(std::string_view text);

} // namespace mgpu

#endif // MGPU_SUPPORT_SHA256_H
