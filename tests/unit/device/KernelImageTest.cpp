// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "kernels/abi/KernelImage.h"

#include <gtest/gtest.h>

#include <tuple>

namespace {

using namespace mgpu;

kernels::KernelImage example() {
  kernels::KernelImage kernel;
  kernel.entry = "saxpy_0";
  kernel.arch = "sm_90";
  kernel.sourceBlock = {100, 3, 1};
  kernel.block = {256, 1, 1};
  kernel.covers = {512, 1, 1};
  kernel.cluster = {2, 1, 1};
  kernel.takesPart = false;
  kernel.dynamicSharedBytes = 96;
  kernel.awaits = true;
  kernel.parameterBytes = {8, 128, 4};
  kernel.argumentAlignment = {16, 1, 1};
  kernel.tensorMaps = {{1,
                        64,
                        ElementType::BF16,
                        {64, 32, 1, 2},
                        {128, 4096, 4096},
                        {64, 8, 1, 2}}};
  kernel.product =
      kernels::MatrixProduct{ElementType::F16,
                             ElementType::F32,
                             2,
                             3,
                             4,
                             5,
                             {{{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 7, 8, 9}}},
                             true,
                             true};
  kernel.workspaceBytes = 1 << 20;
  for (int k = 0; k < 70; ++k)
    kernel.blob.push_back(char(k));
  return kernel;
}

/// The example with the first `from` of its header replaced.
std::vector<std::byte> changed(const std::string &from, const std::string &to) {
  std::vector<std::byte> bytes = kernels::encodeImage(example());
  auto parts = kernels::unframeBytes(bytes);
  std::string header(parts->first);
  const size_t at = header.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << header;
  return kernels::frameBytes(header.replace(at, from.size(), to),
                             parts->second);
}

/// Images of older versions have tensor maps of three dimensions.
TEST(KernelImage, OuterDimensionsWereAddedLater) {
  auto back = kernels::decodeImage("k", changed("\"outer_sizes\":[2,0],", ""));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->tensorMaps[0].rank(), 3u);
  EXPECT_EQ(example().tensorMaps[0].rank(), 4u);
}

/// Images of older versions ask nothing of their arguments.
TEST(KernelImage, AlignmentWasAddedLater) {
  kernels::KernelImage older = example();
  older.argumentAlignment.clear();
  auto back = kernels::decodeImage(
      "k", changed("\"argument_alignment\":[16,1,1],", ""));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, older);
  for (const char *wrong : {"[3,1,1]", "[0,1,1]", "[512,1,1]", "[-1]", "16"})
    EXPECT_FALSE(kernels::decodeImage("k", changed("[16,1,1]", wrong)))
        << wrong;
}

TEST(KernelImage, RoundTrip) {
  kernels::KernelImage small;
  small.entry = "k";
  small.blob = "x";
  kernels::KernelImage sparse = small;
  sparse.sparse.emplace();
  sparse.sparse->kind = kernels::SparseProduct::Sampled;
  sparse.sparse->entries = 7;
  sparse.sparse->second = {3, 64};
  for (const kernels::KernelImage &kernel : {example(), small, sparse}) {
    auto back = kernels::decodeImage("k", kernels::encodeImage(kernel));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, kernel);
  }
}

TEST(KernelImage, RefusesWhatIsCutOffOrForeign) {
  std::vector<std::byte> bytes = kernels::encodeImage(example());
  size_t blob = example().blob.size();
  for (size_t size = 0; size + blob <= bytes.size(); ++size) {
    auto back = kernels::decodeImage("k", std::span(bytes).first(size));
    ASSERT_FALSE(back) << size;
    EXPECT_EQ(back.error().kind, ErrorKind::Invalid);
    EXPECT_NE(back.error().message.find("kernel k"), std::string::npos);
  }
  auto flipped = bytes;
  flipped[7] ^= std::byte(3); // the version
  EXPECT_FALSE(kernels::decodeImage("k", flipped));
  for (size_t at = 0; at < bytes.size(); ++at) { // any, but no crash
    flipped = bytes;
    flipped[at] ^= std::byte(0xff);
    (void)kernels::decodeImage("k", flipped);
  }
}

TEST(KernelImage, AHeaderThatCannotBeIsRefusedWithItsField) {
  for (auto [from, to, field] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"[256,1,1]", "[2048,1,1]", "block"},
           {"[256,1,1]", "[256,1]", "block"},
           {"[256,1,1]", "[256,1,0]", "block"},
           {"[256,1,1]", "[64,64,1]", "block"},
           {"[256,1,1]", "[256.5,1,1]", "block"},
           {"[256,1,1]", "[-256,1,1]", "block"},
           {"[256,1,1]", "[4294967552,1,1]", "block"},
           {"[100,3,1]", "[100,0,1]", "source_block"},
           {"[512,1,1]", "[512,1,0]", "covers"},
           {"\"cluster_x\":2", "\"cluster_x\":17", "cluster_x"},
           {"\"cluster_x\":2", "\"cluster_x\":0", "cluster_x"},
           {"\"takes_part\":false", "\"takes_part\":0", "takes_part"},
           {"\"awaits\":true", "\"await\":true", "awaits"},
           {"\"awaits\":true", "\"awaits\":true,\"more\":1", "?"},
           {"\"saxpy_0\"", "[]", "entry"},
           {"\"bf16\"", "\"bf17\"", "tensor_maps.type"},
           {"[128,4096]", "[128,4096,1]", "tensor_maps.stride_bytes"},
           {"\"k\":4", "\"k\":0", "product.k"},
           {"\"k\":4", "\"k\":null", "product.k"}}) {
    auto back = kernels::decodeImage("saxpy", changed(from, to));
    ASSERT_FALSE(back) << to;
    EXPECT_EQ(back.error().message, "kernel saxpy: its object has no valid "
                                    "field '" +
                                        field + "': compile it again");
  }
  EXPECT_EQ(kernels::decodeImage("k", changed("{", "[")).error().message,
            "kernel k: its object is not JSON: compile it again");
  EXPECT_EQ(
      kernels::decodeImage("k", kernels::frameBytes("[]", "x")).error().message,
      "kernel k: its object has the wrong type: compile it again");
  kernels::KernelImage none = example();
  none.entry.clear();
  EXPECT_FALSE(kernels::decodeImage("k", kernels::encodeImage(none)));
  kernels::KernelImage wide = example();
  wide.tensorMaps.resize(33); // more than there are parameters
  EXPECT_FALSE(kernels::decodeImage("k", kernels::encodeImage(wide)));
}

TEST(KernelImage, BlocksOfALaunch) {
  kernels::KernelImage kernel = example();
  auto blocks = kernel.blocksOf({11, 7, 2});
  EXPECT_EQ(blocks.x, 4u); // 1100 threads, 512 to a block, two to a cluster
  EXPECT_EQ(blocks.y, 21u);
  EXPECT_EQ(blocks.z, 2u);
  kernel.cluster = {1, 7, 2};
  EXPECT_EQ(kernel.blocksOf({11, 8, 2}).y, 28u);
  kernel.cluster = {};
  EXPECT_EQ(kernel.blocksOf({11, 7, 2}).x, 3u);
  kernel.covers = {200, 3, 1}; // two blocks of the source
  blocks = kernel.blocksOf({11, 7, 2});
  EXPECT_EQ(blocks.x, 6u);
  EXPECT_EQ(blocks.y, 7u);
  EXPECT_EQ(kernel.blocksOf({0, 7, 2}).x, 0u);
}

} // namespace
