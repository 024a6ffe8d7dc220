// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What both emitters rewrite alike, against the same in C++: their agreement
// alone would not show an error there.
#include "KernelCases.h"
#include "KernelRunner.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mgpu::kernels {
namespace {

TEST(Normalise, ParallelLoopsRunInOrder) {
  const KernelCase &test = kernelCase("parallel");
  auto kernel = load(test.text, test.block);
  ASSERT_TRUE(kernel);
  auto x = randomFloats(768, 3);
  std::vector<float> sums(128), copies(320), expected(128), expectedCopies(320);
  for (int i = 0; i < 64; ++i) {
    volatile float sum = 0, difference = 0, product;
    for (int k = 0; k < 12; ++k) {
      float v = x[i * 12 + k];
      sum = sum + v;
      product = difference * v;
      difference = v - product;
    }
    expected[2 * i] = sum;
    expected[2 * i + 1] = difference;
    expectedCopies[5 * i + 1] = expectedCopies[5 * i + 3] = sum;
  }
  kernel->run(test.grid, {arg(x), arg(sums), arg(copies)});
  EXPECT_TRUE(sameBits(sums, expected));
  EXPECT_TRUE(sameBits(copies, expectedCopies));
}

TEST(Normalise, ClustersAreOfOneBlock) {
  const KernelCase &test = kernelCase("clusters");
  auto kernel = load(test.text, test.block);
  ASSERT_TRUE(kernel);
  std::vector<int32_t> out(768), expected(768);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x)
      std::fill_n(expected.begin() + (y * 6 + x) * 32, 32, x * 6 + 1);
  kernel->run(test.grid, {arg(out)});
  EXPECT_EQ(out, expected);
}

TEST(Normalise, AtomicsOnBytes) {
  const KernelCase &test = kernelCase("bytes");
  auto kernel = load(test.text, test.block);
  ASSERT_TRUE(kernel);
  std::vector<int8_t> counts(7, 5), most(3, -128), expected(7, 5);
  for (int i = 0; i < 100; ++i)
    ++expected[size_t(i % 7)];
  kernel->run(test.grid, {arg(counts), arg(most)});
  EXPECT_EQ(counts, expected);
  EXPECT_EQ(most, (std::vector<int8_t>{99, 97, 98}));
}

} // namespace
} // namespace mgpu::kernels
