// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products on tensor cores: the text, whose instructions are functions
// of the processor here (CudaShimMatrix.inc), against the body it stands for,
// in the corners of its space; and NVRTC on the same.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "ProductCases.h"

#include "tests/unit/Sweep.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace mgpu::kernels {
namespace {

constexpr ProductCase tensorCases[] = {
    {"tiny", 1, 1, 1, 1, "bf16", "f32", 0, 0},
    {"ragged", 1, 70, 37, 13, "f16", "f32", 0, 0},
    {"batch", 3, 33, 40, 24, "bf16", "bf16", 0, 0},
    {"view", 1, 65, 72, 40, "f16", "f32", 8, 16},
    {"odd_view", 1, 20, 24, 40, "bf16", "f32", 3, 5},
    {"whole", 1, 160, 160, 96, "f16", "f32", 0, 0},
    {"narrow", 1, 130, 16, 32, "f16", "f16", 0, 0},
    {"fused", 1, 70, 40, 24, "bf16", "f32", 0, 0, true},
    {"fused_batch", 3, 33, 37, 24, "f16", "f16", 0, 0, true},
    {"fused_view", 1, 20, 24, 40, "bf16", "bf16", 3, 5, true},
    {"turned", 1, 70, 136, 40, "bf16", "f32", 0, 0, false, true},
    {"turned_ragged", 1, 70, 37, 13, "f16", "f32", 0, 0, false, true},
    {"turned_batch", 3, 33, 72, 88, "f16", "f16", 0, 0, true, true},
};

class TensorMatmul : public testing::Test {
protected:
  /// Every case under its defaults and some corners of its space.
  void SetUp() override {
    for (const ProductCase &test : tensorCases) {
      auto [kernel, space] =
          tensorText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
      std::string name = test.name;
      ASSERT_TRUE(space.check(space.defaults));
      twins.add({name + "_default", kernel, space, space.defaults});
      std::vector<KernelConfig> corners = cornersOf(space, sweep(2, 3));
      for (size_t k = 0; k < corners.size(); ++k)
        twins.add({fmt::format("{}_{}", name, k), kernel, space, corners[k]});
    }
    ASSERT_GT(twins.configs.size(), 2 * std::size(tensorCases));
  }
  CudaTwins twins;
};

TEST_F(TensorMatmul, TilesGiveTheBitsOfTheBody) {
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const ProductCase &test : tensorCases)
    checkBitsOfTheBody(test, twins, /*atOddPlaces=*/true);
}

TEST(TensorMatmulCornersOfEach, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  const std::vector<std::string> archs{"sm_80", "sm_90", "sm_100"};
  CornerCheck check;
  for (const ProductCase &test : tensorCases) {
    auto [kernel, space] =
        tensorText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
    check.add(kernel, space, 1,
              takesAllCorners()
                  ? archs
                  : std::vector{archs[(&test - tensorCases) % 3]});
  }
  check.run(*compiler);
}

/// At legal points ptxas leaves sums in registers. With MGPU_CORNERS=all all
/// points of large products, which take the largest tiles.
class TensorMatmulCorners : public testing::TestWithParam<ProductCase> {};

TEST_P(TensorMatmulCorners, NoPointSpills) {
  MGPU_OPEN_NVRTC(compiler);
  const ProductCase &test = GetParam();
  auto [kernel, space] =
      tensorText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
  CornerCheck check;
  check.addPoints(kernel, space, 199, "sm_90");
  check.run(*compiler);
}

INSTANTIATE_TEST_SUITE_P(
    Large, TensorMatmulCorners,
    testing::Values(
        ProductCase{"large", 1, 4096, 4096, 64, "bf16", "f32", 0, 0},
        ProductCase{"large_fused", 1, 4096, 4096, 72, "f16", "f16", 0, 0, true},
        ProductCase{"large_turned", 3, 1001, 1001, 77, "bf16", "f32", 0, 0,
                    false, true}));

TEST(TensorMatmulText, SaysWhatItIsNotFor) {
  EXPECT_EQ(tensorRefusal(textOf(tensorCases[1])), "");
  EXPECT_EQ(tensorRefusal(textOf(tensorCases[1], "2")),
            "a row of A or B is not contiguous");
  ProductCase plain = tensorCases[1];
  plain.type = "f32";
  std::string text = textOf(plain);
  for (size_t at; (at = text.find("arith.extf")) != std::string::npos;)
    text.replace(at, text.find('\n', at) - at, "arith.addf %old, %old : f32");
  EXPECT_EQ(tensorRefusal(text), "-");
}

TEST(TensorMatmulText, AProductOfFewRowsHasItsChoices) {
  for (int64_t rows : {1, 8}) {
    const ProductCase test{"few_rows", 1,     rows, 8192, 2048,
                           "bf16",     "f32", 0,    0};
    auto space =
        tensorText(textOf(test), {test.name, "", sourceBlock, gridOf(test)})
            .second;
    EXPECT_GT(space.legal().size(), 50u) << rows;
    for (const KernelConfig &config : space.legal())
      EXPECT_LE(space.covered(config).y, space.covered(space.defaults).y)
          << toText(config);
  }
}

TEST(TensorMatmulText, WarpsDivideABlock) {
  auto [kernel, space] =
      tensorText(textOf(tensorCases[5]),
                 {"whole", "", sourceBlock, gridOf(tensorCases[5])});
  using P = KernelParameter;
  KernelConfig config = space.defaults;
  config[P::TileY] = 2; // 16 rows for two warps one above the other
  auto refused = space.check(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the rows of warps do not divide 16 rows of a block in tiles of "
            "16 x 16");
  config.tunables[2] = 1;
  config[P::TileX] = 4;
  EXPECT_TRUE(space.check(config)) << space.check(config).error().message;
  config = space.defaults;
  config.tunables[1] = 4; // stages: 64 KiB
  EXPECT_FALSE(space.check(config));
}

} // namespace
} // namespace mgpu::kernels
