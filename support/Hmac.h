// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_HMAC_H
#define MGPU_SUPPORT_HMAC_H

// HMAC, by which two processes prove to each other that they share a secret.

#include "support/Bytes.h"

#include <array>
#include <optional>

namespace mgpu {

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

#endif // MGPU_SUPPORT_HMAC_H
