// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Sha256.h"

#include <algorithm>
#include <bit>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>

#ifdef __x86_64__
#endif

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

// FIPS 180-4, section 4.2.2.
alignas(16) static constexpr uint32_t roundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void portableBlock(uint32_t *state, const uint8_t *bytes) {
  uint32_t w[64];
  for (int t = 0; t < 16; ++t)
    w[t] = uint32_t(bytes[4 * t]) << 24 | uint32_t(bytes[4 * t + 1]) << 16 |
           uint32_t(bytes[4 * t + 2]) << 8 | bytes[4 * t + 3];
  for (int t = 16; t < 64; ++t) {
    uint32_t s0 =
        std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    uint32_t s1 =
        std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  uint32_t v[8]; // a to h
  std::memcpy(v, state, sizeof v);
  for (int t = 0; t < 64; ++t) {
    uint32_t s1 =
        std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    uint32_t t1 = v[7] + s1 + choice + roundConstants[t] + w[t];
    uint32_t s0 =
        std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    std::memmove(v + 1, v, 7 * sizeof v[0]);
    v[4] += t1;
    v[0] = t1 + s0 + majority;
  }
  for (int k = 0; k < 8; ++k)
    state[k] += v[k];
}

void sha256Portable(uint32_t *state, const uint8_t *bytes, size_t count) {
  for (size_t k = 0; k < count; ++k)
    portableBlock(state, bytes + 64 * k);
}

#ifdef __x86_64__

// Intel 64 and IA-32 manual, volume 2: CPUID leaf 7, EBX bit 29 is SHA; leaf 1,
// ECX bits 9 and 19 are SSSE3 and SSE4.1, which the shuffles below are of.
static bool hasInstructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 9 & 1) || !(c >> 19 & 1))
    return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

// The instructions take the state as the words a b e f and c d g h, the first
// in the highest lane, and do two rounds at a time.
__attribute__((target("sha,sse4.1,ssse3"))) static void
nativeBlocks(uint32_t *state, const uint8_t *bytes, size_t count) {
  auto *words = reinterpret_cast<__m128i *>(state);
  const __m128i swapped =
      _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
  for (; count > 0; --count, bytes += 64) {
    const __m128i abefBefore = abef, cdghBefore = cdgh;
    __m128i w[4]; // of the last 16 rounds
    for (int four = 0; four < 16; ++four) {
      __m128i &here = w[four % 4];
      if (four < 4) {
        here = _mm_shuffle_epi8(
            _mm_loadu_si128(reinterpret_cast<const __m128i *>(bytes) + four),
            swapped);
      } else {
        const __m128i last = w[(four + 3) % 4];
        here = _mm_sha256msg1_epu32(here, w[(four + 1) % 4]);
        here = _mm_add_epi32(here, _mm_alignr_epi8(last, w[(four + 2) % 4], 4));
        here = _mm_sha256msg2_epu32(here, last);
      }
      const __m128i sum = _mm_add_epi32(
          here, _mm_load_si128(
                    reinterpret_cast<const __m128i *>(roundConstants) + four));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    }
    abef = _mm_add_epi32(abef, abefBefore);
    cdgh = _mm_add_epi32(cdgh, cdghBefore);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);
  high = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(high, low, 8));
}

bool sha256Native(uint32_t *state, const uint8_t *bytes, size_t count) {
  static const bool has = hasInstructions();
  if (has)
    nativeBlocks(state, bytes, count);
  return has;
}

#else

bool sha256Native(uint32_t *, const uint8_t *, size_t) { return false; }

#endif

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
