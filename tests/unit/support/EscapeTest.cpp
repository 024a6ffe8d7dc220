// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Escape.h"

#include <gtest/gtest.h>

namespace mgpu {
namespace {

TEST(Escape, WhatATerminalWouldObeyIsWrittenOut) {
  const std::string nothing("a\0b", 3);
  const struct {
    std::string given, wanted;
  } cases[] = {
      {"rank 1: 'a\\b' ~", "rank 1: 'a\\b' ~"},
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
       "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\x1b[2J", "\\x1b[2J"},
      {"a\nb\r\t\x7f", "a\\x0ab\\x0d\\x09\\x7f"},
      {nothing, "a\\x00b"},
      {"\xc2\x9b"
       "2J",
       "\\xc2\\x9b2J"},                    // CSI in one character
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, // from right to left
      {"\xff\xc3(", "\\xff\\xc3("},        // no UTF-8
      {"\xc0\xaf \xe0\x80\xaf", "\\xc0\\xaf \\xe0\\x80\\xaf"}, // too long
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                     // half of UTF-16
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},            // past the last
      {"\xe2\x82", "\\xe2\\x82"}};                             // cut
  for (const auto &each : cases)
    EXPECT_EQ(escaped(each.given), each.wanted);
}

TEST(Escape, LongTextsAreCut) {
  EXPECT_EQ(escaped("abcd", 4), "abcd");
  EXPECT_EQ(escaped("abcde", 4), "abcd...");
  EXPECT_LT(escaped(std::string(1 << 20, '\x1b')).size(), 4200u);
}

} // namespace
} // namespace mgpu
