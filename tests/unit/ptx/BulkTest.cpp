// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies in bulk and of tensors, and the mbarriers that they tell.
#include "kernels/ptx/TensorMap.h"
#include "tests/unit/ptx/Kernel.h"

namespace mgpu::kernels::ptx {

/// `text` with each "NAME" replaced by what `with` says.
static std::string filled(std::string text,
                          const std::map<std::string, std::string> &with) {
  for (const auto &[name, value] : with)
    for (size_t at = text.find(name); at != text.npos;
         at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  return text;
}

struct Bulk : testing::Test {
  /// The sentence of the error; "" where there is none.
  std::string run(const std::map<std::string, std::string> &with = {},
                  uint64_t seed = 0, bool isEarly = false,
                  uint32_t blocks = 1) {
    std::map<std::string, std::string> all = with;
    all.insert(defaults.begin(), defaults.end());
    kernel.emplace(filled(body, all), variables);
    kernel->options.seed = seed;
    kernel->options.isEarly = isEarly;
    kernel->options.grid.x = kernel->options.cluster.x = blocks;
    kernel->options.block.x = threads;
    for (uint32_t k = 0; k < 64; ++k)
      kernel->words[k] = 1000 + k;
    kernel->map = map;
    return kernel->run();
  }
  /// Both ends of what is allowed, and some orders between.
  void expectAlways(const std::map<std::string, std::string> &with,
                    const char *part, uint32_t blocks = 1) {
    for (uint64_t seed = 0; seed < 6; ++seed)
      for (bool isEarly : {false, true}) {
        const std::string error = run(with, seed, isEarly, blocks);
        EXPECT_TRUE(*part ? error.find(part) != error.npos : error.empty())
            << "seed " << seed << (isEarly ? ", early: " : ", late: ") << error;
      }
  }
  std::string body, variables;
  std::map<std::string, std::string> defaults;
  TensorMap map{};
  uint32_t threads = 64;
  std::optional<Kernel> kernel;
};

/// Thread 0 brings 256 bytes in two copies, and all threads read them.
struct BulkLoad : Bulk {
  void SetUp() override {
    variables = ".shared .align 128 .b8 s[256]; .shared .align 8 .b8 m[8];";
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
           "@!%p1 bra made;\n"
           "mbarrier.init.shared::cta.b64 [m], 1; FENCE\n"
           "made: bar.sync 0; @!%p1 bra asked; BEFORE\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], EXPECT;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
           "[s], [%rd1], 128, [m];\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
           "[s+128], [%rd1+128], SIZE, [m];\n"
           "asked: WAIT\n"
           "shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;\n"
           "AFTER ld.shared.u32 %r4, [%r3];\n"
           "cvt.u64.u32 %rd2, %r2; add.s64 %rd2, %rd1, %rd2;\n"
           "st.global.u32 [%rd2+256], %r4;";
    defaults = {{"FENCE", "fence.mbarrier_init.release.cluster;"},
                {"BEFORE", ""},
                {"AFTER", ""},
                {"EXPECT", "256"},
                {"SIZE", "128"},
                {"WAIT", "again: mbarrier.try_wait.parity.shared::cta.b64 %p2, "
                         "[m], 0; @!%p2 bra again;"}};
  }
};

TEST_F(BulkLoad, BytesAreThereBehindTheWait) {
  for (const char *wait :
       {"again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [m], 0; @!%p2 "
        "bra again;",
        "again: mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 %p2, "
        "[m], 0; @!%p2 bra again;"}) {
    expectAlways({{"WAIT", wait}}, "");
    for (uint32_t k = 0; k < 64; ++k)
      EXPECT_EQ(kernel->words[64 + k], 1000 + k);
  }
}

TEST_F(BulkLoad, ReadBeforeTheWait) {
  expectAlways({{"WAIT", ""}}, "shared memory");
  threads = 32;
  const std::string error = run({{"WAIT", ""}});
  EXPECT_NE(error.find("PTX line 18: read of 4 bytes"), error.npos) << error;
  EXPECT_NE(error.find("was not waited for writes"), error.npos) << error;
}

TEST_F(BulkLoad, AWaitForTheWrongPhaseIsNone) {
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_NE(run({{"WAIT", "again: mbarrier.try_wait.parity.shared::cta.b64 "
                            "%p2, [m], 1; @!%p2 bra again;"}},
                  seed),
              "");
}

TEST_F(BulkLoad, MoreOrFewerBytesThanAnnouncedNeverEnd) {
  expectAlways({{"EXPECT", "272"}}, "never happens");
  EXPECT_NE(run({{"EXPECT", "128"}}), "");
  expectAlways({{"EXPECT", "0x7fffffff"}}, "2^20 - 1 at most");
}

TEST_F(BulkLoad, AnMbarrierIsPublishedBeforeCopiesTellIt) {
  expectAlways({{"FENCE", ""}}, "fence.mbarrier_init");
  expectAlways({{"FENCE", "fence.proxy.async.shared::cta;"}}, "");
}

TEST_F(BulkLoad, AWriteBeforeTheCopyNeedsAProxyFence) {
  const char *write = "st.shared.u32 [s+4], 7;";
  expectAlways({{"BEFORE", write}}, "without fence.proxy.async");
  expectAlways({{"BEFORE", std::string(write) + "fence.proxy.async;"}}, "");
}

TEST_F(BulkLoad, SizesAndPlacesAreMultiplesOf16) {
  expectAlways({{"SIZE", "120"}}, "multiples of 16");
  expectAlways({{"SIZE", "144"}}, "which has 384 bytes");
}

TEST_F(BulkLoad, AnEndedBlockHasWaitedForItsCopies) {
  body = filled(body, {{"AFTER", "ret;"}, {"WAIT", ""}});
  EXPECT_NE(run().find("nobody waited for it"), std::string::npos);
}

TEST_F(BulkLoad, InvalidatedBarriersAreNone) {
  expectAlways({{"AFTER", "bar.sync 0; @%p1 mbarrier.inval.shared::cta.b64 "
                          "[m]; bar.sync 0;"}},
               "");
  expectAlways({{"AFTER", "bar.sync 0; @%p1 mbarrier.inval.shared::cta.b64 "
                          "[m]; bar.sync 0; mbarrier.arrive.shared::cta.b64 "
                          "_, [m];"}},
               "nobody wrote");
}

/// All threads write shared memory, and thread 0 stores it.
struct BulkStore : Bulk {
  void SetUp() override {
    variables = ".shared .align 128 .b8 s[256];";
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
           "shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;\n"
           "st.shared.u32 [%r3], %r1; FENCE bar.sync 0;\n"
           "@!%p1 bra done;\n"
           "COPY cp.async.bulk.commit_group; WAIT AFTER done:";
    defaults = {{"FENCE", "fence.proxy.async.shared::cta;"},
                {"COPY", "cp.async.bulk.global.shared::cta.bulk_group "
                         "[%rd1], [s], 256;"},
                {"WAIT", "cp.async.bulk.wait_group.read 0;"},
                {"AFTER", ""}};
  }
};

TEST_F(BulkStore, BytesAreThereBehindTheWait) {
  expectAlways({}, "");
  for (uint32_t k = 0; k < 64; ++k)
    EXPECT_EQ(kernel->words[k], k);
}

TEST_F(BulkStore, WritesBeforeTheCopyNeedAProxyFence) {
  expectAlways({{"FENCE", ""}}, "without fence.proxy.async");
  // Its place is before the barrier or behind it.
  defaults["COPY"].insert(0, "fence.proxy.async;");
  expectAlways({{"FENCE", ""}}, "");
}

TEST_F(BulkStore, BytesAreLentUntilTheWait) {
  const std::string write = "st.shared.u32 [s], 9;";
  expectAlways({{"WAIT", write}}, "was not waited for reads");
  expectAlways({{"WAIT", "cp.async.bulk.wait_group 1;" + write}},
               "was not waited for reads");
  expectAlways({{"AFTER", write}}, "");
  expectAlways({{"WAIT", ""}}, "wait_group is missing");
}

TEST_F(BulkStore, Reductions) {
  defaults["COPY"] = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add."
                     "u32 [%rd1], [s], 256;";
  expectAlways({}, "");
  for (uint32_t k = 0; k < 64; ++k)
    EXPECT_EQ(kernel->words[k], 1000 + 2 * k);
  EXPECT_NE(run({{"COPY", "cp.reduce.async.bulk.global.shared::cta.bulk_group"
                          ".max.f32 [%rd1], [s], 256;"}})
                .find("no such operation"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// The first of two blocks brings bytes to both.
struct BulkCluster : Bulk {
  void SetUp() override {
    variables = ".shared .align 128 .b8 s[128]; .shared .align 8 .b8 m[8];";
    threads = 32;
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
           "mov.u32 %r9, %cluster_ctarank; @!%p1 bra made;\n"
           "mbarrier.init.shared::cta.b64 [m], 1;\n"
           "fence.mbarrier_init.release.cluster;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 128;\n"
           "made: SYNC setp.eq.and.u32 %p3, %r9, 0, %p1; @!%p3 bra asked;\n"
           "COPY\nasked:\n"
           "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
           "%p2, [m], 0; @!%p2 bra again;\n"
           "shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;\n"
           "ld.shared.u32 %r4, [%r3]; mad.lo.u32 %r5, %r9, 128, %r2;\n"
           "cvt.u64.u32 %rd2, %r5; add.s64 %rd2, %rd1, %rd2;\n"
           "st.global.u32 [%rd2+256], %r4; END";
    defaults = {{"SYNC", "barrier.cluster.arrive; barrier.cluster.wait;"},
                {"COPY",
                 "mov.b16 %h1, 3; cp.async.bulk.shared::cluster.global."
                 "mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd1], "
                 "128, [m], %h1;"},
                {"END", "barrier.cluster.arrive; barrier.cluster.wait;"}};
  }
};

TEST_F(BulkCluster, MulticastBringsBytesToEachBlock) {
  expectAlways({}, "", 2);
  for (uint32_t k = 0; k < 64; ++k)
    EXPECT_EQ(kernel->words[64 + k], 1000 + k % 32);
  expectAlways({{"COPY", filled(defaults["COPY"],
                                {{"mov.b16 %h1, 3", "mov.b16 %h1, 7"}})}},
               "the cluster has 2", 2);
}

TEST_F(BulkCluster, CopiesFromBlockToBlock) {
  // The first fills its own memory, and sends it to the other.
  const char *across =
      "mov.u32 %r11, s; mapa.shared::cluster.u32 %r12, %r11, 1;\n"
      "mov.u32 %r13, m; mapa.shared::cluster.u32 %r14, %r13, 1;\n"
      "mov.u32 %r6, 0; fill: add.u32 %r7, %r11, %r6;\n"
      "st.shared.u32 [%r7], %r6; add.u32 %r6, %r6, 4;\n"
      "setp.lt.u32 %p4, %r6, 128; @%p4 bra fill; fence.proxy.async;\n"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
      "[%r12], [%r11], 128, [%r14];\n"
      "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [m], 128;";
  expectAlways({{"COPY", across}}, "", 2);
  for (uint32_t k = 0; k < 32; ++k)
    EXPECT_EQ(kernel->words[64 + 32 + k], 4 * k);
}

TEST_F(BulkCluster, APeerIsReadBehindABarrierOfTheCluster) {
  variables = ".shared .align 4 .b8 s[4];";
  body = "mov.u32 %r9, %cluster_ctarank; mov.u32 %r3, s;\n"
         "add.u32 %r4, %r9, 50; st.shared.u32 [%r3], %r4; SYNC\n"
         "xor.b32 %r5, %r9, 1; mapa.shared::cluster.u32 %r6, %r3, %r5;\n"
         "ld.shared::cluster.u32 %r7, [%r6]; shl.b32 %r8, %r9, 2;\n"
         "cvt.u64.u32 %rd2, %r8; add.s64 %rd2, %rd1, %rd2;\n"
         "st.global.u32 [%rd2], %r7; END";
  threads = 1;
  expectAlways({}, "", 2);
  EXPECT_EQ(kernel->words[0], 51u);
  EXPECT_EQ(kernel->words[1], 50u);
  expectAlways({{"SYNC", ""}}, "shared memory", 2);
}

TEST_F(BulkCluster, BlocksArriveAtEachOthersBarriers) {
  body = "mov.u32 %r9, %cluster_ctarank; mov.u32 %r3, m;\n"
         "mbarrier.init.shared::cta.b64 [m], 2;\n"
         "fence.mbarrier_init.release.cluster; SYNC\n"
         "mapa.shared::cluster.u32 %r6, %r3, 0;\n"
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n"
         "setp.ne.u32 %p1, %r9, 0; @%p1 bra done;\n"
         "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
         "%p2, [m], 0; @!%p2 bra again; st.global.u32 [%rd1], 5;\n"
         "done: END";
  threads = 1;
  expectAlways({}, "", 2);
  EXPECT_EQ(kernel->words[0], 5u);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A box of 4 rows of 8 words of an array of 6 x 10 words, at "X", "Y".
struct BulkTensor : Bulk {
  void SetUp() override {
    variables = ".shared .align 1024 .b8 s[1024]; .shared .align 8 .b8 m[8];";
    threads = 32;
    body = "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; @!%p1 bra made;\n"
           "mbarrier.init.shared::cta.b64 [m], 1;\n"
           "fence.mbarrier_init.release.cluster;\n"
           "made: bar.sync 0; @!%p1 bra asked;\n"
           "mov.b64 %rd3, map; cvta.param.u64 %rd4, %rd3;\n"
           "mov.u32 %r5, X; mov.u32 %r6, Y;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 128;\n"
           "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
           "mbarrier::complete_tx::bytes [s], [%rd4, {%r5, %r6}], [m];\n"
           "asked:\n"
           "again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [m], 0;\n"
           "@!%p2 bra again;\n"
           "shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;\n"
           "ld.shared.u32 %r4, [%r3];\n"
           "cvt.u64.u32 %rd2, %r2; add.s64 %rd2, %rd1, %rd2;\n"
           "st.global.u32 [%rd2+256], %r4; BEHIND";
    defaults = {{"X", "0"}, {"Y", "0"}, {"BEHIND", ""}};
    map.magic = TensorMap::theMagic;
    map.sizes[0] = 10;
    map.sizes[1] = 6;
    map.strideBytes[0] = 40;
    map.box[0] = 8;
    map.box[1] = 4;
    map.elementBytes = 4;
    map.rank = 2;
    map.dataType = 2;
  }
  /// Word `k` of the array; what is outside of it is 0.
  static uint32_t at(int x, int y) {
    return x < 0 || y < 0 || x >= 10 || y >= 6 ? 0
                                               : 1000 + uint32_t(y * 10 + x);
  }
};

TEST_F(BulkTensor, BoxesAreCutAtTheEndsOfTheArray) {
  for (auto [x, y] :
       {std::pair(0, 0), {2, 1}, {5, 4}, {-3, -2}, {20, 0}, {0, -9}})
    for (bool isEarly : {false, true}) {
      ASSERT_EQ(
          run({{"X", std::to_string(x)}, {"Y", std::to_string(y)}}, 0, isEarly),
          "");
      for (int k = 0; k < 32; ++k)
        EXPECT_EQ(kernel->words[size_t(64 + k)], at(x + k % 8, y + k / 8))
            << x << " " << y << " " << k;
    }
}

/// Rows of 32 bytes: the 16 bytes of a row change places in rows 4 to 7 of 8.
TEST_F(BulkTensor, SwizzlesChangePlacesOf16Bytes) {
  map.swizzleBytes = 32;
  map.box[1] = 8;
  threads = 64;
  defaults["128;\n"] = "256;\n"; // the bytes of the box
  ASSERT_EQ(run(), "");
  for (int k = 0; k < 64; ++k) {
    const int row = k / 8, part = k % 8 / 4 ^ (row >= 4);
    EXPECT_EQ(kernel->words[size_t(64 + k)], at(part * 4 + k % 4, row)) << k;
  }
}

TEST_F(BulkTensor, StoresWriteWhatIsInside) {
  for (const char *form : {"cp", "cp.reduce"}) {
    const bool isSum = std::string_view(form) == "cp.reduce";
    defaults["BEHIND"] =
        "bar.sync 0; @!%p1 bra done; mov.u32 %r5, 4; mov.u32 %r6, 3;\n" +
        std::string(form) + ".async.bulk.tensor.2d.global.shared::cta." +
        (isSum ? "add.tile" : "tile") +
        ".bulk_group [%rd4, {%r5, %r6}], [s]; cp.async.bulk.commit_group;\n"
        "cp.async.bulk.wait_group 0; done:";
    expectAlways({}, "");
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 10; ++x) {
        const bool isWritten = x >= 4 && y >= 3;
        const uint32_t brought = isWritten ? at(x - 4, y - 3) : 0;
        EXPECT_EQ(kernel->words[size_t(y * 10 + x)],
                  isWritten ? brought + (isSum ? at(x, y) : 0) : at(x, y))
            << x << " " << y;
      }
  }
}

TEST_F(BulkTensor, WhatIsNoTensorMapIsRefused) {
  map.magic = 1;
  expectAlways({}, "what is no tensor map");
  map.magic = TensorMap::theMagic;
  map.rank = 3;
  expectAlways({}, "by a tensor map of 3");
  map.rank = 2;
  map.sizes[1] = 600;
  expectAlways({{"Y", "500"}}, "outside of all buffers");
}

/// A kernel can write a map itself.
TEST_F(BulkTensor, MapsThatLieAreRefused) {
  const TensorMap good = map;
  map.box[0] = 0x40000004; // of which 32 bits are 16 bytes
  expectAlways({}, "box is none");
  map = good;
  map.box[1] = 0xffffffff;
  map.sizes[1] = uint64_t(1) << 33;
  map.strideBytes[0] = 0;
  expectAlways({}, "box is none");
  map = good;
  map.dataType = 8; // f64, whose sums would reach beyond 4 bytes
  expectAlways({}, "box is none");
  map = good;
  map.sizes[0] = uint64_t(1) << 40;
  expectAlways({}, "box is none");
}

} // namespace mgpu::kernels::ptx
