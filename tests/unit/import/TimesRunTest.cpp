// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How often a launch adds, counted without running it, against loops here.
#include "ImportText.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

namespace mgpu::planner {
namespace {

/// Additions of a launch whose threads run `body`, with %t the id of the
/// thread along x, %i that in the grid, %ty that along y, and numbers %n, %m
/// and %s.
double additions(int64_t grid, int64_t block, int64_t blockY, int64_t n,
                 int64_t m, int64_t s, const std::string &body) {
  std::string text;
  auto constant = [&](const char *name, int64_t value) {
    text += fmt::format("  %{} = arith.constant {} : index\n", name, value);
  };
  constant("grid", grid);
  constant("block", block);
  constant("block_y", blockY);
  constant("n", n);
  constant("m", m);
  constant("s", s);
  text += "  mgpu.launch %d0 grid(%grid) block(%block, %block_y) {\n"
          "    %t = gpu.thread_id x\n"
          "    %ty = gpu.thread_id y\n"
          "    %i = gpu.global_id x\n" +
          body + "  }\n";
  Imported imported = importText(program(text));
  if (!imported.program) {
    ADD_FAILURE() << imported.text() << text;
    return -1;
  }
  return kernelNodes(imported.dag()).at(0)->flops;
}

const std::string add = "      %v = arith.addf %one, %one : f32\n";

std::string guarded(const std::string &condition,
                    const std::string &inner = add) {
  return "    " + condition + "\n    scf.if %c {\n" + inner + "    }\n";
}

TEST(TimesRun, GuardsLetAShareOfTheThreadsThrough) {
  const std::string below = guarded("%c = arith.cmpi slt, %i, %n : index");
  EXPECT_EQ(additions(1, 1024, 1, 65, 0, 1, below), 65);
  EXPECT_EQ(additions(2, 64, 1, 65, 0, 1, below), 65);
  EXPECT_EQ(additions(2, 64, 3, 65, 0, 1, below), 3 * 65);
  EXPECT_EQ(additions(2, 64, 1, 1000, 0, 1, below), 128);
  EXPECT_EQ(additions(2, 64, 1, -5, 0, 1, below), 0);
  for (const char *same : {"sgt, %n, %i", "ult, %i, %n", "ugt, %n, %i"})
    EXPECT_EQ(
        additions(2, 64, 1, 65, 0, 1,
                  guarded(fmt::format("%c = arith.cmpi {} : index", same))),
        65);
  EXPECT_EQ(additions(2, 64, 1, 65, 0, 1,
                      guarded("%c = arith.cmpi eq, %i, %n : index")),
            1);
  // The other branch, two guards of one id, two of different ones.
  EXPECT_EQ(additions(2, 64, 1, 65, 0, 1,
                      "    %c = arith.cmpi slt, %i, %n : index\n"
                      "    scf.if %c {\n    } else {\n" +
                          add + "    }\n"),
            63);
  EXPECT_EQ(additions(2, 64, 1, 65, 10, 1,
                      guarded("%low = arith.cmpi slt, %i, %n : index\n"
                              "    %high = arith.cmpi sge, %i, %m : index\n"
                              "    %c = arith.andi %low, %high : i1")),
            55);
  EXPECT_EQ(additions(2, 64, 8, 65, 3, 1,
                      guarded("%low = arith.cmpi slt, %i, %n : index\n"
                              "    %high = arith.cmpi slt, %ty, %m : index\n"
                              "    %c = arith.andi %low, %high : i1")),
            65 * 3);
  // What is not known is taken to run.
  EXPECT_EQ(additions(2, 64, 1, 65, 0, 1,
                      guarded("%r = arith.muli %i, %i : index\n"
                              "    %c = arith.cmpi eq, %r, %n : index")),
            128);
}

struct Picker {
  std::mt19937_64 random;
  int64_t operator()(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
};

TEST(TimesRun, TripsDependOnTheThread) {
  Picker pick{std::mt19937_64(7)};
  for (int round = 0; round < 200; ++round) {
    const int64_t grid = pick(1, 5), block = pick(1, 70), n = pick(-20, 300),
                  m = pick(1, 200), s = pick(1, 90);
    const bool byBlock = pick(0, 1), isUpper = pick(0, 1);
    const std::string loop =
        fmt::format("    scf.for %k = %{} to %{} step %s {{\n{}    }}\n",
                    isUpper   ? "n"
                    : byBlock ? "i"
                              : "t",
                    !isUpper  ? "n"
                    : byBlock ? "i"
                              : "t",
                    add);
    int64_t all = 0;
    for (int64_t b = 0; b < grid; ++b)
      for (int64_t t = 0; t < block; ++t) {
        const int64_t id = byBlock ? b * block + t : t;
        const int64_t low = isUpper ? n : id, high = isUpper ? id : n;
        for (int64_t k = low; k < high; k += s)
          ++all;
      }
    EXPECT_NEAR(additions(grid, block, 1, n, m, s, loop), double(all),
                1e-9 * double(all))
        << grid << " blocks of " << block << ", n " << n << ", step " << s
        << "\n"
        << loop;
  }
}

/// What a guard leaves of an id decides how long the loops within are.
TEST(TimesRun, GuardsAndLoopsOfOneId) {
  Picker pick{std::mt19937_64(11)};
  const std::string loop =
      "      scf.for %k = %i to %m step %one_step {\n" + add + "      }\n";
  for (int round = 0; round < 200; ++round) {
    const int64_t grid = pick(1, 4), block = pick(1, 40), n = pick(-5, 150),
                  m = pick(0, 160), s = pick(1, 3);
    const bool isBelow = pick(0, 1);
    // s i < n, or not, around k from i to m.
    const std::string text =
        "    %one_step = arith.constant 1 : index\n"
        "    %scaled = arith.muli %i, %s : index\n"
        "    %c = arith.cmpi slt, %scaled, %n : index\n" +
        fmt::format("    scf.if %c {{\n{}    }} else {{\n{}    }}\n",
                    isBelow ? loop : "", isBelow ? "" : loop);
    int64_t all = 0;
    for (int64_t i = 0; i < grid * block; ++i)
      if ((s * i < n) == isBelow)
        all += std::max<int64_t>(m - i, 0);
    EXPECT_NEAR(additions(grid, block, 1, n, m, s, text), double(all),
                1e-9 * double(all))
        << grid << " blocks of " << block << ", n " << n << ", m " << m
        << ", s " << s << (isBelow ? "" : ", else");
  }
}

TEST(TimesRun, WhatNeverRunsAndWhatNeverEnds) {
  EXPECT_EQ(additions(2, 64, 1, 65, 0, 1, guarded("%c = arith.constant false")),
            0);
  EXPECT_EQ(additions(2, 64, 1, 65, 70, 1,
                      guarded("%c = arith.cmpi sgt, %n, %m : index")),
            0);
  // More than any number: it is finite all the same.
  std::string loops, ends;
  for (int k = 0; k < 30; ++k) {
    loops += fmt::format("    scf.for %k{} = %m to %n step %s {{\n", k);
    ends += "    }\n";
  }
  const double most =
      additions(1, 1, 1, int64_t(1) << 40, 0, 1, loops + add + ends);
  EXPECT_GT(most, 1e290);
  EXPECT_LT(most, 1e300);
}

/// The loops are a triangle in a counted loop behind a guard.
TEST(TimesRun, LoopsInLoopsMultiply) {
  const std::string triangle =
      "    %zero = arith.constant 0 : index\n"
      "    %step = arith.constant 1 : index\n" +
      guarded("%c = arith.cmpi slt, %i, %n : index",
              "      scf.for %k = %zero to %m step %step {\n"
              "        scf.for %l = %zero to %k step %step {\n" +
                  add + "        }\n      }\n");
  EXPECT_EQ(additions(3, 32, 1, 70, 20, 1, triangle), 70 * (20 * 19 / 2));
}

} // namespace
} // namespace mgpu::planner
