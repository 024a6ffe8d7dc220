// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Bytes.h"

#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace mgpu {
namespace {

Bytes message() {
  Bytes out;
  append(out, std::string("a plan"));
  append(out, std::string());
  append(out, uint32_t(7));
  append(out, std::string("kernels"));
  return out;
}

TEST(Bytes, AreReadAsTheyWereWritten) {
  const Bytes bytes = message();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.text(), "a plan");
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.take<uint32_t>(), 7u);
  EXPECT_EQ(reader.text(), "kernels");
  EXPECT_TRUE(reader.isEmpty());
}

/// A size is counted against the bytes that stand behind it, and not against
/// those that hold it.
TEST(Bytes, OfAPeerThatLiesAboutSizesEndWhereTheyEnd) {
  std::mt19937_64 random(1);
  const Bytes whole = message();
  for (size_t length = 0; length <= whole.size(); ++length)
    for (const uint64_t size :
         {uint64_t(0), uint64_t(1), uint64_t(length), uint64_t(length) - 8,
          random(), std::numeric_limits<uint64_t>::max()})
      for (size_t at = 0; at + sizeof size <= length; ++at) {
        Bytes changed(whole.begin(), whole.begin() + ptrdiff_t(length));
        std::memcpy(changed.data() + at, &size, sizeof size);
        ByteReader reader(changed);
        size_t left = changed.size();
        for (int k = 0; k < 6; ++k) {
          const std::string text = reader.text();
          EXPECT_LE(text.size(), left);
          ASSERT_LE(reader.rest().size(), left);
          left = reader.rest().size();
        }
      }
}

} // namespace
} // namespace mgpu
