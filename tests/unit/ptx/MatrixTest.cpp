// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of warps, asynchronous copies and barriers in memory.
#include "tests/unit/ptx/Kernel.h"

#include <bit>

namespace mgpu::kernels::ptx {

static std::string stored(uint32_t registers, const char *kind) {
  std::string out = "shl.b32 %r30, %r1, " +
                    std::to_string(registers == 4 ? 4 : 3) +
                    "; cvt.u64.u32 %rd10, %r30; add.s64 %rd10, %rd1, %rd10;";
  for (uint32_t k = 0; k < registers; ++k)
    out += "st.global.b32 [%rd10+" + std::to_string(4 * k) + "], %" + kind +
           std::to_string(10 + k) + ";";
  return out;
}

TEST(PtxMatrix, ProductOfHalvesIsTheSumOverK) {
  // A is 1 in all elements but row 3, where it is 2; B's column n is n.
  Kernel kernel(
      "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 2; setp.eq.u32 %p1, %r2, 3;"
      "selp.b32 %r3, 0x40004000, 0x3c003c00, %p1; mov.b32 %r4, 0x3c003c00;"
      "cvt.rn.f16.u32 %h1, %r2; mov.b32 %r5, {%h1, %h1};"
      "mov.f32 %f1, 0f3F000000;"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f10,%f11,%f12,%f13},"
      "{%r3,%r4,%r3,%r4}, {%r5,%r5}, {%f1,%f1,%f1,%f1};" +
      stored(4, "f"));
  ASSERT_EQ(kernel.run(), "");
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t row = lane / 4 + k / 2 * 8, column = lane % 4 * 2 + k % 2;
      EXPECT_EQ(std::bit_cast<float>(kernel.words[lane * 4 + k]),
                float(column * 16 * (row == 3 ? 2 : 1)) + 0.5f);
    }
}

TEST(PtxMatrix, ProductOfBytes) {
  Kernel kernel("mov.u32 %r1, %tid.x; mov.b32 %r2, 0xff010203;"
                "mov.b32 %r3, 0x01010101; mov.b32 %r4, 7;"
                "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
                "{%r10,%r11,%r12,%r13}, {%r2,%r2,%r2,%r2}, {%r3,%r3},"
                "{%r4,%r4,%r4,%r4};" +
                stored(4, "r"));
  ASSERT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.words[5], uint32_t((3 + 2 + 1 - 1) * 8 + 7));
}

TEST(PtxMatrix, LoadedMatricesAreRowsOrColumns) {
  const char *shared = ".shared .align 16 .b8 s[128];";
  const std::string fill =
      "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s;"
      "add.u32 %r4, %r3, %r2; shl.b32 %r5, %r1, 1; add.u32 %r6, %r5, 1;"
      "shl.b32 %r6, %r6, 16; or.b32 %r6, %r6, %r5; st.shared.b32 [%r4], %r6;"
      "bar.sync 0; and.b32 %r7, %r1, 7; shl.b32 %r7, %r7, 4;"
      "add.u32 %r7, %r3, %r7; ldmatrix.sync.aligned.m8n8.x1";
  Kernel rows(fill + ".shared.b16 {%r10}, [%r7]; mov.b32 %r11, 0;" +
                  stored(2, "r"),
              shared);
  ASSERT_EQ(rows.run(), "");
  EXPECT_EQ(rows.words[2 * 9], 19u << 16 | 18);
  Kernel columns(fill + ".trans.shared.b16 {%r10}, [%r7]; mov.b32 %r11, 0;" +
                     stored(2, "r"),
                 shared);
  ASSERT_EQ(columns.run(), "");
  EXPECT_EQ(columns.words[2 * 9], (8u * 3 + 2) << 16 | (8 * 2 + 2));
}

static const char *const copy =
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s;"
    "add.u32 %r4, %r3, %r2; cvt.u64.u32 %rd2, %r2; add.s64 %rd2, %rd1, %rd2;"
    "cp.async.ca.shared.global [%r4], [%rd2], 4; cp.async.commit_group; WAIT "
    "ld.shared.b32 %r5, [%r4]; st.global.b32 [%rd2+256], %r5;";

TEST(PtxAsync, ReadBeforeTheWaitIsAnError) {
  for (bool isEarly : {false, true}) {
    for (const char *wait : {"cp.async.wait_group 0;", "cp.async.wait_all;",
                             "cp.async.wait_group 1;", ""}) {
      std::string text = copy;
      Kernel kernel(text.replace(text.find("WAIT"), 4, wait),
                    ".shared .align 16 .b8 s[128];");
      kernel.words[5] = 55;
      kernel.options.isEarly = isEarly;
      const std::string error = kernel.run();
      const std::string_view given = wait;
      if (given == "cp.async.wait_group 0;" || given == "cp.async.wait_all;") {
        EXPECT_EQ(error, "");
        EXPECT_EQ(kernel.words[64 + 5], 55u);
      } else {
        EXPECT_NE(error.find("was not waited for"), error.npos) << error;
      }
    }
  }
}

static const char *const handOver =
    ".reg .b64 st; mov.u32 %r1, %tid.x; mov.u32 %r3, s; mov.u32 %r9, m;"
    "setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [m], 64;"
    "bar.sync 0; shl.b32 %r2, %r1, 2; add.u32 %r4, %r3, %r2;"
    "st.shared.b32 [%r4], %r1; mbarrier.arrive.shared.b64 st, [m];"
    "again: WAIT xor.b32 %r5, %r2, 128; add.u32 %r5, %r3, %r5;"
    "ld.shared.b32 %r6, [%r5]; cvt.u64.u32 %rd2, %r2;"
    "add.s64 %rd2, %rd1, %rd2; st.global.b32 [%rd2], %r6;";

TEST(PtxAsync, MemoryBarriersOrderWhatIsBeforeThem) {
  const char *variables =
      ".shared .align 8 .b8 m[8]; .shared .align 4 .b8 s[256];";
  for (const char *wait :
       {"mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra again;",
        "mbarrier.test_wait.shared.b64 %p2, [m], st; @!%p2 bra again;", ""})
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::string text = handOver;
      Kernel kernel(text.replace(text.find("WAIT"), 4, wait), variables);
      kernel.options.block.x = 64;
      kernel.options.seed = seed;
      const std::string error = kernel.run();
      if (*wait) {
        EXPECT_EQ(error, "");
        EXPECT_EQ(kernel.words[40], 8u);
      } else {
        EXPECT_FALSE(error.empty());
      }
    }
}

TEST(PtxAsync, WaitingForWhatNeverArrivesIsADeadlock) {
  Kernel kernel("mbarrier.init.shared.b64 [m], 2;"
                "again: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0;"
                "@!%p2 bra again;",
                ".shared .align 8 .b8 m[8];");
  kernel.options.block.x = 1;
  const std::string error = kernel.run();
  EXPECT_NE(error.find("never happens"), error.npos) << error;
}

} // namespace mgpu::kernels::ptx
