// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostDriver.h"
#include "device/host/HostGraph.h"

#include <bit>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace {

using namespace mgpu;
using namespace mgpu::device;

std::vector<std::byte> kernelFile() {
  std::ifstream file(MGPU_TEST_KERNEL, std::ios::binary);
  std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

std::unique_ptr<Driver> makeDriver(uint32_t devices = 4, uint32_t threads = 2) {
  auto driver = createHostDriver(devices, threads);
  EXPECT_TRUE(driver);
  return std::move(*driver);
}

TEST(HostDriver, SizesOutOfReasonAreErrors) {
  EXPECT_EQ(createHostDriver(0).error().kind, ErrorKind::Usage);
  EXPECT_EQ(createHostDriver(1u << 30).error().kind, ErrorKind::Usage);
  EXPECT_EQ(createHostDriver(1, 1u << 30).error().kind, ErrorKind::Usage);
  auto driver = makeDriver();
  for (uint64_t bytes : {UINT64_MAX, UINT64_MAX - 255, uint64_t(1) << 60}) {
    auto memory = driver->allocate({0}, bytes);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().kind, ErrorKind::Absent);
  }
  EXPECT_EQ(driver->allocate({4}, 16).error().kind, ErrorKind::Invalid);
}

TEST(HostDriver, MemoryIsAlignedZeroedAndApart) {
  auto driver = makeDriver();
  std::byte *last = nullptr;
  for (int32_t device : {-1, 0, 3})
    for (uint64_t bytes : {0, 1, 257, 100000}) {
      auto memory = driver->allocate({device}, bytes);
      ASSERT_TRUE(memory);
      EXPECT_EQ(uintptr_t(*memory) % 256, 0u);
      EXPECT_NE(*memory, last);
      for (uint64_t k = 0; k < bytes; ++k)
        ASSERT_EQ((*memory)[k], std::byte(0));
      std::memset(*memory, 1, bytes);
      last = *memory;
    }
  EXPECT_EQ(driver->numDevices(), 4u);
  EXPECT_EQ(driver->description(), "host: 4 virtual devices on 2 threads");
}

TEST(HostDriver, RunsAKernelOverTheWholeGrid) {
  auto driver = makeDriver();
  auto file = kernelFile();
  ASSERT_FALSE(file.empty());
  auto graph = driver->createGraph();
  constexpr uint64_t count = 10;
  std::vector<float *> results;
  for (int32_t device = 0; device < 4; ++device) {
    // Loaded once per device: each load must be its own library.
    auto kernel = driver->loadKernel("axpy", file);
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto *x = reinterpret_cast<float *>(*driver->allocate({device}, 40));
    auto *y = reinterpret_cast<float *>(*driver->allocate({device}, 40));
    for (uint64_t k = 0; k < count; ++k)
      x[k] = float(k), y[k] = 1;
    results.push_back(y);
    KernelNodeParams params{"axpy",
                            {device},
                            *kernel,
                            {3, 1, 1},
                            {uint64_t(uintptr_t(y)), uint64_t(uintptr_t(x)),
                             std::bit_cast<uint32_t>(float(device)), count}};
    ASSERT_TRUE(graph->addKernel(params, {}));
    params.grid = {0, 5, 5};
    ASSERT_TRUE(graph->addKernel(params, {})); // no blocks: nothing happens
    params.grid = {3, 1, 1};
    params.part = GridPart{{2, 0, 0}, {1, 1, 1}};
    auto tooOld = graph->addKernel(params, {}); // it is of version 1
    ASSERT_FALSE(tooOld);
    EXPECT_NE(tooOld.error().message.find("built too long ago"),
              std::string::npos);
    params.part->count.x = 2;
    EXPECT_FALSE(graph->addKernel(params, {}));
  }
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec);
  ASSERT_TRUE((*exec)->launch());
  ASSERT_TRUE((*exec)->launch());
  for (int32_t device = 0; device < 4; ++device)
    for (uint64_t k = 0; k < count; ++k)
      EXPECT_EQ(results[device][k], 1 + 2 * float(device) * float(k));
}

TEST(HostDriver, DamagedKernelsAreErrors) {
  auto driver = makeDriver();
  auto file = kernelFile();
  ASSERT_GT(file.size(), sizeof(Elf64_Ehdr));
  auto rejected = [&](const std::vector<std::byte> &bytes) {
    auto kernel = driver->loadKernel("bad", bytes);
    EXPECT_FALSE(kernel);
    if (kernel)
      return;
    EXPECT_NE(kernel.error().message.find("kernel 'bad'"), std::string::npos);
    EXPECT_EQ(kernel.error().kind, ErrorKind::Invalid);
  };
  rejected({});
  rejected(std::vector<std::byte>(1000, std::byte('x')));
  for (size_t size : {size_t(4), sizeof(Elf64_Ehdr) - 1, sizeof(Elf64_Ehdr),
                      size_t(200), size_t(600)})
    rejected({file.begin(), file.begin() + long(std::min(size, file.size()))});
  auto patched = [&](size_t offset, uint16_t value) {
    auto bytes = file;
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    rejected(bytes);
  };
  patched(offsetof(Elf64_Ehdr, e_machine), EM_RISCV);
  patched(offsetof(Elf64_Ehdr, e_type), ET_REL);
  patched(offsetof(Elf64_Ehdr, e_phnum), 0xffff);
  patched(offsetof(Elf64_Ehdr, e_phnum), 0);
  // Our own test library's neighbour without the entry: rename it.
  auto renamed = file;
  std::string name = kernels::hostKernelEntryNameV1; // as that library has it
  for (size_t k = 0; k + name.size() < renamed.size(); ++k)
    if (std::memcmp(renamed.data() + k, name.data(), name.size()) == 0)
      renamed[k] = std::byte('x');
  rejected(renamed);
}

TEST(HostGraph, ChecksNodes) {
  auto driver = makeDriver();
  auto graph = driver->createGraph();
  auto *host = static_cast<HostGraph *>(graph.get());
  auto nothing = [](void *) {};
  GraphNodeId later{5};
  EXPECT_FALSE(host->addCall({4}, nothing, nullptr, {}));
  EXPECT_FALSE(host->addCall({0}, nullptr, nullptr, {}));
  EXPECT_FALSE(host->addCall({0}, nothing, nullptr, {&later, 1}));
  EXPECT_FALSE(graph->addKernel({"k", {0}, {0}, {}, {}}, {}));
  auto *memory = *driver->allocate({0}, 64);
  CopyNodeParams copy{
      "c", {0}, memory, memory + 32, Box::flat(0, 33), Box::flat(0, 33)};
  auto outside = graph->addCopy(copy, {});
  ASSERT_FALSE(outside);
  EXPECT_NE(outside.error().message.find("leaves its allocation"),
            std::string::npos);
  copy.sourceBox = copy.destinationBox = Box::flat(0, 32);
  EXPECT_TRUE(graph->addCopy(copy, {}));
  EXPECT_TRUE(graph->instantiate());
  EXPECT_FALSE(graph->instantiate());
  EXPECT_FALSE(graph->addCopy(copy, {}));
}

TEST(HostGraph, EmptyGraphReplays) {
  auto driver = makeDriver();
  auto exec = driver->createGraph()->instantiate();
  ASSERT_TRUE(exec);
  EXPECT_TRUE((*exec)->launch());
}

TEST(HostGraph, CopiesAndCollectivesInOrder) {
  // upload to 2 devices, all_reduce, download: 10 replays give powers of 2.
  auto driver = makeDriver(2, 2);
  auto graph = driver->createGraph();
  auto *in = reinterpret_cast<int32_t *>(*driver->allocate({-1}, 16));
  std::byte *device[2] = {*driver->allocate({0}, 16),
                          *driver->allocate({1}, 16)};
  std::vector<GraphNodeId> uploads;
  CollectiveNodeParams all;
  all.elementType = ElementType::I32;
  for (int32_t d = 0; d < 2; ++d) {
    CopyNodeParams up{"up",
                      {d},
                      device[d],
                      reinterpret_cast<std::byte *>(in),
                      Box::flat(0, 16),
                      Box::flat(0, 16)};
    uploads.push_back(*graph->addCopy(up, {}));
    all.members.push_back(
        {{d}, device[d], device[d], Box::flat(0, 16), Box::flat(0, 16)});
  }
  GraphNodeId reduced = *graph->addCollective(all, uploads);
  CopyNodeParams down{"down",
                      {1},
                      reinterpret_cast<std::byte *>(in),
                      device[1],
                      Box::flat(0, 16),
                      Box::flat(0, 16)};
  ASSERT_TRUE(graph->addCopy(down, {&reduced, 1}));
  auto exec = *graph->instantiate();
  for (int k = 0; k < 4; ++k)
    in[k] = k - 2;
  for (int replay = 0; replay < 10; ++replay)
    ASSERT_TRUE(exec->launch());
  for (int k = 0; k < 4; ++k)
    EXPECT_EQ(in[k], (k - 2) * 1024);
}

} // namespace
