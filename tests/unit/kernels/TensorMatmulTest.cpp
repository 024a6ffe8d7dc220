// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products on tensor cores: the text, whose instructions are functions
// of the processor here (CudaShimMatrix.h), against the body it stands for, in
// the corners of its space; and NVRTC on the same.
#include "CudaTwin.h"
#include "KernelRunner.h"

#include "kernels/compile/CubinElf.h"
#include "kernels/compile/PtxasLog.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace mgpu::kernels {
namespace {

struct TensorCase {
  const char *name;
  int64_t batch, m, n, k;
  const char *type, *sum;
  /// Of A's layout: rows are that much longer than k, and A begins there.
  int64_t pad, offset;

  int64_t rowOfA() const { return k + pad; }
};

constexpr TensorCase cases[] = {
    {"tiny", 1, 1, 1, 1, "bf16", "f32", 0, 0},
    {"ragged", 1, 70, 37, 13, "f16", "f32", 0, 0},
    {"batch", 3, 33, 40, 24, "bf16", "bf16", 0, 0},
    {"view", 1, 65, 72, 40, "f16", "f32", 8, 16},
    {"odd_view", 1, 20, 24, 40, "bf16", "f32", 3, 5},
    {"whole", 1, 160, 160, 96, "f16", "f32", 0, 0},
    {"narrow", 1, 130, 16, 32, "f16", "f16", 0, 0},
};

constexpr Dim3 sourceBlock{16, 4, 1};

Dim3 gridOf(const TensorCase &test) {
  auto blocks = [](int64_t extent, uint32_t threads) {
    return uint32_t((extent + threads - 1) / threads);
  };
  return {blocks(test.n, sourceBlock.x), blocks(test.m, sourceBlock.y),
          uint32_t(test.batch)};
}

/// As the importer writes it: C is first, as its value is loaded first.
std::string textOf(const TensorCase &test,
                   const std::string &columnStride = "1") {
  bool isBatch = test.batch > 1, isWide = std::string(test.sum) == "f32";
  auto typeOf = [&](int64_t rows, int64_t columns, const std::string &element,
                    const std::string &layout) {
    return fmt::format("memref<{}{}x{}x{}{}>",
                       isBatch ? fmt::format("{}x", test.batch) : "", rows,
                       columns, element, layout);
  };
  std::string strided;
  if (test.pad || test.offset || columnStride != "1")
    strided = fmt::format(", strided<[{}, {}], offset: {}>", test.rowOfA(),
                          columnStride, test.offset);
  std::string a = typeOf(test.m, test.k, test.type, strided),
              b = typeOf(test.k, test.n, test.type, ""),
              c = typeOf(test.m, test.n, test.sum, "");
  std::string z = isBatch ? "%z, " : "";
  std::string extended =
      isWide ? fmt::format("%xs = arith.extf %x : {0} to f32\n"
                           "%ys = arith.extf %y : {0} to f32\n"
                           "%p = arith.mulf %xs, %ys : f32\n",
                           test.type)
             : fmt::format("%p = arith.mulf %x, %y : {}\n", test.type);
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
      {8}
      %s = arith.addf %sum, %p : {7}
      scf.yield %s : {7}
    }}
    memref.store %new, %c[{6}%row, %column] : {2}
  }}
  return
}}
)",
      a, b, c, test.m, test.n, test.k, z, test.sum, extended);
}

/// An element of `type` as bytes; `x` is exact in it.
void put(std::byte *at, const std::string &type, float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (type == "f32") {
    std::memcpy(at, &x, 4);
  } else if (type == "bf16") {
    uint16_t upper = uint16_t(bits >> 16);
    std::memcpy(at, &upper, 2);
  } else {
    _Float16 half = _Float16(x);
    std::memcpy(at, &half, 2);
  }
}

/// Into f32, numbers whose sums round, as their products are exact; else whole
/// ones whose sums stay exact, as a narrow C rounds each sum of the body. None
/// is 0: the text adds zeros, and -0 + 0 is 0.
std::vector<std::byte> valuesOf(size_t count, const std::string &type,
                                bool isExact, uint32_t seed) {
  std::vector<float> values = randomFloats(count, seed);
  size_t width = type == "f32" ? 4 : 2;
  // One more element, so that a test may begin at an odd place.
  std::vector<std::byte> bytes((count + 1) * width);
  for (size_t k = 0; k < count; ++k) {
    float x = values[k];
    if (isExact)
      x = x < 0 ? -1 : 1;
    else if (type == "bf16")
      x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xffff0000u);
    put(&bytes[k * width], type, x == 0 ? 1 : x);
  }
  return bytes;
}

class TensorMatmul : public testing::Test {
protected:
  /// Every case under its defaults and some corners of its space.
  void SetUp() override {
    for (const TensorCase &test : cases) {
      auto [kernel, space] =
          tensorText(textOf(test), {test.name, "", sourceBlock, gridOf(test)});
      std::string name = test.name;
      ASSERT_TRUE(space.check(space.defaults));
      twins.add({name + "_default", kernel, space, space.defaults});
      std::vector<planner::KernelConfig> corners = cornersOf(space, 3);
      for (size_t k = 0; k < corners.size(); ++k)
        twins.add({fmt::format("{}_{}", name, k), kernel, space, corners[k]});
    }
    ASSERT_GT(twins.configs.size(), 2 * std::size(cases));
  }
  CudaTwins twins;
};

TEST_F(TensorMatmul, TilesGiveTheBitsOfTheBody) {
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const TensorCase &test : cases) {
    bool isExact = std::string(test.sum) != "f32";
    size_t numA = size_t(test.offset + test.batch * test.m * test.rowOfA()),
           numB = size_t(test.batch * test.k * test.n),
           numC = size_t(test.batch * test.m * test.n);
    auto a = valuesOf(numA, test.type, isExact, 1),
         b = valuesOf(numB, test.type, isExact, 2),
         initial = valuesOf(numC, test.sum, isExact, 3);
    auto host = LoadedKernel::fromText(textOf(test), sourceBlock);
    ASSERT_TRUE(host) << test.name << ": " << host.error().message;
    auto expected = initial;
    (*host)->run(gridOf(test), {arg(expected), arg(a), arg(b)});
    EXPECT_NE(expected, initial);
    auto run = [&](const TwinConfig &config, uint64_t first) {
      auto got = initial;
      twins.run(config.entry, gridOf(test), {arg(got), first, arg(b)});
      EXPECT_TRUE(got == expected);
    };
    for (const TwinConfig &config : twins.configs) {
      if (config.kernel.name != test.name)
        continue;
      SCOPED_TRACE(config.entry + " " + planner::toText(config.config));
      run(config, arg(a));
      // Where no address of 16 bytes is a multiple of 16.
      std::memmove(a.data() + 2, a.data(), numA * 2);
      run(config, arg(a) + 2);
      std::memmove(a.data(), a.data() + 2, numA * 2);
    }
  }
}

TEST_F(TensorMatmul, CompilesWithItsSharedMemoryAndNoSpill) {
  MGPU_OPEN_NVRTC(compiler);
  std::vector<CompileJob> jobs;
  for (const char *arch : {"sm_80", "sm_90", "sm_100"})
    jobs.push_back({twins.source(), "matmul.cu", {"--fmad=false"}, arch});
  auto results = compiler->compileAll(jobs);
  for (size_t job = 0; job < jobs.size(); ++job) {
    ASSERT_TRUE(results[job]) << results[job].error().message;
    EXPECT_FALSE(hasWarning(results[job]->log)) << results[job]->log;
    Cubin cubin = readCubin(results[job]->cubin);
    for (const TwinConfig &config : twins.configs) {
      SCOPED_TRACE(jobs[job].arch + " " + config.entry + " " +
                   planner::toText(config.config));
      const EntryUsage *usage = results[job]->find(config.entry);
      ASSERT_TRUE(usage);
      EXPECT_EQ(usage->sharedBytes, config.space.sharedBytesOf(config.config));
      EXPECT_EQ(cubin.entries[config.entry].registers, usage->registers);
      EXPECT_EQ(cubin.entries[config.entry].parameters.size(), 4u);
      if (config.config == config.space.defaults)
        EXPECT_EQ(usage->spillStoreBytes + usage->spillLoadBytes, 0u);
    }
  }
}

TEST(TensorMatmulText, SaysWhatItIsNotFor) {
  EXPECT_EQ(tensorRefusal(textOf(cases[1])), "");
  EXPECT_EQ(tensorRefusal(textOf(cases[1], "2")),
            "a row of A or B is not contiguous");
  TensorCase plain = cases[1];
  plain.type = "f32";
  std::string text = textOf(plain);
  for (size_t at; (at = text.find("arith.extf")) != std::string::npos;)
    text.replace(at, text.find('\n', at) - at, "arith.addf %old, %old : f32");
  EXPECT_EQ(tensorRefusal(text), "-");
}

TEST(TensorMatmulText, WarpsDivideABlock) {
  auto [kernel, space] = tensorText(
      textOf(cases[5]), {"whole", "", sourceBlock, gridOf(cases[5])});
  using P = planner::KernelParameter;
  planner::KernelConfig config = space.defaults;
  config[P::TileY] = 2; // 16 rows for two warps one above the other
  auto refused = space.check(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "8 warps, 2 of them one above the other, do not divide 128 columns "
            "and 16 rows in tiles of 16 x 16");
  config.tunables[2] = 1;
  config[P::TileX] = 4;
  EXPECT_TRUE(space.check(config)) << space.check(config).error().message;
  config = space.defaults;
  config.tunables[1] = 4; // stages: 64 KiB
  EXPECT_FALSE(space.check(config));
}

} // namespace
} // namespace mgpu::kernels
