// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/NvrtcCompiler.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

TEST(PtxasLog, ReadsEachEntry) {
  auto entries = parsePtxasLog(
      "ptxas info    : 4 bytes gmem, 16 bytes cmem[4]\n"
      "ptxas info    : Compiling entry function 'k1' for 'sm_80'\n"
      "ptxas info    : Function properties for k1\n"
      "ptxas         .     800 bytes stack frame, 12 bytes spill stores, 16 "
      "bytes spill loads\n"
      "ptxas info    : Used 34 registers, used 0 barriers, 800 bytes "
      "cumulative stack size, 360 bytes cmem[0]\n"
      "ptxas info    : Compile time = 31.340 ms\n"
      "ptxas info    : Compiling entry function 'k0' for 'sm_80'\n"
      "ptxas info    : Function properties for k0\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes "
      "spill loads\n"
      "ptxas info    : Used 24 registers, used 1 barriers, 128 bytes smem");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].name, "k1");
  EXPECT_EQ(entries[0].registers, 34u);
  EXPECT_EQ(entries[0].stackBytes, 800u);
  EXPECT_EQ(entries[0].spillStoreBytes, 12u);
  EXPECT_EQ(entries[0].spillLoadBytes, 16u);
  EXPECT_EQ(entries[0].constantBytes, 360u);
  EXPECT_EQ(entries[0].sharedBytes, 0u);
  EXPECT_EQ(entries[1].name, "k0");
  EXPECT_EQ(entries[1].registers, 24u);
  EXPECT_EQ(entries[1].barriers, 1u);
  EXPECT_EQ(entries[1].sharedBytes, 128u);
}

TEST(PtxasLog, SurvivesLinesItDoesNotKnow) {
  for (const char *log : {"", "\n\n", "ptxas", "Compiling entry function",
                          "Compiling entry "
                          "function 'k",
                          "Used registers", "99999999999999999999 registers"})
    for (const EntryUsage &entry : parsePtxasLog(log))
      EXPECT_EQ(entry.registers, 0u) << log;
}

} // namespace
} // namespace mgpu::kernels
