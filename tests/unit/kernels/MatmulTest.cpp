// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products: the tiled text against the body it stands for, in the
// corners of its space, on numbers whose sums round; and NVRTC on the same.
#include "CornerCheck.h"
#include "KernelRunner.h"

#include "kernels/emit/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace mgpu::kernels {
namespace {

struct MatmulCase {
  const char *name;
  int64_t batch, m, n, k;
  const char *type;
  /// Of A's layout: rows are that much longer than k, and A begins there.
  int64_t pad, offset;

  int64_t rowOfA() const { return k + pad; }
};

constexpr MatmulCase cases[] = {
    {"tiny", 1, 1, 1, 1, "f32", 0, 0},
    {"ragged", 1, 70, 37, 13, "f32", 0, 0},
    {"batch", 3, 33, 40, 24, "f32", 0, 0},
    {"view", 1, 65, 20, 40, "f32", 3, 5},
    {"wide", 1, 9, 130, 33, "f64", 1, 0},
};

constexpr Dim3 sourceBlock{16, 4, 1};

Dim3 gridOf(const MatmulCase &test) {
  auto blocks = [](int64_t extent, uint32_t threads) {
    return uint32_t((extent + threads - 1) / threads);
  };
  return {blocks(test.n, sourceBlock.x), blocks(test.m, sourceBlock.y),
          uint32_t(test.batch)};
}

/// As the importer writes it: C is first, as its value is loaded first.
std::string textOf(const MatmulCase &test) {
  bool isBatch = test.batch > 1;
  auto typeOf = [&](int64_t rows, int64_t columns, const std::string &layout) {
    return fmt::format("memref<{}{}x{}x{}{}>",
                       isBatch ? fmt::format("{}x", test.batch) : "", rows,
                       columns, test.type, layout);
  };
  std::string strided;
  if (test.pad || test.offset)
    strided = fmt::format(", strided<[{}, 1], offset: {}>", test.rowOfA(),
                          test.offset);
  std::string a = typeOf(test.m, test.k, strided),
              b = typeOf(test.k, test.n, ""), c = typeOf(test.m, test.n, "");
  std::string z = isBatch ? "%z, " : "";
  return fmt::format(
      R"(func.func @entry(%c: {2}, %a: {0}, %b: {1}) attributes {{mgpu.matmul = array<i64: 1, 2, 0>}} {{
  %z = gpu.global_id z
  %row = gpu.global_id y
  %column = gpu.global_id x
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = arith.constant {3} : index
  %n = arith.constant {4} : index
  %k = arith.constant {5} : index
  %insideRows = arith.cmpi slt, %row, %m : index
  %insideColumns = arith.cmpi slt, %column, %n : index
  %inside = arith.andi %insideRows, %insideColumns : i1
  scf.if %inside {{
    %old = memref.load %c[{6}%row, %column] : {2}
    %new = scf.for %at = %c0 to %k step %c1 iter_args(%sum = %old) -> ({7}) {{
      %x = memref.load %a[{6}%row, %at] : {0}
      %y = memref.load %b[{6}%at, %column] : {1}
      %p = arith.mulf %x, %y : {7}
      %s = arith.addf %sum, %p : {7}
      scf.yield %s : {7}
    }}
    memref.store %new, %c[{6}%row, %column] : {2}
  }}
  return
}}
)",
      a, b, c, test.m, test.n, test.k, z, test.type);
}

/// Numbers of which hardly a sum is exact, and zeros of both signs.
std::vector<std::byte> valuesOf(size_t count, bool isDouble, uint32_t seed) {
  std::vector<float> values = randomFloats(count, seed);
  for (size_t k = 3; k < count; k += 5)
    values[k] = k % 2 ? -0.0f : 0.0f;
  std::vector<double> wide(values.begin(), values.end());
  std::vector<std::byte> bytes(count * (isDouble ? 8 : 4));
  std::memcpy(bytes.data(),
              isDouble ? static_cast<void *>(wide.data()) : values.data(),
              bytes.size());
  return bytes;
}

class Matmul : public testing::Test {
protected:
  /// Every case under its defaults and some corners of its space.
  void SetUp() override {
    for (const MatmulCase &test : cases) {
      auto kernel = emitCudaText(textOf(test),
                                 {test.name, "", sourceBlock, gridOf(test)});
      ASSERT_TRUE(kernel) << kernel.error().message;
      ASSERT_NE(kernel->source.find("tileA"), std::string::npos)
          << test.name << " is not taken for a matrix product";
      auto space = kernelSpaceOf(specOf(textOf(test), sourceBlock),
                                 gridOf(test), planner::KernelTarget::Cuda);
      ASSERT_TRUE(space) << space.error().message;
      std::string name = test.name;
      twins.add({name + "_default", *kernel, *space, space->defaults});
      std::vector<planner::KernelConfig> corners = cornersOf(*space, 3);
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
  for (const MatmulCase &test : cases) {
    bool isDouble = std::string(test.type) == "f64";
    size_t numA = size_t(test.offset + test.batch * test.m * test.rowOfA()),
           numB = size_t(test.batch * test.k * test.n),
           numC = size_t(test.batch * test.m * test.n);
    auto a = valuesOf(numA, isDouble, 1), b = valuesOf(numB, isDouble, 2),
         initial = valuesOf(numC, isDouble, 3);
    auto host = LoadedKernel::fromText(textOf(test), sourceBlock);
    ASSERT_TRUE(host) << test.name << ": " << host.error().message;
    auto expected = initial;
    (*host)->run(gridOf(test), {arg(expected), arg(a), arg(b)});
    EXPECT_NE(expected, initial);
    for (const TwinConfig &config : twins.configs) {
      if (config.kernel.name != test.name)
        continue;
      SCOPED_TRACE(config.entry + " " + planner::toText(config.config));
      auto got = initial;
      twins.run(config.entry, gridOf(test), {arg(got), arg(a), arg(b)});
      EXPECT_TRUE(got == expected);
    }
  }
}

TEST(MatmulCorners, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  const std::vector<std::string> archs{"sm_80", "sm_90", "sm_100"};
  CornerCheck check;
  for (const MatmulCase &test : cases) {
    auto kernel =
        emitCudaText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto space = kernelSpaceOf(specOf(textOf(test), sourceBlock), gridOf(test),
                               planner::KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    check.add(*kernel, *space, 1,
              takesAllCorners() ? archs
                                : std::vector{archs[(&test - cases) % 3]});
  }
  check.run(*compiler);
}

TEST(MatmulText, IsForProductsAlone) {
  auto textWith = [](const std::string &positions) {
    std::string text = textOf(cases[1]);
    size_t at = text.find("array<i64: 1, 2, 0>");
    return text.replace(at, 19, positions);
  };
  for (const char *positions :
       {"array<i64: 0, 1, 2>", "array<i64: 1, 2>", "array<i64: 1, 2, 7>",
        "array<i64: 1, 1, 0>", "\"no\""}) {
    auto kernel = emitCudaText(textWith(positions),
                               {"k", "", sourceBlock, gridOf(cases[1])});
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_EQ(kernel->source.find("tileA"), std::string::npos) << positions;
  }
}

} // namespace
} // namespace mgpu::kernels
