// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code says how it is launched, and no image launches it otherwise.
#include "kernels/abi/LaunchForm.h"

#include "Nvrtc.h"
#include "kernels/compile/CompileTexts.h"
#include "kernels/compile/KernelRecipe.h"

namespace mgpu::kernels {
namespace {

using P = KernelParameter;

/// As an emitter writes it: any block, each thread MGPU_VECTOR elements.
const char *const twice = R"(// twice
#ifndef MGPU_BLOCK_X
#define MGPU_BLOCK_X 256
#endif
#ifndef MGPU_VECTOR
#define MGPU_VECTOR 1
#endif
#ifndef MGPU_PDL
#define MGPU_PDL 0
#endif
struct MgpuLaunch { unsigned of[12]; };
extern "C" __constant__ const unsigned mgpu_form_twice[] = {
    1, MGPU_BLOCK_X, 1, 1, MGPU_BLOCK_X * MGPU_VECTOR, 1, 1, 1, 1, 1, 0, MGPU_PDL};
extern "C" __global__ void __launch_bounds__(MGPU_BLOCK_X) twice(float *x, const MgpuLaunch launch) {
  for (int k = 0; k < MGPU_VECTOR; ++k)
    x[(blockIdx.x * MGPU_BLOCK_X + threadIdx.x) * MGPU_VECTOR + k] *= 2;
}
)";

/// The text, whose space's default is wide: 64 threads of 4 elements each.
CudaText wideText(const std::string &source = twice) {
  CudaText text;
  text.name = text.image.entry = "twice";
  text.image.blob = source;
  text.image.sourceBlock = {256, 1, 1};
  text.image.parameterBytes = {8};
  KernelSpace space;
  space.target = KernelTarget::Cuda;
  space.block = {256, 1, 1};
  space.covers[0] = Formula(P::BlockX) * P::Vector;
  space.defaults[P::BlockX] = 64;
  space.defaults[P::Vector] = 4;
  space.offerDefaults("");
  text.space = std::move(space);
  return text;
}

Result<KernelImage> compiledImage(const KernelRecipe &recipe,
                                  const NvrtcCompiler &compiler) {
  MGPU_TRY_ASSIGN(CompiledKernel code, compiler.compile(recipe.job()));
  return recipe.imageOf(code, readCubin(code.cubin));
}

TEST(LaunchForm, IsThatOfTheRecipeForCodeMadeAloneOrWithOthers) {
  MGPU_OPEN_NVRTC(compiler);
  const KernelRecipe recipe = recipeOf(wideText(), "sm_90");
  EXPECT_EQ(recipe.image.block, (Dim3{64, 1, 1}));
  EXPECT_EQ(recipe.image.covers, (Dim3{256, 1, 1}));
  auto alone = compiledImage(recipe, *compiler);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_TRUE(checkLaunchForm("twice", *alone, readCubin(alone->bytes())));
  for (Programs programs : {Programs::Shared, Programs::OneEach}) {
    auto made = compileTexts({wideText()}, "sm_90", nullptr, {}, programs);
    ASSERT_TRUE(made && made->front());
    const Cubin cubin = readCubin(made->front()->program->cubin);
    EXPECT_TRUE(checkLaunchForm("twice", recipe.image, cubin));
  }
}

/// A maker that forgets a macro makes code of another form than its image.
TEST(LaunchForm, CodeWithoutOneOfItsMacrosIsRefused) {
  MGPU_OPEN_NVRTC(compiler);
  const KernelRecipe whole = recipeOf(wideText(), "sm_90");
  for (const char *macro : {"MGPU_VECTOR", "MGPU_BLOCK_X"}) {
    KernelRecipe recipe = whole;
    std::erase_if(recipe.macros,
                  [&](const auto &each) { return each.first == macro; });
    ASSERT_LT(recipe.macros.size(), whole.macros.size());
    auto image = compiledImage(recipe, *compiler);
    ASSERT_FALSE(image) << macro;
    EXPECT_EQ(image.error().kind, ErrorKind::Internal);
    EXPECT_NE(image.error().message.find("would be launched with blocks of "
                                         "64x1x1 threads that cover 256x1x1"),
              std::string::npos)
        << image.error().message;
  }
}

TEST(LaunchForm, AnImageThatSaysOtherwiseIsRefused) {
  MGPU_OPEN_NVRTC(compiler);
  auto made = compiledImage(recipeOf(wideText(), "sm_90"), *compiler);
  ASSERT_TRUE(made) << made.error().message;
  const Cubin cubin = readCubin(made->bytes());
  std::vector<KernelImage> wrong(5, *made);
  wrong[0].block = {256, 1, 1};
  wrong[1].covers = {64, 1, 1};
  wrong[2].cluster = {2, 1, 1};
  wrong[3].dynamicSharedBytes = 16;
  wrong[4].awaits = true;
  for (const KernelImage &image : wrong) {
    auto checked = checkLaunchForm("twice", image, cubin);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().kind, ErrorKind::Invalid);
  }
}

TEST(LaunchForm, EmittedCodeThatSaysNothingIsRefusedAndAUsersIsNot) {
  MGPU_OPEN_NVRTC(compiler);
  std::string silent = twice;
  const size_t from = silent.find("extern \"C\" __constant__");
  silent.erase(from, silent.find("extern \"C\" __global__") - from);
  CudaText text = wideText(silent);
  auto image = compiledImage(recipeOf(text, "sm_90"), *compiler);
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().message.find("does not say how it is to be launched"),
            std::string::npos)
      << image.error().message;
  text.image.takesPart = false; // its author's launch
  text.image.parameterBytes = {8, 48};
  text.image.block = text.image.covers = {256, 1, 1};
  auto own = compiledImage(recipeOf(text, "sm_90"), *compiler);
  EXPECT_TRUE(own) << own.error().message;
}

} // namespace
} // namespace mgpu::kernels
