// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a GPU would do at random, or not report, is an error with its place.
#include "tests/unit/ptx/Kernel.h"

namespace mgpu::kernels::ptx {

using testing::Test;

static void expectError(Kernel kernel, const char *part) {
  const std::string error = kernel.run();
  EXPECT_NE(error.find(part), std::string::npos) << "found: " << error;
}
static void expectFine(Kernel kernel) { EXPECT_EQ(kernel.run(), ""); }
static Kernel threads(Kernel kernel, uint32_t count, uint32_t blocks = 1) {
  kernel.options.block.x = count;
  kernel.options.grid.x = blocks;
  return kernel;
}

TEST(PtxChecks, AccessOutsideOfBuffersNamesTheThreadAndTheLine) {
  Kernel kernel(std::string(ownWord) + "\nst.global.u32 [%rd2+4000], %r1;");
  const std::string error = kernel.run();
  EXPECT_NE(error.find("PTX line 10"), std::string::npos) << error;
  EXPECT_NE(error.find("thread 24 0 0 of block 0 0 0"), std::string::npos)
      << error;
  EXPECT_NE(error.find("ends 0 bytes before"), std::string::npos) << error;
}

TEST(PtxChecks, SourceLinesAreThoseOfLoc) {
  expectError(
      Kernel(".loc 1 77 3\nst.global.u32 [%rd1+8000], 1;", ".file 1 \"a.cu\""),
      "(a.cu:77)");
}

TEST(PtxChecks, MisalignedAccess) {
  expectError(Kernel("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1+4];"),
              "not aligned to 16");
  expectError(Kernel("ld.global.u32 %r1, [%rd1+2];"), "not aligned to 4");
}

TEST(PtxChecks, BytesThatNobodyWrote) {
  const char *shared = ".shared .align 4 .b8 s[128];";
  expectError(Kernel("ld.shared.u32 %r1, [s];", shared), "nobody wrote");
  expectFine(Kernel("mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;"
                    "@%p1 st.shared.u32 [s], 5; ld.shared.u32 %r1, [s];",
                    shared));
  Kernel kernel("ld.global.u32 %r1, [%rd1];");
  kernel.written.assign(4096, 0);
  expectError(std::move(kernel), "nobody wrote");
}

TEST(PtxChecks, SharedBytesBeyondTheLaunch) {
  const std::string body = std::string("mov.u32 %r1, %tid.x; mov.u32 %r2, s;"
                                       "shl.b32 %r3, %r1, 2;"
                                       "add.u32 %r2, %r2, %r3;"
                                       "st.shared.u32 [%r2], %r1;");
  Kernel kernel(body, ".extern .shared .align 16 .b8 s[];");
  kernel.options.sharedBytes = 128;
  EXPECT_EQ(kernel.run(), "");
  kernel.options.sharedBytes = 64;
  expectError(std::move(kernel), "of which the launch has 64 bytes");
}

/// It has the alignment that the text asks for, and none above.
TEST(PtxChecks, DynamicSharedMemoryIsNotBetterAlignedThanDeclared) {
  Kernel kernel("mov.u32 %r1, s; and.b32 %r1, %r1, 255;"
                "st.global.u32 [%rd1], %r1;",
                ".extern .shared .align 128 .b8 s[];\n"
                ".extern .shared .align 4 .b8 t[];");
  EXPECT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.words[0], 128u);
}

static const char *const exchange =
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s;"
    "add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1; BARRIER "
    "xor.b32 %r5, %r2, 128; add.u32 %r5, %r3, %r5; ld.shared.u32 %r6, [%r5];"
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd1, %rd2;"
    "st.global.u32 [%rd2], %r6;";
static std::string with(std::string text, const std::string &barrier) {
  return text.replace(text.find("BARRIER"), 7, barrier);
}
static const char *const sharedWords = ".shared .align 4 .b8 s[256];";

TEST(PtxChecks, RaceBetweenBarriersNamesBothThreads) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Kernel kernel =
        threads(Kernel(with(exchange, "bar.sync 0;"), sharedWords), 64);
    kernel.options.seed = seed;
    EXPECT_EQ(kernel.run(), "");
    EXPECT_EQ(kernel.words[3], 35u);
    Kernel racing = threads(Kernel(with(exchange, ""), sharedWords), 64);
    racing.options.seed = seed;
    const std::string error = racing.run();
    const bool isNamed = error.find("thread 3") != error.npos ||
                         error.find("nobody wrote") != error.npos ||
                         error.find("without a barrier") != error.npos;
    EXPECT_TRUE(isNamed) << error;
  }
}

TEST(PtxChecks, RaceBetweenBlocks) {
  expectError(
      threads(Kernel("mov.u32 %r1, %ctaid.x; st.global.u32 [%rd1], %r1;"), 1,
              2),
      "nothing orders two blocks");
  expectFine(threads(Kernel("red.global.add.u32 [%rd1], 1;"), 32, 4));
}

TEST(PtxChecks, LastBlockReadsWhatOthersWroteBeforeAnAtomic) {
  const char *body =
      "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4;"
      "add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2+16], %r1; membar.gl;"
      "atom.global.add.u32 %r2, [%rd1], 1; setp.ne.u32 %p1, %r2, 3;"
      "@%p1 bra done; membar.gl; ld.global.u32 %r3, [%rd1+16];"
      "ld.global.u32 %r4, [%rd1+28]; add.u32 %r3, %r3, %r4;"
      "st.global.u32 [%rd1+64], %r3; done:";
  Kernel kernel = threads(Kernel(body), 1, 4);
  EXPECT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.words[16], 3u);
}

TEST(PtxChecks, BarrierThatSomeLanesSkip) {
  expectError(Kernel("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;"
                     "@%p1 bar.sync 0;"),
              "skip");
  expectError(Kernel("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;"
                     "@%p1 bar.sync 0; bar.sync 0;"),
              "skip");
}

TEST(PtxChecks, Deadlock) {
  expectError(threads(Kernel("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;"
                             "@%p1 bra one; bar.sync 1; bra done;"
                             "one: bar.sync 2; done:"),
                      64),
              "deadlock");
}

TEST(PtxChecks, EndlessLoopsEnd) {
  Kernel kernel("again: bra again;");
  kernel.options.mostInstructions = 10000;
  expectError(std::move(kernel), "its limit");
}

TEST(PtxChecks, ReadBeforeGridDependencyWait) {
  const std::string wait = "griddepcontrol.wait;",
                    read = "ld.global.u32 %r1, [%rd1];";
  for (bool isSteady : {false, true}) {
    Kernel kernel(wait + read), early(read + wait);
    kernel.isSteady = early.isSteady = isSteady;
    EXPECT_EQ(kernel.run(), "");
    const std::string error = early.run();
    EXPECT_EQ(error.empty(), isSteady);
    if (!isSteady) {
      EXPECT_NE(error.find("PTX line 9: read of out before "
                           "griddepcontrol.wait"),
                error.npos)
          << error;
    }
  }
}

TEST(PtxChecks, ThreadsOfAWarpWaitForTheOthersBeforeAProductOfTheWarp) {
  const std::string product =
      "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; @%p1 bra late; back:"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4},"
      "{%r2,%r2,%r2,%r2}, {%r2,%r2}, {%f1,%f1,%f1,%f1}; ret; late:";
  expectFine(Kernel(product + "bra back;"));
  expectError(Kernel(product), "some of its lanes have ended");
}

TEST(PtxChecks, WritesOfWhatIsDeclaredToBeRead) {
  Kernel kernel("st.global.u32 [%rd1+4], 1;");
  kernel.isWritable = false;
  expectError(std::move(kernel), "PTX line 9: write of 4 bytes of out, which "
                                 "the launch declares to be read only");
}

TEST(PtxChecks, ShuffleOfALaneThatIsElsewhere) {
  expectError(Kernel("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;"
                     "@%p1 shfl.sync.idx.b32 %r2, %r1, 20, 31, 0xffff;"),
              "does not execute the shuffle");
  expectError(Kernel("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16;"
                     "@%p1 shfl.sync.idx.b32 %r2, %r1, 2, 31, 0xff;"),
              "for lanes");
}

/// Each half of a warp names itself.
TEST(PtxChecks, LanesThatNameOthersShuffleByThemselves) {
  Kernel kernel(std::string(ownWord) +
                "and.b32 %r3, %r1, 16; mov.u32 %r4, 0xffff;"
                "shl.b32 %r4, %r4, %r3; add.u32 %r5, %r3, 3;"
                "shfl.sync.idx.b32 %r2, %r1, %r5, 31, %r4;"
                "st.global.u32 [%rd2], %r2;");
  EXPECT_EQ(kernel.run(), "");
  for (uint32_t k = 0; k < 32; ++k)
    EXPECT_EQ(kernel.words[k], k / 16 * 16 + 3);
}

/// NVRTC makes two loops of one whose body asks what differs by lane: then a
/// half of a warp meets the other at another instruction.
TEST(PtxChecks, LanesMeetAtInstructionsOfOneKind) {
  const std::string start =
      std::string(ownWord) + "setp.lt.u32 %p1, %r1, 16; @%p1 bra low;";
  Kernel kernel(start + "add.u32 %r3, %r1, 100;"
                        "shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;"
                        "vote.sync.ballot.b32 %r5, !%p1, -1; bra end; low:"
                        "add.u32 %r6, %r1, 200;"
                        "shfl.sync.bfly.b32 %r4, %r6, 16, 31, -1;"
                        "vote.sync.ballot.b32 %r5, %p1, -1; end:"
                        "add.u32 %r4, %r4, %r5; st.global.u32 [%rd2], %r4;");
  EXPECT_EQ(kernel.run(), "");
  for (uint32_t k = 0; k < 32; ++k)
    EXPECT_EQ(kernel.words[k], (k ^ 16) + (k < 16 ? 100 : 200) - 1);
  expectError(Kernel(start +
                     "shfl.sync.bfly.b32 %r4, %r1, 16, 31, -1; ret; low:"
                     "shfl.sync.down.b32 %r4, %r1, 16, 31, -1;"),
              "deadlock");
}

TEST(PtxChecks, Refusals) {
  expectError(Kernel("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [t, {%r1}];"),
              "the instruction is not executed");
  expectError(Kernel("add.foo.u32 %r1, %r1, 1;"), "'.foo' of it");
  expectError(Kernel("add.f32 %r1, %rd1, 1;"), "is of type");
  expectError(Kernel("bra nowhere;"), "no label 'nowhere'");
  expectError(Kernel("add.u32 %r1, %r99, 1;"), "not declared");
}

TEST(PtxChecks, AssertionsAndPrintf) {
  Kernel kernel(
      ".local .align 8 .b8 d[16]; .param .b64 a; .param .b64 b; .param .b32 c;"
      "cvta.local.u64 %rd3, %rd4; mov.u64 %rd4, d; cvta.local.u64 %rd3, %rd4;"
      "st.local.u32 [d], 42; st.local.f64 [d+8], 0d4004000000000000;"
      "mov.u64 %rd5, f; cvta.global.u64 %rd5, %rd5; st.param.b64 [a], %rd5;"
      "st.param.b64 [b], %rd3; call.uni (c), vprintf, (a, b);",
      ".extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);\n"
      ".global .align 1 .b8 f[10] = {37, 100, 32, 37, 46, 49, 102, 33, 10, "
      "0};");
  kernel.options.block.x = 1;
  EXPECT_EQ(kernel.run(), "");
  EXPECT_EQ(kernel.printed, "42 2.5!\n");
}

} // namespace mgpu::kernels::ptx
