// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/BlobCache.h"
#include "support/Sha256.h"

#include <gtest/gtest.h>

namespace mgpu::device {
namespace {

Blob blobOf(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return Blob(bytes.begin(), bytes.end());
}

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

TEST(MemoryBlobCache, FindsWhatWasStored) {
  MemoryBlobCache cache;
  std::string key = Sha256().add("key").hex();
  EXPECT_FALSE(cache.find(key));
  cache.store(key, blobOf("value"));
  EXPECT_EQ(cache.find(key), blobOf("value"));
  cache.store(key, blobOf(""));
  EXPECT_EQ(cache.find(key), blobOf(""));
}

} // namespace
} // namespace mgpu::device
