// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The CUDA target as its users see it: kernels, memory, timed replays, errors.

#include "FakeTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// As emitted kernels end their parameters.
struct Launch {
  uint32_t grid[3], first[3], base[3], end[3];
};

/// out[b] += scale for every block b of the source's grid; each source block is
/// one launched block.
FakeKernel countingKernel() {
  FakeKernel kernel;
  kernel.parameterSizes = {8, 4, sizeof(Launch)};
  kernel.run = [](void **parameters, const unsigned grid[3], const unsigned *) {
    auto *out = *static_cast<uint32_t **>(parameters[0]);
    uint32_t scale = *static_cast<uint32_t *>(parameters[1]);
    auto launch = *static_cast<Launch *>(parameters[2]);
    for (uint32_t z = 0; z < grid[2]; ++z)
      for (uint32_t y = 0; y < grid[1]; ++y)
        for (uint32_t x = 0; x < grid[0]; ++x)
          out[((uint64_t(launch.base[2]) + launch.first[2] + z) *
                   launch.grid[1] +
               launch.base[1] + launch.first[1] + y) *
                  launch.grid[0] +
              launch.base[0] + launch.first[0] + x] += scale;
  };
  return kernel;
}

std::vector<std::byte> countingObject(uint32_t dynamicSharedBytes = 0) {
  kernels::KernelImage object;
  object.entry = "count";
  object.arch = "sm_90";
  object.dynamicSharedBytes = dynamicSharedBytes;
  object.setBytes(fakeCubin({"count", "other"}));
  return kernels::encodeImage(object);
}

class DriverTest : public testing::Test {
protected:
  void SetUp() override { open(2); }
  void open(uint32_t devices) {
    fake = &freshMachine();
    fake->kernels["count"] = countingKernel();
    auto opened = openFake(fakeOptions(devices));
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
  }
  FakeCuda *fake = nullptr;
  std::unique_ptr<Driver> driver;
};

TEST_F(DriverTest, SaysWhatItIs) {
  EXPECT_EQ(driver->numDevices(), 2u);
  EXPECT_EQ(driver->architecture(), "sm_90");
  EXPECT_EQ(driver->description(),
            "cuda: Fake GPU (GPU 0, sm_90) as 2 devices, driver 13.0");
}

TEST_F(DriverTest, MemoryIsZeroAndAligned) {
  for (DeviceId device : {DeviceId{0}, DeviceId{1}, DeviceId::host()})
    for (uint64_t bytes : {uint64_t(0), uint64_t(1), uint64_t(1000)}) {
      auto memory = driver->allocate(device, bytes);
      ASSERT_TRUE(memory) << memory.error().message;
      EXPECT_EQ(uintptr_t(*memory) % 256, 0u);
      for (uint64_t k = 0; k < bytes; ++k)
        ASSERT_EQ((*memory)[k], std::byte(0));
    }
  auto none = driver->allocate({2}, 4);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::Invalid);
}

TEST_F(DriverTest, TheCallersMemory) {
  auto other = openFake(fakeOptions(1)); // in the same primary context
  ASSERT_TRUE(other) << other.error().message;
  auto lent = (*other)->allocate({0}, 64);
  ASSERT_TRUE(lent);
  ASSERT_TRUE(driver->adopt({1}, {*lent, 64}));
  std::vector<std::byte> numbers(64, std::byte(7)), back(64);
  ASSERT_TRUE(driver->transfer(*lent, numbers.data(), 64));
  ASSERT_TRUE(driver->transfer(back.data(), *lent, 64));
  EXPECT_EQ(back, numbers);
  driver->forget(*lent);
  // Neither the host's nor what ends outside is the GPU's.
  for (std::span<std::byte> wrong :
       {std::span(numbers), std::span(*lent, 65)}) {
    auto refused = driver->adopt({1}, wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Usage);
    EXPECT_NE(refused.error().message.find("are not memory on cuda:0/2"),
              std::string::npos)
        << refused.error().message;
  }
  EXPECT_TRUE(driver->checkAlive());
}

TEST_F(DriverTest, OutOfMemorySaysHowMuchAndWhatWouldFit) {
  ASSERT_TRUE(driver->allocate({0}, 60 << 20));
  auto more = driver->allocate({1}, 8 << 20);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind, ErrorKind::Absent);
  EXPECT_EQ(more.error().message,
            "no room for 8388608 bytes for the memory of device 1 on cuda:0/2 "
            "(Fake GPU): 4194304 of its 67108864 bytes are free, and so many "
            "would fit here, or 33554432 for each of the 2 devices; use "
            "smaller buffers or fewer devices on the GPU");
  // What it says fits does.
  EXPECT_TRUE(driver->allocate({1}, 4194304));
}

TEST_F(DriverTest, KernelsRunOverTheWholeGrid) {
  auto handle = driver->loadKernel("count", countingObject());
  ASSERT_TRUE(handle) << handle.error().message;
  for (Dim3 grid : {Dim3{1, 1, 1}, Dim3{7, 5, 3}, Dim3{1, 70000, 1},
                    Dim3{1, 1, 140000}, Dim3{4, 0, 1}}) {
    uint64_t blocks = grid.volume();
    auto out = driver->allocate({1}, blocks * 4);
    ASSERT_TRUE(out);
    auto graph = driver->createGraph();
    KernelNodeParams params{
        "count", {1}, *handle, grid, {uint64_t(uintptr_t(*out)), 5}};
    auto first = graph->addKernel(params, {});
    ASSERT_TRUE(first) << first.error().message;
    // The parts of the second come after those of the first, whatever order
    // the driver takes.
    auto second = graph->addKernel(params, {{*first}});
    ASSERT_TRUE(second);
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    ASSERT_TRUE((*exec)->launch());
    for (uint64_t k = 0; k < blocks; ++k)
      ASSERT_EQ(reinterpret_cast<uint32_t *>(*out)[k], 10u) << k;
  }
}

/// A chunk of a launch that no grid has room for is one of whole clusters: CUDA
/// refuses another.
TEST_F(DriverTest, ChunksAreOfWholeClusters) {
  for (Dim3 cluster : {Dim3{1, 2, 1}, Dim3{1, 1, 4}}) {
    std::ranges::copy(std::array{cluster.x, cluster.y, cluster.z},
                      fake->kernels["count"].cluster);
    kernels::KernelImage object =
        *kernels::decodeImage("count", countingObject());
    object.cluster = cluster;
    auto handle = driver->loadKernel("count", kernels::encodeImage(object));
    ASSERT_TRUE(handle) << handle.error().message;
    const Dim3 grid{1, cluster.y > 1 ? 70000u : 1, cluster.z > 1 ? 70000u : 1};
    auto out = driver->allocate({1}, grid.volume() * 4);
    ASSERT_TRUE(out);
    auto graph = driver->createGraph();
    auto node = graph->addKernel(
        {"count", {1}, *handle, grid, {uint64_t(uintptr_t(*out)), 5}}, {});
    ASSERT_TRUE(node) << node.error().message;
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    ASSERT_TRUE((*exec)->launch());
    for (uint64_t k = 0; k < grid.volume(); ++k)
      ASSERT_EQ(reinterpret_cast<uint32_t *>(*out)[k], 5u) << k;
  }
}

// CUDA keeps what kernels print until it is waited for: to ask a stream whether
// it is done does not show it.
TEST_F(DriverTest, WhatKernelsPrintIsThereOnceAReplayHasEnded) {
  for (bool prints : {false, true}) {
    kernels::KernelImage object =
        *kernels::decodeImage("count", countingObject());
    object.setBytes(prints ? fakeCubin({"count", "vprintf"})
                           : fakeCubin({"count"}));
    auto handle = driver->loadKernel("count", kernels::encodeImage(object));
    ASSERT_TRUE(handle) << handle.error().message;
    auto out = driver->allocate({0}, 4);
    auto graph = driver->createGraph();
    ASSERT_TRUE(graph->addKernel(
        {"k", {0}, *handle, {1, 1, 1}, {uint64_t(uintptr_t(*out)), 1}}, {}));
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    for (int replay = 0; replay < 2; ++replay) {
      fake->print("seen\n");
      testing::internal::CaptureStdout();
      ASSERT_TRUE((*exec)->launch());
      EXPECT_EQ(testing::internal::GetCapturedStdout(), prints ? "seen\n" : "");
      fake->printed.clear();
    }
    EXPECT_TRUE(fake->violations.empty());
  }
}

TEST_F(DriverTest, KernelsRunOverAPartOfTheGrid) {
  auto handle = driver->loadKernel("count", countingObject());
  ASSERT_TRUE(handle) << handle.error().message;
  Dim3 grid{5, 70000, 3};
  GridPart part{{1, 2, 1}, {3, 69000, 2}};
  auto out = driver->allocate({1}, grid.volume() * 4);
  ASSERT_TRUE(out);
  auto graph = driver->createGraph();
  KernelNodeParams params{
      "count", {1}, *handle, grid, {uint64_t(uintptr_t(*out)), 5}, part};
  ASSERT_TRUE(graph->addKernel(params, {}));
  params.part->first.x = 3;
  EXPECT_FALSE(graph->addKernel(params, {}));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  ASSERT_TRUE((*exec)->launch());
  auto *counts = reinterpret_cast<uint32_t *>(*out);
  for (uint32_t z = 0; z < grid.z; ++z)
    for (uint32_t y = 0; y < grid.y; ++y)
      for (uint32_t x = 0; x < grid.x; ++x) {
        bool inside = x >= 1 && x < 4 && y >= 2 && y < 69002 && z >= 1;
        ASSERT_EQ(*counts++, inside ? 5u : 0u) << x << " " << y << " " << z;
      }
}

TEST_F(DriverTest, WrongCallsOfAKernelAreRefused) {
  auto handle = driver->loadKernel("count", countingObject());
  ASSERT_TRUE(handle);
  auto graph = driver->createGraph();
  auto few = graph->addKernel({"k", {0}, *handle, {1, 1, 1}, {1}}, {});
  ASSERT_FALSE(few);
  EXPECT_NE(few.error().message.find("calls kernel count with 1 arguments"),
            std::string::npos);
  EXPECT_FALSE(
      graph->addKernel({"k", {0}, KernelHandle{9}, {1, 1, 1}, {1, 2}}, {}));
  EXPECT_FALSE(graph->addKernel({"k", {-1}, *handle, {1, 1, 1}, {1, 2}}, {}));
  auto huge = graph->addKernel(
      {"k", {0}, *handle, {1, 4000000000u, 4000000000u}, {1, 2}}, {});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::Unsupported);
  ASSERT_TRUE(graph->instantiate());
  auto late = graph->addKernel({"k", {0}, *handle, {1, 1, 1}, {1, 2}}, {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::Usage);
  EXPECT_FALSE(graph->instantiate());
}

TEST_F(DriverTest, KernelObjectsAreChecked) {
  auto foreign = driver->loadKernel("k", std::vector<std::byte>(100));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().kind, ErrorKind::Invalid);
  // In the cubin, but not known: as an entry that was not compiled.
  kernels::KernelImage object;
  object.entry = "other";
  object.setBytes(fakeCubin({"count"}));
  auto missing = driver->loadKernel("k", kernels::encodeImage(object));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("cuLibraryGetKernel for kernel k"),
            std::string::npos);
  // The GPU's limit for the kernel, not CUDA's.
  fake->kernels["count"].maxThreads = 128;
  object.entry = "count";
  object.block = object.sourceBlock = object.covers = {256, 1, 1};
  auto wide = driver->loadKernel("k", kernels::encodeImage(object));
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message.find("at most 128"), std::string::npos);
}

TEST_F(DriverTest, SharedMemoryAboveTheDefaultIsAskedFor) {
  auto much = driver->loadKernel("count", countingObject(100 * 1024));
  ASSERT_TRUE(much) << much.error().message;
  auto out = driver->allocate({0}, 4);
  auto graph = driver->createGraph();
  ASSERT_TRUE(graph->addKernel(
      {"k", {0}, *much, {1, 1, 1}, {uint64_t(uintptr_t(*out)), 1}}, {}));
  EXPECT_TRUE(graph->instantiate());
  auto more = driver->loadKernel("count", countingObject(228 * 1024));
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("gives a block 232448"),
            std::string::npos);
}

/// Static shared memory counts, below the default and at the limit; and what a
/// launch was made with stays allowed when the kernel is loaded with less.
TEST_F(DriverTest, SharedMemoryIsAskedForBesideStaticOne) {
  fake->kernels["count"].sharedBytes = 128;
  auto much = driver->loadKernel("count", countingObject(48 * 1024));
  auto less = driver->loadKernel("count", countingObject(1024));
  ASSERT_TRUE(much && less);
  auto out = driver->allocate({0}, 4);
  for (KernelHandle each : {*much, *less, *much}) {
    auto graph = driver->createGraph();
    ASSERT_TRUE(graph->addKernel(
        {"k", {0}, each, {1, 1, 1}, {uint64_t(uintptr_t(*out)), 1}}, {}));
    auto made = graph->instantiate();
    EXPECT_TRUE(made) << made.error().message;
  }
  EXPECT_TRUE(driver->loadKernel("count", countingObject(227 * 1024 - 128)));
  auto more = driver->loadKernel("count", countingObject(227 * 1024 - 127));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind, ErrorKind::Invalid);
  EXPECT_NE(more.error().message.find("wants 232449 bytes of shared memory"),
            std::string::npos)
      << more.error().message;
}

TEST_F(DriverTest, TimedReplaysGiveOrderedSpans) {
  auto handle = driver->loadKernel("count", countingObject());
  auto out = driver->allocate({0}, 4);
  auto host = driver->allocate(DeviceId::host(), 4);
  ASSERT_TRUE(handle && out && host);
  auto graph = driver->createGraph();
  auto kernel = graph->addKernel(
      {"k", {1}, *handle, {1, 1, 1}, {uint64_t(uintptr_t(*out)), 3}}, {});
  auto copy = graph->addCopy(
      {"c", {0}, *host, *out, Box::flat(0, 4), Box::flat(0, 4)}, {{*kernel}});
  ASSERT_TRUE(copy);
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec);
  std::vector<NodeTiming> timings;
  for (uint32_t run = 1; run <= 2; ++run) {
    Result<void> ok = (*exec)->launchTimed(timings);
    ASSERT_TRUE(ok) << ok.error().message;
    EXPECT_EQ(*reinterpret_cast<uint32_t *>(*host), 3 * run);
    ASSERT_EQ(timings.size(), 2u);
    EXPECT_EQ(timings[0].queue, 1u);
    EXPECT_GT(timings[0].startUs, 0);
    EXPECT_GT(timings[0].endUs, timings[0].startUs);
    EXPECT_GE(timings[1].startUs, timings[0].endUs);
    EXPECT_GT(timings[1].endUs, timings[1].startUs);
  }
  EXPECT_TRUE(fake->violations.empty());
}

TEST_F(DriverTest, AnEmptyGraphReplaysWithoutALaunch) {
  auto exec = driver->createGraph()->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  EXPECT_TRUE((*exec)->launch());
  std::vector<NodeTiming> timings(3);
  EXPECT_TRUE((*exec)->launchTimed(timings));
  EXPECT_TRUE(timings.empty());
  for (const std::string &call : fake->called)
    EXPECT_NE(call, "cuGraphLaunch");
}

TEST_F(DriverTest, TheCallersContextStaysCurrent) {
  auto api = FakeCuda::api();
  CUcontext own = nullptr;
  ASSERT_EQ(api->cuDevicePrimaryCtxRetain(&own, 100), CUDA_SUCCESS);
  ASSERT_EQ(api->cuCtxPushCurrent(own), CUDA_SUCCESS);
  auto handle = driver->loadKernel("count", countingObject());
  auto out = driver->allocate({0}, 4);
  auto graph = driver->createGraph();
  ASSERT_TRUE(graph->addKernel(
      {"k", {0}, *handle, {1, 1, 1}, {uint64_t(uintptr_t(*out)), 3}}, {}));
  auto exec = graph->instantiate();
  ASSERT_TRUE((*exec)->launch());
  exec->reset();
  graph.reset();
  driver.reset();
  EXPECT_EQ(fake->stacks[std::this_thread::get_id()].size(), 1u);
  api->cuCtxPopCurrent(&own);
  api->cuDevicePrimaryCtxRelease(100);
  EXPECT_EQ(fake->leaks(), std::vector<std::string>());
}

TEST_F(DriverTest, AnExecutableOutlivesItsDriver) {
  auto handle = driver->loadKernel("count", countingObject());
  auto out = driver->allocate({0}, 4);
  auto graph = driver->createGraph();
  ASSERT_TRUE(graph->addKernel(
      {"k", {0}, *handle, {1, 1, 1}, {uint64_t(uintptr_t(*out)), 3}}, {}));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec);
  graph.reset();
  driver.reset();
  EXPECT_TRUE((*exec)->launch());
  EXPECT_EQ(*reinterpret_cast<uint32_t *>(*out), 3u);
  exec->reset();
  EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  EXPECT_TRUE(fake->violations.empty());
}

TEST(Gpus, AreCountedBeforeTheyAreUsed) {
  freshMachine();
  CudaOptions options = fakeOptions(1);
  options.gpu = 1;
  auto driver = openFake(options);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().kind, ErrorKind::Absent);
  EXPECT_NE(driver.error().message.find("no GPU 1: this machine shows 1"),
            std::string::npos);
  FakeCuda::instance().gpus = 2;
  EXPECT_TRUE(openFake(options));
  options.numDevices = maxDevicesOnGpu + 1;
  driver = openFake(options);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().kind, ErrorKind::Usage);
}

TEST(Gpus, AreInspectedWithoutAContext) {
  FakeCuda &fake = freshMachine();
  fake.gpus = 3;
  auto api = std::make_shared<CudaApi>(*FakeCuda::api());
  ASSERT_TRUE(initializeCuda(*api));
  auto machine = inspectCuda(*api);
  ASSERT_TRUE(machine) << machine.error().message;
  EXPECT_EQ(machine->driver, "13.0");
  ASSERT_EQ(machine->gpus.size(), 3u);
  const CudaMachine::Gpu &gpu = machine->gpus[1];
  EXPECT_EQ(gpu.name, "Fake GPU");
  EXPECT_EQ(gpu.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(gpu.arch, "sm_90");
  EXPECT_EQ(gpu.memoryBytes, fake.gpuBytes);
  EXPECT_EQ(gpu.computeMode, "default");
  EXPECT_EQ(gpu.reaches, std::vector<bool>(3, true));
  EXPECT_EQ(fake.leaks(), std::vector<std::string>());
}

} // namespace
