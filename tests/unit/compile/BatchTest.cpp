// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/KernelRecipe.h"

#include "Nvrtc.h"
#include "kernels/abi/CubinElf.h"

namespace mgpu::kernels {
namespace {

const char *const scale = R"(// scale
#ifndef FACTOR
#define FACTOR 1
#endif
static __device__ float factor() { return FACTOR; }
extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= factor(); }
)";

TEST(Batch, MacrosOfOneItemDoNotReachTheNext) {
  std::vector<BatchItem> items{{scale, "scale", "scale_a", {{"FACTOR", "3"}}},
                               {scale, "scale", "scale", {}}};
  std::string text = batchSource(items);
  size_t first = text.find("#define FACTOR 3");
  ASSERT_NE(first, std::string::npos);
  size_t undefined = text.find("#undef FACTOR", first);
  EXPECT_LT(undefined, text.find("namespace mgpu_batch_1"));
  // The default of the second is undefined as well.
  EXPECT_NE(text.find("#undef FACTOR", undefined + 1), std::string::npos);
}

TEST(Batch, GivesEachKernelUnderItsName) {
  MGPU_OPEN_NVRTC(compiler);
  std::vector<BatchItem> items{{scale, "scale", "scale_a", {{"FACTOR", "3"}}},
                               {scale, "scale", "scale_b", {{"FACTOR", "5"}}},
                               {scale, "scale", "scale", {}}};
  auto kernel = compiler->compile({batchSource(items), "batch", {}, "sm_90"});
  ASSERT_TRUE(kernel) << kernel.error().message;
  Cubin cubin = readCubin(kernel->cubin);
  ASSERT_EQ(cubin.entries.size(), 3u);
  for (const BatchItem &item : items) {
    EXPECT_TRUE(kernel->find(item.entryName)) << item.entryName;
    EXPECT_TRUE(cubin.entries.count(item.entryName)) << item.entryName;
  }
}

/// Two ways of a kernel each say their own form.
TEST(Batch, RenamesTheConstantBesideAnEntry) {
  MGPU_OPEN_NVRTC(compiler);
  const std::string source =
      "extern \"C\" __constant__ const unsigned mgpu_form_k[] = {1, BLOCK};\n"
      "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] = BLOCK; }\n";
  std::vector<BatchItem> items{{source, "k", "k_a", {{"BLOCK", "32"}}},
                               {source, "k", "k_b", {{"BLOCK", "64"}}}};
  auto kernel = compiler->compile({batchSource(items), "batch", {}, "sm_90"});
  ASSERT_TRUE(kernel) << kernel.error().message;
  Cubin cubin = readCubin(kernel->cubin);
  EXPECT_EQ(cubin.entries["k_a"].launchForm, (std::vector<uint32_t>{1, 32}));
  EXPECT_EQ(cubin.entries["k_b"].launchForm, (std::vector<uint32_t>{1, 64}));
}

} // namespace
} // namespace mgpu::kernels
