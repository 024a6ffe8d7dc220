// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/CheckText.h"
#include "planner/import/UnknownWords.h"

#include <gtest/gtest.h>
#include <string>

namespace mgpu::planner {
namespace {

std::string repeat(const std::string &text, size_t times) {
  std::string all;
  for (size_t k = 0; k < times; ++k)
    all += text;
  return all;
}

std::string message(const std::string &text) {
  auto checked = checkProgramText(text, "f");
  return checked ? "fine" : checked.error().message;
}

const std::string tooDeep = "'f' is nested too deep at ",
                  limits = ": at most 256 brackets may be open, and an "
                           "expression have 1024 operators";

TEST(UnknownWords, WhatIsMadeOfStablehloIsSaidOfIt) {
  const std::string words =
      "'stablehlo.scatter' op has a form which this version does not read; "
      "write it in other operations, or report it (docs/limits.md)";
  EXPECT_EQ(aboutMade("'scf.for' op not bufferizable", "stablehlo.scatter %x"),
            words);
  EXPECT_EQ(aboutMade("'mgpu.memcpy' op overflows", "\"stablehlo.scatter\"(%x"),
            words);
  EXPECT_TRUE(saysNotRead(words));
  EXPECT_EQ(aboutMade("'scf.for' op not bufferizable", "scf.for %i ="), "");
  EXPECT_EQ(aboutMade("'stablehlo.add' op x", "stablehlo.add %x"), "");
  EXPECT_EQ(aboutMade("'spmd.permute' op x", "stablehlo.scatter %x"), "");
}

TEST(CheckText, NestingIsBounded) {
  EXPECT_EQ(message(repeat("{", 256) + repeat("}", 256)), "fine");
  EXPECT_EQ(message("\n" + repeat("module {", 257)),
            tooDeep + "line 2, column 2056" + limits);
  for (const char *bracket : {"(", "[", "tuple<", "({"})
    EXPECT_TRUE(message(repeat(bracket, 300)).starts_with(tooDeep)) << bracket;
  // One after the other is not nested, whatever is left open or arrows.
  EXPECT_EQ(message(repeat("{ [ < ( x < y -> z ) ] }", 5000)), "fine");
  EXPECT_EQ(message(repeat(")]}>", 300)), "fine");
}

TEST(CheckText, StringsAndCommentsAreNoNesting) {
  EXPECT_EQ(message("\"" + repeat("{", 300) + "\\\"" + repeat("{", 300) + "\""),
            "fine");
  EXPECT_EQ(message("// " + repeat("{", 300) + "\n" + repeat("{", 200)),
            "fine");
  EXPECT_TRUE(message("\"{\" // {\n" + repeat("{", 257)).starts_with(tooDeep));
  // A string ends with its line at the latest.
  EXPECT_TRUE(message("\"\n" + repeat("{", 257)).starts_with(tooDeep));
}

TEST(CheckText, OperatorsNestAsWell) {
  for (const char *term : {"d0 + ", "-", "d0 * ", "d0 mod ", "d0 floordiv "}) {
    EXPECT_EQ(message("(" + repeat(term, 1024) + "d0)"), "fine") << term;
    EXPECT_TRUE(message("(" + repeat(term, 1025) + "d0)").starts_with(tooDeep))
        << term;
  }
  EXPECT_EQ(message(repeat("%x = arith.constant -1 : i32\n", 5000)), "fine");
  EXPECT_EQ(message("dense<[" + repeat("-1, ", 5000) + "-1]>"), "fine");
}

TEST(CheckText, AliasesCountAsWhatTheyStandFor) {
  auto chain = [](size_t length) {
    std::string text = "#a0 = [1]\n";
    for (size_t k = 1; k < length; ++k)
      text +=
          "#a" + std::to_string(k) + " = [#a" + std::to_string(k - 1) + "]\n";
    return text;
  };
  EXPECT_EQ(message(chain(250)), "fine");
  EXPECT_TRUE(message(chain(300)).starts_with(tooDeep));
  // Many, each by itself.
  std::string wide;
  for (size_t k = 0; k < 5000; ++k)
    wide += "#w" + std::to_string(k) + " = loc(\"a\":1:2)\n";
  EXPECT_EQ(message(wide + "func.func @main(%x: i32 loc(#w1)) {"), "fine");
}

TEST(CheckText, BytesAreNoText) {
  EXPECT_EQ(message("ML\xefR\x06"),
            "'f' is MLIR bytecode, not a program's text: give it as a file or "
            "on the standard input, where it is decoded");
  EXPECT_EQ(message(std::string("\xfd\x37zXZ\0\0", 7)),
            "'f' is compressed with xz, not a program's text: `xz -d` unpacks "
            "it");
  EXPECT_EQ(message("\x08\x08\x12\x07pytorch\x1a\x06"
                    "1.13.0:"),
            "'f' is an ONNX model, which is not read: give the PyTorch module "
            "as torch.export.save writes it, or the model lowered to linalg by "
            "torch-mlir (docs/from-pytorch.md)");
  EXPECT_EQ(message("\x08\x08func"),
            "'f' is not a program's text: line 1, column 1 holds the byte "
            "0x08");
  EXPECT_EQ(message(std::string("func\n\0", 6)),
            "'f' is not a program's text: line 2, column 1 holds the byte "
            "0x00");
  EXPECT_EQ(message("// \x1b[31m"),
            "'f' is not a program's text: line 1, column 4 holds the byte "
            "0x1b");
  EXPECT_EQ(message("\"gr\xc3\xbc\xc3\x9f\"\t\r\n"), "fine");
}

} // namespace
} // namespace mgpu::planner
