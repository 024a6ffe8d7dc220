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
