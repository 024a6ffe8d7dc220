// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Sha256.h"

#include <gtest/gtest.h>

namespace mgpu {
namespace {

// The test cases of RFC 4231: 5 is of a digest that is cut.
TEST(Hmac, GivesTheDigestsOfRfc4231) {
  auto bytes = [](size_t count, int value) {
    return std::string(count, char(value));
  };
  std::string counting;
  for (int k = 1; k <= 25; ++k)
    counting += char(k);
  const struct {
    std::string key, data, digest;
  } cases[] = {
      {bytes(20, 0x0b), "Hi There",
       "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?",
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {bytes(20, 0xaa), bytes(50, 0xdd),
       "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {counting, bytes(50, 0xcd),
       "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
      {bytes(20, 0x0c), "Test With Truncation",
       "a3b6167473100ee06e0c796c2955552b"},
      {bytes(131, 0xaa),
       "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {bytes(131, 0xaa),
       "This is a test using a larger than block-size key and a larger than "
       "block-size data. The key needs to be hashed before being used by the "
       "HMAC algorithm.",
       "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"}};
  for (const auto &each : cases) {
    const Digest got = hmacSha256(std::as_bytes(std::span(each.key)),
                                  std::as_bytes(std::span(each.data)));
    EXPECT_EQ(toHex(got).substr(0, each.digest.size()), each.digest)
        << each.data;
  }
}

TEST(Hmac, DigestsThatDifferAnywhereAreNotTheSame) {
  const Digest one = hmacSha256({}, {});
  EXPECT_TRUE(isSame(one, hmacSha256({}, {})));
  for (size_t k = 0; k < one.size() * 8; ++k) {
    Digest other = one;
    other[k / 8] ^= std::byte(1 << k % 8);
    EXPECT_FALSE(isSame(one, other)) << k;
  }
}

TEST(Hmac, HexadecimalDigitsAreRead) {
  const Bytes bytes{std::byte(0), std::byte(0x7f), std::byte(0xff)};
  EXPECT_EQ(toHex(bytes), "007fff");
  EXPECT_EQ(fromHex("007FfF"), bytes);
  EXPECT_EQ(fromHex(""), Bytes());
  for (const char *wrong : {"0", "0g", " 00", "00 ", "0x00", "-1", "00\n"})
    EXPECT_FALSE(fromHex(wrong)) << wrong;
}

} // namespace
} // namespace mgpu
