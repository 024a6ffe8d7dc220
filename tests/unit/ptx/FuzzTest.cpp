// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts that are nearly PTX end in a result or a sentence. With MGPU_SWEEPS
// set there are 100,000; the sanitizers say whether memory of ours was touched.
#include "tests/unit/ptx/Kernel.h"

#include <cstdlib>
#include <random>

namespace mgpu::kernels::ptx {

static const char *const seeds[] = {
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s;\n"
    "add.u32 %r4, %r3, %r2; st.shared.u32 [%r4], %r1; bar.sync 0;\n"
    "ld.shared.v2.u32 {%r6, %r7}, [s+8]; shfl.sync.bfly.b32 %r8|%p1, %r6, 3, "
    "31, -1;\n@%p1 bra L1; mul.wide.u32 %rd2, %r1, 4;\n"
    "L1: add.s64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r6;",
    "mov.u32 %r1, %ctaid.x; cvt.rn.f32.u32 %f1, %r1;\n"
    "fma.rn.f32 %f2, %f1, %f1, 0f3F800000; max.NaN.f32 %f3, %f1, %f2;\n"
    "atom.global.add.f32 %f4, [%rd1], %f3; div.rn.f64 %d1, %d2, "
    "0d3ff0000000000000;\n"
    "setp.gt.and.f32 %p1|%p2, %f1, 0f00000000, !%p3; selp.b32 %r2, 1, 2, %p1;\n"
    "L2: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 10; @%p1 bra L2;",
    "{ .reg .b32 t; mov.b64 {t, %r2}, %rd1; mov.b64 %rd3, {%r2, t}; }\n"
    "prmt.b32 %r3, %r1, %r2, 0x5410; bfe.u32 %r4, %r1, 3, 5;\n"
    "lop3.b32 %r5, %r1, %r2, %r3, 0x96; vote.sync.ballot.b32 %r6, %p1, -1;\n"
    "redux.sync.add.s32 %r7, %r6, -1; cvta.to.global.u64 %rd4, %rd1;\n"
    "ld.global.nc.v4.u32 {%r1,%r2,%r3,%r4}, [%rd4+16]; membar.gl;\n"
    "st.volatile.global.u32 [%rd4+64], %r7;",
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, s;\n"
    "and.b32 %r2, %r2, 127; add.u32 %r4, %r3, %r2;\n"
    "cp.async.cg.shared.global [%r4], [%rd1+16], 16, %r5;\n"
    "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;\n"
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r6,%r7}, [%r4];\n"
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4},\n"
    "{%r6,%r7,%r6,%r7}, {%r6,%r7}, {%f1,%f2,%f3,%f4};",
    "mbarrier.init.shared.b64 [s+8], 32; bar.sync 0;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [s+8], 0;\n"
    "L3: mbarrier.try_wait.parity.shared.b64 %p1, [s+8], 0; @!%p1 bra L3;\n"
    "barrier.cluster.arrive; barrier.cluster.wait; mapa.u64 %rd2, %rd1, 1;",
    "mbarrier.init.shared.b64 [s+128], 1;\n"
    "fence.mbarrier_init.release.cluster; bar.sync 0;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [s+128], 64;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], "
    "[%rd1], 64, [s+128];\n"
    "L4: mbarrier.try_wait.parity.shared.b64 %p1, [s+128], 0; @!%p1 bra L4;\n"
    "ld.shared.u32 %r1, [s+4]; fence.proxy.async;\n"
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1+64], "
    "[s], 32; cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;",
    "mbarrier.init.shared.b64 [s+128], 1; fence.proxy.async; bar.sync 0;\n"
    "mov.b64 %rd3, map; cvta.param.u64 %rd4, %rd3; mov.b16 %h1, 1;\n"
    "mbarrier.arrive.expect_tx.shared.b64 _, [s+128], 128;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile."
    "mbarrier::complete_tx::bytes.multicast::cluster [s], [%rd4, {%r1, %r2}], "
    "[s+128], %h1;\n"
    "L5: mbarrier.test_wait.parity.shared.b64 %p1, [s+128], 0; @!%p1 bra L5;\n"
    "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd4, {%r3, "
    "4}], [s]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
    "st.shared.u32 [s], 0; setmaxnreg.inc.sync.aligned.u32 64;\n"
    "mov.u64 %rd5, 0x4000000100010000; setp.ne.u32 %p1, %r1, 7;\n"
    "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;\n"
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, "
    "{%r4, %r5, %r6, %r7}, %rd5, %p1, 1, 1, 1;\n"
    "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
    "st.global.f32 [%rd1], %f2;"};

static std::string mutated(std::string text, std::mt19937 &random) {
  static const std::vector<std::string> words = {".u32",
                                                 ".f64",
                                                 "%r1",
                                                 "%rd1",
                                                 "%p1",
                                                 "bar.sync",
                                                 "ld",
                                                 ".shared",
                                                 "[",
                                                 "]",
                                                 ";",
                                                 "{",
                                                 "}",
                                                 "-1",
                                                 "0x7fffffffffffffff",
                                                 ".v4",
                                                 ".b128",
                                                 "call",
                                                 "ret",
                                                 "bra",
                                                 "L1",
                                                 "s",
                                                 "ex2.approx.f32",
                                                 "_",
                                                 "|",
                                                 "(",
                                                 ")",
                                                 ".param",
                                                 "65536",
                                                 ".reg .b32 %q<99999999>;",
                                                 "mov.u64",
                                                 "%ctaid.x",
                                                 "cvt.rni.s8.f32",
                                                 "@!%p2",
                                                 "shr.s64",
                                                 "rem.s32",
                                                 "brx.idx",
                                                 "mad.lo.cc.u32",
                                                 "1e400",
                                                 "wgmma.fence.sync.aligned;",
                                                 ".bulk",
                                                 "[%rd4, {%r1, %r2}]",
                                                 "0xffffffff",
                                                 "out",
                                                 "trap;"};
  const uint32_t changes = 1 + random() % 3;
  for (uint32_t k = 0; k < changes && !text.empty(); ++k) {
    const size_t at = random() % text.size();
    const size_t length = std::min<size_t>(random() % 12, text.size() - at);
    switch (random() % 5) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, words[random() % words.size()]);
      break;
    case 2:
      text.replace(at, length, words[random() % words.size()]);
      break;
    case 3:
      text[at] = char(random());
      break;
    default:
      text.insert(random() % text.size(), text.substr(at, length));
    }
  }
  return text;
}

/// Often a tensor map, with fields of any value in some.
static TensorMap mapOf(std::mt19937 &random) {
  TensorMap map{TensorMap::theMagic, 0, {8, 16}, {32}, {8, 4}, 4, 0, 2, 2, 0};
  if (random() % 4 == 0)
    map.swizzleBytes = 32;
  if (random() % 4)
    return map;
  auto *bytes = reinterpret_cast<unsigned char *>(&map);
  for (int k = 0; k < 3; ++k)
    bytes[8 + random() % (sizeof map - 8)] = uint8_t(random());
  return map;
}

TEST(PtxFuzz, MutantsEndInAResultOrASentence) {
  const char *sweeps = std::getenv("MGPU_SWEEPS");
  const uint64_t mutants = sweeps ? 100000 : 3000;
  std::mt19937 random(7);
  uint64_t ran = 0;
  for (uint64_t k = 0; k < mutants; ++k) {
    Kernel kernel(seeds[random() % std::size(seeds)],
                  ".shared .align 16 .b8 s[256];");
    kernel.text = mutated(std::move(kernel.text), random);
    kernel.options.mostInstructions = 2000;
    kernel.options.seed = k % 3;
    kernel.options.grid.x = 1 + random() % 3;
    kernel.options.block.x = 1 + random() % (random() % 4 ? 70 : 140);
    kernel.map = mapOf(random);
    kernel.options.cluster.x = random() % 16 == 0 ? 2 : 1;
    kernel.options.sharedBytes = random() % 300;
    const std::string error = kernel.run();
    ran += error.empty();
    ASSERT_TRUE(error.empty() || error.size() > 10) << kernel.text;
  }
  EXPECT_GT(ran, mutants / 200);
}

} // namespace mgpu::kernels::ptx
