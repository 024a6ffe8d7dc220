// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace mgpu::kernels {
namespace {

std::vector<float> randomFloats(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-8, 8);
  std::vector<float> result(count);
  for (float &value : result)
    value = values(engine);
  return result;
}

std::unique_ptr<LoadedKernel> load(const std::string &text, Dim3 block,
                                   const std::string &cpu = "native") {
  auto kernel = LoadedKernel::fromText(text, block, cpu);
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().message);
  return kernel ? std::move(*kernel) : nullptr;
}

template <typename T>
bool sameBits(const std::vector<T> &a, const std::vector<T> &b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

const char *const saxpyBody = R"(
  %i = gpu.global_id x
  %in = arith.cmpi slt, %i, %n : index
  scf.if %in {
    %xv = memref.load %x[%i] : memref<1000xf32>
    %yv = memref.load %y[%i] : memref<1000xf32>
    %p = arith.mulf %a, %xv : f32
    %s = arith.addf %p, %yv : f32
    memref.store %s, %y[%i] : memref<1000xf32>
  })";
const char *const saxpyArguments =
    "%x: memref<1000xf32>, %y: memref<1000xf32>, %a: f32, %n: index";

TEST(HostKernel, SaxpyWithBoundCheckOnEveryLevel) {
  for (const char *cpu : {"native", "x86-64-v2", "x86-64-v3"}) {
    auto kernel = load(module(saxpyArguments, saxpyBody), {128}, cpu);
    ASSERT_TRUE(kernel);
    auto x = randomFloats(1000, 1), y = randomFloats(1000, 2), expected = y;
    volatile float product; // one rounding per operation, no contraction
    for (int i = 0; i < 991; ++i) {
      product = 1.7f * x[i];
      expected[i] = product + y[i];
    }
    kernel->run({8}, {arg(x), arg(y), arg(1.7f), arg(int64_t(991))});
    EXPECT_TRUE(sameBits(y, expected)) << cpu;
  }
}

TEST(HostKernel, RunsOnlyTheBlocksAskedFor) {
  auto kernel = load(module(saxpyArguments, saxpyBody), {100});
  ASSERT_TRUE(kernel);
  std::vector<float> x(1000, 1), y(1000, 0);
  kernel->run({10}, {arg(x), arg(y), arg(2.0f), arg(int64_t(1000))}, 3, 5);
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(y[i], i >= 300 && i < 500 ? 2.0f : 0.0f) << i;
}

} // namespace
} // namespace mgpu::kernels
