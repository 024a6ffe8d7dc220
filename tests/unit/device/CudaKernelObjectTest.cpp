// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "kernels/abi/CudaKernelObject.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;

CudaKernelObject example() {
  CudaKernelObject kernel;
  kernel.entry = "saxpy_0";
  kernel.arch = "sm_90";
  kernel.sourceBlock = {100, 3, 1};
  kernel.block = {256, 1, 1};
  kernel.covers = {512, 1, 1};
  kernel.clusterX = 2;
  kernel.takesPart = false;
  kernel.dynamicSharedBytes = 96;
  kernel.awaits = true;
  for (int k = 0; k < 70; ++k)
    kernel.cubin.push_back(std::byte(k));
  return kernel;
}

TEST(CudaKernelObject, RoundTrip) {
  CudaKernelObject kernel = example();
  auto back = decodeCudaKernel("k", encodeCudaKernel(kernel));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->entry, kernel.entry);
  EXPECT_EQ(back->arch, kernel.arch);
  EXPECT_EQ(back->sourceBlock, kernel.sourceBlock);
  EXPECT_EQ(back->block, kernel.block);
  EXPECT_EQ(back->covers, kernel.covers);
  EXPECT_EQ(back->clusterX, kernel.clusterX);
  EXPECT_EQ(back->takesPart, kernel.takesPart);
  EXPECT_EQ(back->dynamicSharedBytes, kernel.dynamicSharedBytes);
  EXPECT_TRUE(back->awaits);
  EXPECT_EQ(back->cubin, kernel.cubin);
}

TEST(CudaKernelObject, RefusesWhatIsCutOffOrForeign) {
  std::vector<std::byte> bytes = encodeCudaKernel(example());
  size_t cubin = example().cubin.size();
  for (size_t size = 0; size + cubin <= bytes.size(); ++size) {
    auto back = decodeCudaKernel("k", std::span(bytes).first(size));
    ASSERT_FALSE(back) << size;
    EXPECT_EQ(back.error().kind, ErrorKind::Invalid);
    EXPECT_NE(back.error().message.find("kernel k"), std::string::npos);
  }
  auto flipped = bytes;
  flipped[7] ^= std::byte(3); // the version
  EXPECT_FALSE(decodeCudaKernel("k", flipped));
  // A dimension of a block, and the blocks of a cluster.
  for (size_t at : {8, 12, 16, 20, 24, 28, 8 + 36}) {
    flipped = bytes;
    flipped[at + 3] = std::byte(1);
    EXPECT_FALSE(decodeCudaKernel("k", flipped)) << at;
  }
}

TEST(CudaKernelObject, BlocksOfALaunch) {
  CudaKernelObject kernel = example();
  auto blocks = kernel.blocksOf({11, 7, 2});
  EXPECT_EQ(blocks.x, 4u); // 1100 threads, 512 to a block, two to a cluster
  EXPECT_EQ(blocks.y, 21u);
  EXPECT_EQ(blocks.z, 2u);
  kernel.clusterX = 1;
  EXPECT_EQ(kernel.blocksOf({11, 7, 2}).x, 3u);
  kernel.covers = {200, 3, 1}; // two blocks of the source
  blocks = kernel.blocksOf({11, 7, 2});
  EXPECT_EQ(blocks.x, 6u);
  EXPECT_EQ(blocks.y, 7u);
  EXPECT_EQ(kernel.blocksOf({0, 7, 2}).x, 0u);
}

} // namespace
