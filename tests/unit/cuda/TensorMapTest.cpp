// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that take tensor maps in place of addresses.
#include "kernels/ptx/TensorMap.h"
#include "FakeTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// 20 rows of 40 elements, 48 apart, that begin 16 elements into the second
/// argument.
constexpr kernels::TensorMap theMap{1,           32,         ElementType::BF16,
                                    {40, 20, 1}, {96, 1920}, {64, 64, 1}};

class TensorMaps : public testing::Test {
protected:
  void SetUp() override {
    fake = &freshMachine();
    FakeKernel kernel;
    kernel.parameterSizes = {8, 128, 48};
    kernel.run = [this](void **parameters, const unsigned *, const unsigned *) {
      std::memcpy(&plain, parameters[0], sizeof plain);
      std::memcpy(&map, parameters[1], sizeof map);
    };
    fake->kernels["multiply"] = kernel;
    auto opened = openFake(fakeOptions(1));
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
    memory = *driver->allocate({0}, 4096);
  }
  KernelHandle load(const kernels::TensorMap &map) {
    kernels::KernelImage object;
    object.entry = "multiply";
    object.arch = "sm_90";
    object.tensorMaps = {map};
    object.setBytes(fakeCubin({"multiply"}));
    auto handle = driver->loadKernel("multiply", kernels::encodeImage(object));
    EXPECT_TRUE(handle) << handle.error().message;
    return *handle;
  }
  Result<GraphNodeId> add(GraphDriver &graph, const kernels::TensorMap &map,
                          const std::byte *at) {
    uint64_t address = uintptr_t(at);
    return graph.addKernel({"product", {0}, load(map), {1, 1, 1}, {7, address}},
                           {});
  }

  FakeCuda *fake = nullptr;
  std::unique_ptr<Driver> driver;
  std::byte *memory = nullptr;
  uint64_t plain = 0;
  kernels::ptx::TensorMap map{};
};

TEST_F(TensorMaps, AKernelGetsTheMapOfTheArrayAtTheAddress) {
  auto graph = driver->createGraph();
  auto node = add(*graph, theMap, memory + 256);
  ASSERT_TRUE(node) << node.error().message;
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(plain, 7u);
  EXPECT_EQ(map.magic, kernels::ptx::TensorMap::theMagic);
  EXPECT_EQ(map.address, uintptr_t(memory) + 256 + 32);
  EXPECT_EQ(map.sizes[0], 40u);
  EXPECT_EQ(map.sizes[1], 20u);
  EXPECT_EQ(map.sizes[2], 1u);
  EXPECT_EQ(map.strideBytes[0], 96u);
  EXPECT_EQ(map.strideBytes[1], 1920u);
  EXPECT_EQ(map.box[0], 64u);
  EXPECT_EQ(map.swizzleBytes, 128u);
  EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
}

TEST_F(TensorMaps, AnArrayMayHaveFiveDimensions) {
  kernels::TensorMap five = theMap;
  five.sizes = {8, 2, 2, 2, 3};
  five.strideBytes = {16, 32, 64, 128};
  five.box = {8, 2, 2, 2, 2};
  five.swizzleBytes = 0;
  auto graph = driver->createGraph();
  auto node = add(*graph, five, memory);
  ASSERT_TRUE(node) << node.error().message;
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(map.rank, 5u);
  EXPECT_EQ(map.sizes[4], 3u);
  EXPECT_EQ(map.strideBytes[3], 128u);
  EXPECT_EQ(map.box[4], 2u);
  EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
}

TEST_F(TensorMaps, AnArrayThatBeginsAnywhereHasNone) {
  auto graph = driver->createGraph();
  auto node = add(*graph, theMap, memory + 8);
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().kind, ErrorKind::Invalid);
  std::string address = node.error().message;
  size_t at = address.find("0x"), end = address.find(',', at);
  address.replace(at, end - at, "HERE");
  EXPECT_EQ(address, "node 'product': argument 1 begins at HERE, no multiple "
                     "of the 16 bytes that its kernel's tensor copies take: "
                     "choose another form with --variant mma");
}

TEST_F(TensorMaps, WhatCannotBeEncodedIsAnError) {
  auto graph = driver->createGraph();
  kernels::TensorMap odd = theMap;
  odd.strideBytes[0] = 90;
  auto node = add(*graph, odd, memory);
  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("cuTensorMapEncodeTiled for argument 1 "
                                      "of 'product' on cuda:0"),
            std::string::npos)
      << node.error().message;
  odd = theMap;
  odd.type = ElementType::I8;
  node = add(*graph, odd, memory);
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().message,
            "node 'product': tensor maps of i8 are not supported");
  odd = theMap;
  odd.argument = 0; // 8 bytes
  node = add(*graph, odd, memory);
  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("compile it again"), std::string::npos);
  odd.argument = 2;
  EXPECT_FALSE(add(*graph, odd, memory));
  // A call that fails leaves nothing behind.
  fake->failAt = 0;
  auto after = add(*graph, theMap, memory);
  EXPECT_TRUE(after) << after.error().message;
}

TEST_F(TensorMaps, AnAddedMapIsAParameterOfItsOwn) {
  uint64_t second = 0;
  FakeKernel kernel;
  kernel.parameterSizes = {8, 8, 128, 48};
  kernel.run = [&](void **parameters, const unsigned *, const unsigned *) {
    std::memcpy(&plain, parameters[0], sizeof plain);
    std::memcpy(&second, parameters[1], sizeof second);
    std::memcpy(&map, parameters[2], sizeof map);
  };
  kernels::TensorMap added = theMap;
  added.isAdded = true;
  EXPECT_FALSE(add(*driver->createGraph(), added, memory)); // others' sizes
  fake->kernels["multiply"] = kernel;
  for (uint32_t swizzle : {0u, 32u, 64u, 128u}) {
    added.swizzleBytes = swizzle;
    added.box = {swizzle ? swizzle / 2 : 8, 4, 1};
    auto graph = driver->createGraph();
    auto node = add(*graph, added, memory + 256);
    ASSERT_TRUE(node) << node.error().message;
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    ASSERT_TRUE((*exec)->launch());
    EXPECT_EQ(plain, 7u);
    EXPECT_EQ(second, uintptr_t(memory) + 256);
    EXPECT_EQ(map.magic, kernels::ptx::TensorMap::theMagic);
    EXPECT_EQ(map.address, uintptr_t(memory) + 256 + 32);
    EXPECT_EQ(map.swizzleBytes, swizzle);
  }
  added.type = ElementType::F32;
  added.sizes[0] = 24;
  added.box = {32, 4, 1};
  auto graph = driver->createGraph();
  auto node = add(*graph, added, memory);
  ASSERT_TRUE(node) << node.error().message;
  auto wrong = add(*graph, added, memory + 8);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("its kernel's tensor copies take: give "
                                       "the memory a start that is one"),
            std::string::npos)
      << wrong.error().message;
}

TEST_F(TensorMaps, AGpuWithoutThemGetsNone) {
  FakeKernel kernel;
  kernel.parameterSizes = {8, 8, 128, 48};
  map.magic = 1;
  kernel.run = [&](void **parameters, const unsigned *, const unsigned *) {
    std::memcpy(&map, parameters[2], sizeof map);
  };
  fake->kernels["multiply"] = kernel;
  driver.reset();
  fake->major = 8;
  auto opened = openFake(fakeOptions(1));
  ASSERT_TRUE(opened) << opened.error().message;
  driver = std::move(*opened);
  memory = *driver->allocate({0}, 4096);
  kernels::TensorMap added = theMap;
  added.isAdded = true;
  auto graph = driver->createGraph();
  auto node = add(*graph, added, memory);
  ASSERT_TRUE(node) << node.error().message;
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  EXPECT_EQ(map.magic, 0u);
}

TEST(TensorMapObject, MapsAreKept) {
  kernels::KernelImage object;
  object.entry = "multiply";
  object.arch = "sm_90";
  kernels::TensorMap other = theMap;
  other.argument = 2;
  other.type = ElementType::F16;
  other.swizzleBytes = 32;
  other.isAdded = true;
  object.hasWarpgroups = true;
  object.tensorMaps = {theMap, other};
  object.setBytes(fakeCubin({"multiply"}));
  std::vector<std::byte> bytes = kernels::encodeImage(object);
  auto back = kernels::decodeImage("k", bytes);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->tensorMaps, object.tensorMaps);
  EXPECT_TRUE(back->hasWarpgroups);
  EXPECT_EQ(back->blob, object.blob);
  for (size_t size = 0; size + object.blob.size() <= bytes.size(); ++size)
    EXPECT_FALSE(kernels::decodeImage("k", std::span(bytes).first(size)))
        << size;
}

} // namespace
