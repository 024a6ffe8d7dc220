// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/SharedItems.h"

#include <gtest/gtest.h>

#include <string>

using namespace mgpu;

namespace {

using Words = SharedItems<std::string>;

/// Without making it the vector's own.
const std::string *addressOf(const Words &words, size_t i) { return &words[i]; }

TEST(SharedItems, CopiesShareUntilOneChanges) {
  Words words{"a", "b", "c"};
  Words copy = words;
  EXPECT_EQ(addressOf(words, 1), addressOf(copy, 1));
  copy[1] = "x";
  EXPECT_EQ(std::as_const(words)[1], "b");
  EXPECT_EQ(std::as_const(copy)[1], "x");
  EXPECT_NE(addressOf(words, 1), addressOf(copy, 1));
  EXPECT_EQ(addressOf(words, 0), addressOf(copy, 0));
  EXPECT_FALSE(words == copy);
  copy[1] = "b"; // equal again, though not the same
  EXPECT_TRUE(words == copy);
  const std::string *own = addressOf(copy, 1);
  copy[1] += "!"; // its own already
  EXPECT_EQ(addressOf(copy, 1), own);
}

TEST(SharedItems, IteratorsChangeOnlyTheirOwn) {
  Words words{"a", "b"};
  Words copy = words;
  for (std::string &word : copy)
    word += "'";
  copy.back() += "'";
  copy.front() += "-";
  EXPECT_EQ(words, (Words{"a", "b"}));
  EXPECT_EQ(copy, (Words{"a'-", "b''"}));
  std::sort(copy.begin(), copy.end(), std::greater<>());
  EXPECT_EQ(copy, (Words{"b''", "a'-"}));
  EXPECT_EQ(words.end() - words.begin(), 2);
}

TEST(SharedItems, AreVectors) {
  Words words;
  EXPECT_TRUE(words.empty());
  words.push_back("a");
  words.emplace_back(2, 'b');
  Words other;
  other.share(words, 1);
  EXPECT_EQ(addressOf(words, 1), addressOf(other, 0));
  words.insert(words.begin(), "0");
  EXPECT_EQ(words, (Words{"0", "a", "bb"}));
  words.erase(words.begin() + 1);
  EXPECT_EQ(words, (Words{"0", "bb"}));
  words.resize(3);
  EXPECT_EQ(words, (Words{"0", "bb", ""}));
  words.resize(1);
  EXPECT_EQ(words.size(), 1u);
  EXPECT_EQ(other, Words{"bb"});
}

} // namespace
