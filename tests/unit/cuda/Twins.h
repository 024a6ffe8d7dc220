// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_TWINS_H
#define MGPU_TESTS_UNIT_CUDA_TWINS_H

// The host target and the CUDA target side by side: equal memories, the same
// nodes, and the same bytes afterwards. The CUDA target is over the driver that
// is not there (FakeTwin.cpp), or, in tests/gpu, over a real one.

#include "device/host/HostDriver.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace mgpu::fake {

/// GPU 0 as `numDevices` devices. `seed` decides what the driver may.
Result<std::unique_ptr<device::Driver>> openCudaTwin(uint32_t numDevices,
                                                     uint64_t seed);
/// Whether there is time for a part of the cases alone, as on a GPU.
bool areCasesFew();
/// What the driver has to complain of since then; `isClosed` once nothing of
/// it may be left.
std::string complaints(bool isClosed);

class Twins {
public:
  Twins(uint32_t numDevices, uint64_t seed) : random(seed) {
    auto cuda = openCudaTwin(numDevices, seed);
    auto host = device::createHostDriver(numDevices, 1);
    if (!cuda || !host) {
      ADD_FAILURE() << (cuda ? host : cuda).error().message;
      std::abort();
    }
    drivers[0] = std::move(*host);
    drivers[1] = std::move(*cuda);
    for (size_t k = 0; k < 2; ++k)
      graphs[k] = drivers[k]->createGraph();
  }

  /// Memory with these bytes on both; which one it is, by number.
  size_t allocate(DeviceId device, const std::vector<std::byte> &contents) {
    Memory memory;
    memory.size = contents.size();
    for (size_t k = 0; k < 2; ++k) {
      auto made = drivers[k]->allocate(device, contents.size());
      auto mirror = drivers[k]->allocate(DeviceId::host(), contents.size());
      if (!made || !mirror) {
        ADD_FAILURE() << (made ? mirror : made).error().message;
        std::abort();
      }
      memory.at[k] = *made;
      memory.mirror[k] = *mirror;
      std::memcpy(*mirror, contents.data(), contents.size());
    }
    memories.push_back(memory);
    return memories.size() - 1;
  }
  /// Random bytes.
  size_t allocate(DeviceId device, size_t bytes) {
    std::vector<std::byte> contents(bytes);
    for (std::byte &byte : contents)
      byte = std::byte(random());
    return allocate(device, contents);
  }

  /// add(graph, address): makes nodes; address(memory) is that of the twin.
  template <typename Add>
  void addNodes(Add add) {
    for (size_t k = 0; k < 2; ++k) {
      Result<void> ok = add(
          *graphs[k], [&](size_t memory) { return memories[memory].at[k]; });
      added[k] = ok ? "" : ok.error().message;
    }
    ASSERT_EQ(added[0].empty(), added[1].empty())
        << "host: " << added[0] << "\ncuda: " << added[1];
  }
  bool isRefused() const { return !added[0].empty(); }

  /// Replays both; differing bytes are a failure, unless equal(a, b) of the
  /// elements of `width` bytes says otherwise.
  void replay(size_t times, const std::string &what, size_t width = 1,
              bool (*equal)(const std::byte *, const std::byte *) = nullptr) {
    for (size_t k = 0; k < 2; ++k) {
      copyAll(k, true);
      auto exec = graphs[k]->instantiate();
      ASSERT_TRUE(exec) << what << ": " << exec.error().message;
      for (size_t t = 0; t < times; ++t) {
        Result<void> ok = (*exec)->launch();
        ASSERT_TRUE(ok) << what << ": " << ok.error().message;
      }
      copyAll(k, false);
    }
    for (size_t m = 0; m < memories.size(); ++m)
      for (size_t at = 0; at + width <= memories[m].size; at += width) {
        const std::byte *a = memories[m].mirror[0] + at;
        const std::byte *b = memories[m].mirror[1] + at;
        ASSERT_TRUE(std::memcmp(a, b, width) == 0 || (equal && equal(a, b)))
            << what << ": memory " << m << " byte " << at;
      }
    EXPECT_EQ(complaints(false), "") << what;
  }

  void close() {
    for (size_t k = 0; k < 2; ++k) {
      graphs[k].reset();
      drivers[k].reset();
    }
    EXPECT_EQ(complaints(true), "");
  }

  std::mt19937_64 random;
  std::array<std::unique_ptr<device::GraphDriver>, 2> graphs;

private:
  struct Memory {
    std::array<std::byte *, 2> at, mirror;
    size_t size;
  };

  /// Between each memory and its mirror, which the processor can read.
  void copyAll(size_t k, bool toMemory) {
    auto graph = drivers[k]->createGraph();
    for (const Memory &memory : memories) {
      Box all = Box::flat(0, int64_t(memory.size));
      std::byte *to = toMemory ? memory.at[k] : memory.mirror[k];
      std::byte *from = toMemory ? memory.mirror[k] : memory.at[k];
      auto node = graph->addCopy({"mirror", {0}, to, from, all, all}, {});
      ASSERT_TRUE(node) << node.error().message;
    }
    auto exec = graph->instantiate();
    ASSERT_TRUE(exec) << exec.error().message;
    Result<void> ok = (*exec)->launch();
    ASSERT_TRUE(ok) << ok.error().message;
  }

  std::array<std::unique_ptr<device::Driver>, 2> drivers;
  std::vector<Memory> memories;
  std::array<std::string, 2> added;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_TWINS_H
