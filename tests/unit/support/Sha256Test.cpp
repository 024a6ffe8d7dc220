// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Sha256.h"
#include "support/BuildId.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

using namespace mgpu;

namespace {

TEST(Sha256, IsThatOfTheStandard) {
  // FIPS 180-2, appendix B, and the empty message.
  EXPECT_EQ(Sha256().add("abc").hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256()
                .add("abcdbcdecdefdefgefghfghighijhijk")
                .add("ijkljklmklmnlmnomnopnopq")
                .hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256().hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256().add(std::string(1000000, 'a')).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_NE(Sha256().addField("ab").addField("c").hex(),
            Sha256().addField("a").addField("bc").hex());
}

TEST(Sha256, BothWaysToDoABlockAgree) {
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(64 * 9 + 1);
  for (uint8_t &byte : bytes)
    byte = uint8_t(random());
  for (size_t count : {0, 1, 2, 9}) {
    uint32_t a[8], b[8];
    for (int k = 0; k < 8; ++k)
      a[k] = b[k] = uint32_t(random());
    sha256Portable(a, bytes.data() + 1, count);
    if (!sha256Native(b, bytes.data() + 1, count))
      GTEST_SKIP() << "this processor has no instructions for SHA-256";
    EXPECT_TRUE(std::equal(a, a + 8, b)) << count;
  }
}

TEST(Sha256, DoesNotSeeWhereAPieceEnds) {
  std::string text;
  for (int k = 0; k < 300; ++k)
    text += char(k * 7);
  const std::string whole = Sha256().add(text).hex();
  for (size_t cut : {0, 1, 55, 56, 63, 64, 65, 127, 128, 200, 300}) {
    Sha256 hash;
    hash.add(text.substr(0, cut)).add("").add(text.substr(cut));
    EXPECT_EQ(hash.hex(), whole) << cut;
  }
}

const int constantHere = 1;

TEST(BuildId, IsThatOfTheFileAnAddressIsLoadedFrom) {
  int onTheStack = 0;
  EXPECT_EQ(buildIdOf(&onTheStack), "");
  EXPECT_EQ(buildIdOf(nullptr), "");
  // This program is linked with --build-id=sha1, Debian's C library too.
  EXPECT_EQ(buildIdOf(&constantHere).size(), 40u);
  EXPECT_EQ(buildIdOf(&constantHere),
            buildIdOf(reinterpret_cast<const void *>(&buildIdOf)));
  EXPECT_NE(buildIdOf(dlsym(RTLD_NEXT, "getpid")), buildIdOf(&constantHere));
}

} // namespace
