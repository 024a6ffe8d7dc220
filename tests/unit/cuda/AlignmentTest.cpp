// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels whose code accesses buffers in wide pieces.
#include "FakeTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

TEST(Alignment, OfBuffersIsCheckedWhenANodeIsMade) {
  FakeCuda &fake = freshMachine();
  FakeKernel kernel;
  kernel.parameterSizes = {8, 8, 8, 48};
  kernel.run = [](void **, const unsigned *, const unsigned *) {};
  fake.kernels["add"] = kernel;
  auto driver = openFake(fakeOptions(1));
  ASSERT_TRUE(driver) << driver.error().message;
  const uint64_t memory = uintptr_t(*(*driver)->allocate({0}, 4096));
  kernels::KernelImage object;
  object.entry = "add";
  object.arch = "sm_90";
  object.argumentAlignment = {16, 8, 1};
  object.setBytes(fakeCubin({"add"}));
  auto handle = (*driver)->loadKernel("add", kernels::encodeImage(object));
  ASSERT_TRUE(handle) << handle.error().message;
  auto graph = (*driver)->createGraph();
  auto add = [&](std::vector<uint64_t> arguments) {
    return graph->addKernel({"sum", {0}, *handle, {1, 1, 1}, arguments}, {});
  };
  auto node = add({memory + 16, memory + 8, 3});
  EXPECT_TRUE(node) << node.error().message;
  node = add({memory + 8, memory + 8, 3});
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(node.error().message.find("node 'sum': argument 0 begins at 0x"),
            0u);
  EXPECT_NE(node.error().message.find(
                "kernel add reads and writes 16 bytes at once: give it memory "
                "that begins at a multiple of 16 bytes"),
            std::string::npos)
      << node.error().message;
  EXPECT_FALSE(add({memory, memory + 4, 3}));
  EXPECT_TRUE(fake.violations.empty()) << fake.violations.front();
}

/// A launch has the dynamic shared memory that its kernel was compiled for, and
/// the driver refuses one that does not fit the code.
TEST(LaunchLimits, AreTheCodesOwn) {
  FakeCuda &fake = freshMachine();
  uint32_t sharedBytes = 0;
  FakeKernel &kernel = fake.kernels["add"];
  kernel.parameterSizes = {8, 48};
  kernel.run = [&](void **, const unsigned *, const unsigned *) {
    sharedBytes = FakeCuda::instance().dynamicSharedBytes;
  };
  auto driver = openFake(fakeOptions(1));
  ASSERT_TRUE(driver) << driver.error().message;
  const uint64_t memory = uintptr_t(*(*driver)->allocate({0}, 4096));
  kernels::KernelImage object;
  object.entry = "add";
  object.arch = "sm_90";
  object.block = object.covers = object.sourceBlock = {128, 1, 1};
  object.dynamicSharedBytes = 60000;
  object.setBytes(fakeCubin({"add"}));
  auto launch = [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(auto handle,
                    (*driver)->loadKernel("add", kernels::encodeImage(object)));
    auto graph = (*driver)->createGraph();
    MGPU_TRY(graph->addKernel({"sum", {0}, handle, {3, 1, 1}, {memory}}, {}));
    MGPU_TRY_ASSIGN(auto exec, graph->instantiate());
    return exec->launch();
  };
  auto done = launch();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(sharedBytes, 60000u);
  kernel.cluster[0] = 2; // of which three blocks are not a whole number
  EXPECT_FALSE(launch());
  kernel.cluster[0] = 1;
  kernel.maxThreads = 64;
  EXPECT_FALSE(launch());
  kernel.maxThreads = 128;
  EXPECT_TRUE(launch());
  EXPECT_TRUE(fake.violations.empty()) << fake.violations.front();
}

} // namespace
