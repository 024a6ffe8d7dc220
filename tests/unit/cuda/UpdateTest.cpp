// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Executables that are changed instead of made anew.

#include "FakeTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// out[0] += scale.
FakeKernel addingKernel() {
  FakeKernel kernel;
  kernel.parameterSizes = {8, 8, 48};
  kernel.run = [](void **parameters, const unsigned *, const unsigned *) {
    **static_cast<uint32_t **>(parameters[0]) +=
        uint32_t(*static_cast<uint64_t *>(parameters[1]));
  };
  return kernel;
}

class UpdateTest : public testing::Test {
protected:
  void SetUp() override {
    fake = &freshMachine();
    fake->kernels["add"] = fake->kernels["other"] = addingKernel();
    auto opened = openFake(fakeOptions(1));
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
    for (const char *entry : {"add", "other"}) {
      kernels::KernelImage object;
      object.entry = entry;
      object.arch = "sm_90";
      object.setBytes(fakeCubin({"add", "other"}));
      auto handle = driver->loadKernel(entry, kernels::encodeImage(object));
      ASSERT_TRUE(handle) << handle.error().message;
      kernels.push_back(*handle);
    }
    for (int k = 0; k < 3; ++k) {
      device.push_back(*driver->allocate({0}, 64));
      host.push_back(*driver->allocate(DeviceId::host(), 64));
    }
  }
  void TearDown() override {
    exec.reset();
    driver.reset();
    kernels.clear();
    device.clear();
    host.clear();
    // What cannot enter the context cannot be destroyed.
    if (fake->failedCall == "cuCtxPushCurrent")
      return;
    EXPECT_EQ(fake->violations, std::vector<std::string>());
    EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  }

  struct Shape {
    size_t memory = 0, to = 0;
    uint64_t scale = 1;
    size_t kernel = 0;
    uint32_t blocks = 1;
    Box box = Box::flat(0, 4);
    bool extra = false, chained = true;
  };
  /// A kernel and a copy of what it wrote to the host.
  std::unique_ptr<GraphDriver> graphOf(const Shape &shape) {
    auto graph = driver->createGraph();
    auto node = graph->addKernel(
        {"k",
         {0},
         kernels[shape.kernel],
         {shape.blocks, 1, 1},
         {uint64_t(uintptr_t(device[shape.memory])), shape.scale}},
        {});
    EXPECT_TRUE(node) << node.error().message;
    std::vector<GraphNodeId> after;
    if (shape.chained)
      after.push_back(*node);
    auto copy = graph->addCopy(
        {"c", {0}, host[shape.to], device[shape.memory], shape.box, shape.box},
        after);
    EXPECT_TRUE(copy) << copy.error().message;
    if (shape.extra)
      EXPECT_TRUE(graph->addCopy(
          {"d", {0}, host[2], device[shape.memory], shape.box, shape.box},
          {{*copy}}));
    return graph;
  }
  void make(const Shape &shape) {
    auto made = graphOf(shape)->instantiate();
    ASSERT_TRUE(made) << made.error().message;
    exec = std::move(*made);
  }
  /// Over the one there is: whether that one was changed.
  bool change(const Shape &shape) {
    auto *before = exec.get();
    size_t made = count("cuGraphInstantiateWithParams");
    Result<void> ok = graphOf(shape)->instantiateOver(exec);
    EXPECT_TRUE(ok) << ok.error().message;
    bool isChanged = count("cuGraphInstantiateWithParams") == made;
    EXPECT_EQ(isChanged, before == exec.get());
    return isChanged;
  }
  size_t count(const std::string &name) const {
    return size_t(std::count(fake->called.begin(), fake->called.end(), name));
  }
  uint32_t value(size_t k) const {
    return *reinterpret_cast<const uint32_t *>(host[k]);
  }

  FakeCuda *fake = nullptr;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphExec> exec;
  std::vector<KernelHandle> kernels;
  std::vector<std::byte *> device, host;
};

TEST_F(UpdateTest, ParametersAndPointersAreChanged) {
  make({});
  ASSERT_TRUE(exec->launch());
  EXPECT_EQ(value(0), 1u);
  ASSERT_TRUE(change({.memory = 1, .to = 1, .scale = 7}));
  EXPECT_EQ(count("cuGraphExecNodeSetParams"), 2u);
  ASSERT_TRUE(exec->launch());
  ASSERT_TRUE(exec->launch());
  EXPECT_EQ(value(1), 14u);
  EXPECT_EQ(value(0), 1u);
  // All of a kernel may change; what is the same is left alone.
  ASSERT_TRUE(
      change({.memory = 1, .to = 1, .scale = 2, .kernel = 1, .blocks = 5}));
  EXPECT_EQ(count("cuGraphExecNodeSetParams"), 3u);
  ASSERT_TRUE(exec->launch());
  EXPECT_EQ(value(1), 16u);
  ASSERT_TRUE(
      change({.memory = 1, .to = 1, .scale = 2, .kernel = 1, .blocks = 5}));
  EXPECT_EQ(count("cuGraphExecNodeSetParams"), 3u);
}

TEST_F(UpdateTest, TimedReplaysFollow) {
  make({});
  std::vector<NodeTiming> timings;
  ASSERT_TRUE(exec->launchTimed(timings));
  ASSERT_TRUE(change({.to = 1, .scale = 10}));
  ASSERT_TRUE(exec->launchTimed(timings));
  EXPECT_EQ(value(1), 11u);
  EXPECT_EQ(value(0), 1u);
}

TEST_F(UpdateTest, AnotherShapeIsMadeAnew) {
  const Shape shapes[] = {
      {.extra = true},
      {.chained = false},
      {.box = Box::flat(0, 8)},     // a copy's length
      {.box = Box{0, {2}, {8}, 4}}, // or its form
  };
  for (const Shape &shape : shapes) {
    make({});
    EXPECT_FALSE(change(shape));
    ASSERT_TRUE(exec->launch());
  }
}

TEST_F(UpdateTest, WhatTheDriverRefusesIsMadeAnew) {
  make({});
  fake->failAt = 0;
  // The call that sets parameters is the first that fails.
  auto graph = graphOf({.to = 1, .scale = 3});
  fake->failAt = fake->calls + 3; // after the context is looked for and entered
  fake->failCode = CUDA_ERROR_NOT_SUPPORTED;
  Result<void> ok = graph->instantiateOver(exec);
  ASSERT_TRUE(ok) << ok.error().message;
  EXPECT_EQ(fake->failedCall, "cuGraphExecNodeSetParams");
  ASSERT_TRUE(exec->launch());
  EXPECT_EQ(value(1), 3u);
}

TEST_F(UpdateTest, EveryFailureLeavesAnExecutableOrNone) {
  for (uint64_t call = 1;; ++call) {
    TearDown();
    SetUp();
    make({});
    auto graph = graphOf({.memory = 1, .to = 1, .scale = 3});
    const uint64_t before = fake->calls;
    fake->failAt = before + call;
    fake->failCode = CUDA_ERROR_OUT_OF_MEMORY;
    fake->failedCall.clear();
    Result<void> ok = graph->instantiateOver(exec);
    const bool isOver = fake->failedCall.empty();
    fake->failAt = 0;
    if (ok)
      EXPECT_TRUE(exec->launch());
    else
      EXPECT_FALSE(exec && !exec->launch());
    if (isOver)
      break;
    ASSERT_LT(call, 100u);
  }
}

// Rows at a pitch are copied to where the caller wants them, too; what no copy
// node can do is refused.
TEST_F(UpdateTest, MemoryOfTheCallersTakesRows) {
  std::vector<uint32_t> mine(16);
  auto *bytes = reinterpret_cast<std::byte *>(mine.data());
  fake->registered[uintptr_t(bytes)] = {64, nullptr};
  for (uint32_t k = 0; k < 16; ++k)
    reinterpret_cast<uint32_t *>(device[0])[k] = 100 + k;
  const Box column{4, {4}, {16}, 4}; // of 4 x 4 words
  auto graph = driver->createGraph();
  ASSERT_TRUE(
      graph->addCopy({"column", {0}, bytes, device[0], column, column}, {}));
  ASSERT_TRUE(graph->instantiateOver(exec));
  ASSERT_TRUE(exec->launch());
  for (uint32_t k = 0; k < 16; ++k)
    EXPECT_EQ(mine[k], k % 4 == 1 ? 100 + k : 0);
  const Box backwards{48, {4}, {-16}, 4};
  auto refused = driver->createGraph()->addCopy(
      {"turned", {0}, bytes, device[0], column, backwards}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
  EXPECT_NE(refused.error().message.find("the caller's"), std::string::npos);
  exec.reset();
  fake->registered.clear();
}

// A copy onto itself goes by way of a buffer: the next graph but one has the
// same again, however often it is made.
TEST_F(UpdateTest, StagingIsLentAgain) {
  size_t afterTwo = 0;
  for (size_t round = 0; round < 8; ++round) {
    std::byte *memory = device[round % 3];
    auto graph = driver->createGraph();
    ASSERT_TRUE(graph->addCopy(
        {"move", {0}, memory, memory, Box::flat(16, 32), Box::flat(0, 32)},
        {}));
    ASSERT_TRUE(graph->instantiateOver(exec));
    ASSERT_TRUE(exec->launch());
    if (round == 1)
      afterTwo = count("cuMemAlloc");
  }
  EXPECT_EQ(count("cuMemAlloc"), afterTwo);
}

} // namespace
