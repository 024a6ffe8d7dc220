// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many instructions of warps kernels/ptx executes in a second on one core,
// with all checks: of each class the median of several launches.
#include "kernels/ptx/Launch.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fmt/format.h>

using namespace mgpu;
using namespace mgpu::kernels;

namespace {

struct Class {
  const char *name, *declarations, *body;
  uint32_t threads, blocks;
};

/// Each body has its thread's number in the block in %r1 and the address of its
/// word in %rd2; the others' words are 4 bytes apart.
constexpr Class classes[] = {
    {"arithmetic of f32", "",
     "mov.u32 %r2, 0; cvt.rn.f32.u32 %f1, %r1;\n"
     "again: fma.rn.f32 %f2, %f1, %f1, %f2; mul.rn.f32 %f3, %f2, %f1;\n"
     "add.rn.f32 %f4, %f3, %f2; fma.rn.f32 %f1, %f4, %f3, %f1;\n"
     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 20000; @%p1 bra again;\n"
     "st.global.f32 [%rd2], %f1;",
     128, 1},
    {"global memory", "",
     "mov.u32 %r2, 0;\n"
     "again: ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd3];\n"
     "add.rn.f32 %f1, %f1, %f2; st.global.v4.f32 [%rd3], {%f1,%f2,%f3,%f4};\n"
     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 4000; @%p1 bra again;",
     128, 4},
    {"shared memory", ".shared .align 16 .b8 s[2048];",
     "mov.u32 %r2, 0; mov.u32 %r3, s; shl.b32 %r4, %r1, 2;\n"
     "add.u32 %r3, %r3, %r4; st.shared.u32 [%r3], %r1;\n"
     "again: ld.shared.u32 %r5, [%r3]; add.u32 %r5, %r5, %r2;\n"
     "bar.sync 0; st.shared.u32 [%r3], %r5;\n"
     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 4000; @%p1 bra again;",
     128, 1},
    {"mma", "",
     "mov.u32 %r2, 0; mov.u32 %r3, 0x3c003c00;\n"
     "again: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
     "{%f1,%f2,%f3,%f4}, {%r3,%r3,%r3,%r3}, {%r3,%r3}, {%f1,%f2,%f3,%f4};\n"
     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 2000; @%p1 bra again;",
     128, 1},
    {"wgmma", ".shared .align 1024 .b8 s[16384];",
     "mov.u32 %r2, 0; mov.u32 %r3, s; shl.b32 %r4, %r1, 2;\n"
     "add.u32 %r3, %r3, %r4;\n"
     "fill: st.shared.u32 [%r3], 0x3c003c00; add.u32 %r3, %r3, 512;\n"
     "setp.lt.u32 %p1, %r3, 16384; @%p1 bra fill;\n"
     "mov.u64 %rd4, 0x4000004000010000; fence.proxy.async; bar.sync 0;\n"
     "setp.eq.u32 %p2, %r1, %r1;\n"
     "again: wgmma.fence.sync.aligned;\n"
     "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
     "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, %rd4, %rd4, %p2, 1, 1, 0, 0;\n"
     "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
     "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 300; @%p1 bra again;",
     128, 1}};

std::string textOf(const Class &each) {
  return fmt::format(
      ".version 8.6\n.target sm_90a\n.address_size 64\n{}\n"
      ".visible .entry k(.param .u64 out) {{\n"
      ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n"
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n"
      "mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ntid.x;\n"
      "mad.lo.u32 %r8, %r7, %r8, %r1; mul.wide.u32 %rd2, %r8, 4;\n"
      "mul.wide.u32 %rd3, %r8, 16; add.s64 %rd2, %rd1, %rd2;\n"
      "add.s64 %rd3, %rd1, %rd3;\n{}\nret;\n}}\n",
      each.declarations, each.body);
}

/// Millions of instructions a second.
Result<double> measure(const Class &each) {
  MGPU_TRY_ASSIGN(ptx::Module module, ptx::parse(textOf(each)));
  MGPU_TRY_ASSIGN(
      ptx::Program program,
      ptx::decode(std::make_shared<ptx::Module>(std::move(module)), "k"));
  ptx::Instance instance(std::make_shared<ptx::Program>(std::move(program)));
  std::vector<std::byte> memory(1 << 16);
  ptx::LaunchOptions options;
  options.block.x = each.threads;
  options.grid.x = each.blocks;
  ptx::Region region;
  region.at = memory.data();
  region.bytes = memory.size();
  options.regions = {region};
  const std::byte *const address = memory.data();
  options.parameters.resize(sizeof address);
  std::memcpy(options.parameters.data(), &address, sizeof address);
  std::vector<double> rates;
  for (int k = 0; k < 7; ++k) {
    const std::clock_t start = std::clock(); // of this process alone
    MGPU_TRY_ASSIGN(const ptx::LaunchResult result,
                    ptx::run(instance, options));
    const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
    rates.push_back(double(result.instructions) / seconds / 1e6);
  }
  std::nth_element(rates.begin(), rates.begin() + 3, rates.end());
  return rates[3];
}

} // namespace

int main() {
  for (const Class &each : classes) {
    const Result<double> rate = measure(each);
    if (!rate) {
      fmt::print(stderr, "{}: {}\n", each.name, rate.error().message);
      return 1;
    }
    fmt::print("{:20} {:8.2f} M instructions of warps a second\n", each.name,
               *rate);
  }
}
