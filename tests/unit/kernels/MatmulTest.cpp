// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products: the tiled text against the body it stands for, in the
// corners of its space, on numbers whose sums round; and NVRTC on the same.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "ProductCases.h"

#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace mgpu::kernels {
namespace {

constexpr ProductCase cases[] = {
    {"tiny", 1, 1, 1, 1, "f32", "f32", 0, 0},
    {"ragged", 1, 70, 37, 13, "f32", "f32", 0, 0},
    {"batch", 3, 33, 40, 24, "f32", "f32", 0, 0},
    {"view", 1, 65, 20, 40, "f32", "f32", 3, 5},
    {"wide", 1, 9, 130, 33, "f64", "f64", 1, 0},
    {"fused", 1, 70, 37, 13, "f32", "f32", 0, 0, true},
    {"fused_batch", 3, 33, 40, 24, "f64", "f64", 0, 0, true},
    {"turned", 1, 70, 37, 13, "f32", "f32", 0, 0, false, true},
    {"turned_batch", 3, 33, 40, 24, "f64", "f64", 0, 0, true, true},
};

class Matmul : public testing::Test {
protected:
  /// Every case under its defaults and some corners of its space.
  void SetUp() override {
    for (const ProductCase &test : cases) {
      auto kernel = emitCudaText(textOf(test),
                                 {test.name, "", sourceBlock, gridOf(test)});
      ASSERT_TRUE(kernel) << kernel.error().message;
      ASSERT_NE(kernel->image.blob.find("tileA"), std::string::npos)
          << test.name << " is not taken for a matrix product";
      auto space = kernelSpaceOf(specOf(textOf(test), sourceBlock),
                                 gridOf(test), KernelTarget::Cuda);
      ASSERT_TRUE(space) << space.error().message;
      std::string name = test.name;
      twins.add({name + "_default", *kernel, *space, space->defaults});
      std::vector<KernelConfig> corners = cornersOf(*space, 3);
      for (size_t k = 0; k < corners.size(); ++k)
        twins.add({fmt::format("{}_{}", name, k), *kernel, *space, corners[k]});
    }
    ASSERT_GT(twins.configs.size(), 2 * std::size(cases));
  }
  CudaTwins twins;
};

TEST_F(Matmul, TilesGiveTheBitsOfTheBody) {
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const ProductCase &test : cases)
    checkBitsOfTheBody(test, twins);
}

TEST(MatmulCorners, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  const std::vector<std::string> archs{"sm_80", "sm_90", "sm_100"};
  CornerCheck check;
  for (const ProductCase &test : cases) {
    auto kernel =
        emitCudaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto space = kernelSpaceOf(specOf(textOf(test), sourceBlock), gridOf(test),
                               KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    check.add(*kernel, *space, 1,
              takesAllCorners() ? archs
                                : std::vector{archs[(&test - cases) % 3]});
  }
  check.run(*compiler);
}

TEST(MatmulText, IsForProductsAlone) {
  const std::string text = textOf(cases[1]);
  auto emit = [&](std::string changed) {
    return emitCudaText(changed, {"k", "", sourceBlock, gridOf(cases[1])});
  };
  // Without C there are no sums that a text of tiles could begin with.
  const size_t last = text.rfind(", <argument = 0"),
               end = text.find("]>", last);
  auto kernel = emit(std::string(text).erase(last, end - last));
  ASSERT_TRUE(kernel) << kernel.error().message;
  EXPECT_EQ(kernel->image.blob.find("tileA"), std::string::npos);
  // Other matrices than the arguments' are refused.
  for (const char *argument : {"argument = 0", "argument = 2", "argument = 7"})
    EXPECT_FALSE(emit(
        std::string(text).replace(text.find("argument = 1"), 12, argument)))
        << argument;
}

} // namespace
} // namespace mgpu::kernels
