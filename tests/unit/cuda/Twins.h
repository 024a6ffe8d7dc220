// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_TWINS_H
#define MGPU_TESTS_UNIT_CUDA_TWINS_H

// The host target and the CUDA target side by side: equal memories, the same
// nodes, and the same bytes afterwards.

#include "FakeTarget.h"

#include "device/host/HostDriver.h"

#include <gtest/gtest.h>
#include <random>

namespace mgpu::fake {

class Twins {
public:
  Twins(uint32_t numDevices, uint64_t seed) : random(seed) {
    freshMachine(seed);
    auto host = device::createHostDriver(numDevices, 1);
    auto cuda = openFake(fakeOptions(numDevices));
    EXPECT_TRUE(host && cuda) << (cuda ? "" : cuda.error().message);
    drivers[0] = std::move(*host);
    drivers[1] = std::move(*cuda);
    for (size_t k = 0; k < 2; ++k)
      graphs[k] = drivers[k]->createGraph();
  }

  /// Memory of `bytes` random bytes on both; which one it is, by number.
  size_t allocate(DeviceId device, size_t bytes) {
    std::vector<std::byte> contents(bytes);
    for (std::byte &byte : contents)
      byte = std::byte(random());
    std::array<std::byte *, 2> pair{};
    for (size_t k = 0; k < 2; ++k) {
      auto memory = drivers[k]->allocate(device, bytes);
      EXPECT_TRUE(memory) << memory.error().message;
      pair[k] = *memory;
      std::memcpy(pair[k], contents.data(), bytes);
    }
    memories.push_back(pair);
    sizes.push_back(bytes);
    return memories.size() - 1;
  }

  /// add(graph, address): makes nodes; address(memory) is that of the twin.
  template <typename Add>
  void addNodes(Add add) {
    for (size_t k = 0; k < 2; ++k) {
      Result<void> ok =
          add(*graphs[k], [&](size_t memory) { return memories[memory][k]; });
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
      auto exec = graphs[k]->instantiate();
      ASSERT_TRUE(exec) << what << ": " << exec.error().message;
      for (size_t t = 0; t < times; ++t) {
        Result<void> ok = (*exec)->launch();
        ASSERT_TRUE(ok) << what << ": " << ok.error().message;
      }
    }
    for (size_t m = 0; m < memories.size(); ++m)
      for (size_t at = 0; at + width <= sizes[m]; at += width) {
        const std::byte *a = memories[m][0] + at, *b = memories[m][1] + at;
        ASSERT_TRUE(std::memcmp(a, b, width) == 0 || (equal && equal(a, b)))
            << what << ": memory " << m << " byte " << at;
      }
    EXPECT_TRUE(FakeCuda::instance().violations.empty())
        << what << ": " << FakeCuda::instance().violations.front();
  }

  void close() {
    for (size_t k = 0; k < 2; ++k) {
      graphs[k].reset();
      drivers[k].reset();
    }
    EXPECT_EQ(FakeCuda::instance().leaks(), std::vector<std::string>());
  }

  std::mt19937_64 random;
  std::array<std::unique_ptr<device::Driver>, 2> drivers;
  std::array<std::unique_ptr<device::GraphDriver>, 2> graphs;
  std::vector<std::array<std::byte *, 2>> memories;
  std::vector<size_t> sizes;
  std::array<std::string, 2> added;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_TWINS_H
