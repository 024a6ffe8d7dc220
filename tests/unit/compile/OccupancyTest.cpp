// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/Occupancy.h"

#include <gtest/gtest.h>

#include <set>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#endif

namespace mgpu::kernels {
namespace {

EntryUsage usage(uint32_t registers, uint32_t shared) {
  EntryUsage entry;
  entry.name = "k";
  entry.registers = registers;
  entry.sharedBytes = shared;
  return entry;
}

TEST(DeviceProfiles, AreThoseOfAllArchitectures) {
  std::set<std::string_view> names;
  for (const device::DeviceProfile &gpu : device::deviceProfiles()) {
    names.insert(gpu.name);
    EXPECT_EQ(gpu.maxSharedBytesPerBlock + gpu.reservedSharedBytesPerBlock,
              gpu.sharedBytesPerMultiprocessor)
        << gpu.name;
  }
  for (const char *name : {"A100", "H100", "H200", "B200", "RTX 4090", "L40S"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const char *arch :
       {"sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_100",
        "sm_103", "sm_110", "sm_120", "sm_121"})
    EXPECT_TRUE(device::profileOfArchitecture(arch)) << arch;
  EXPECT_EQ(device::profileOfArchitecture("sm_90a")->name, "H100");
  EXPECT_EQ(device::profileOfArchitecture("sm_80")->name, "A100");
  EXPECT_EQ(device::profileOfArchitecture("sm_70"), nullptr);
  EXPECT_EQ(device::profileOfArchitecture(""), nullptr);
}

TEST(Occupancy, KnownCasesOfTheProgrammingGuide) {
  const auto &h100 = *device::profileOfArchitecture("sm_90");
  auto all = occupancyOf(usage(32, 0), 256, 0, h100);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->blocksPerMultiprocessor, 8u);
  EXPECT_EQ(all->fraction, 1.0);
  auto few = occupancyOf(usage(128, 0), 256, 0, h100);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->blocksPerMultiprocessor, 2u);
  EXPECT_EQ(few->fraction, 0.25);
  EXPECT_STREQ(few->limit, "registers");
  auto shared = occupancyOf(usage(32, 1024), 128, 99 * 1024, h100);
  ASSERT_TRUE(shared);
  EXPECT_EQ(shared->blocksPerMultiprocessor, 2u);
  EXPECT_STREQ(shared->limit, "shared memory");
}

TEST(Occupancy, WhatExceedsTheDeviceIsRefused) {
  const auto &h100 = *device::profileOfArchitecture("sm_90");
  EXPECT_FALSE(occupancyOf(usage(32, 0), 1025, 0, h100));
  EXPECT_FALSE(occupancyOf(usage(32, 0), 0, 0, h100));
  EXPECT_FALSE(occupancyOf(usage(128, 0), 1024, 0, h100));
  EXPECT_TRUE(occupancyOf(usage(32, 0), 32, 227 * 1024, h100));
  auto shared = occupancyOf(usage(32, 1), 32, 227 * 1024, h100);
  ASSERT_FALSE(shared);
  EXPECT_NE(shared.error().message.find("shared memory"), std::string::npos);
}

#if __has_include(<cuda_occupancy.h>)
TEST(Occupancy, AgreesWithTheToolkitEverywhere) {
  size_t compared = 0;
  for (const device::DeviceProfile &gpu : device::deviceProfiles())
    for (uint32_t threads = 1; threads <= 1024; threads += 31)
      for (uint32_t registers : {1, 16, 31, 32, 40, 64, 65, 96, 128, 168, 255})
        for (uint32_t shared : {0u, 1u, 128u, 4000u, 16384u, 49152u})
          for (uint32_t dynamic : {0u, 1000u, 50000u, 98304u, 165000u}) {
            cudaOccDeviceProp prop;
            prop.computeMajor = int(gpu.architecture / 10);
            prop.computeMinor = int(gpu.architecture % 10);
            prop.maxThreadsPerBlock = int(gpu.maxThreadsPerBlock);
            prop.maxThreadsPerMultiprocessor =
                int(gpu.maxThreadsPerMultiprocessor);
            prop.regsPerBlock = int(gpu.registersPerMultiprocessor);
            prop.regsPerMultiprocessor = int(gpu.registersPerMultiprocessor);
            prop.warpSize = 32;
            prop.sharedMemPerBlock = 48 * 1024;
            prop.sharedMemPerMultiprocessor = gpu.sharedBytesPerMultiprocessor;
            prop.numSms = 1;
            prop.sharedMemPerBlockOptin = gpu.maxSharedBytesPerBlock;
            prop.reservedSharedMemPerBlock = gpu.reservedSharedBytesPerBlock;
            cudaOccFuncAttributes function;
            function.maxThreadsPerBlock = 1024;
            function.numRegs = int(registers);
            function.sharedSizeBytes = shared;
            function.partitionedGCConfig = PARTITIONED_GC_OFF;
            function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
            function.maxDynamicSharedSizeBytes = gpu.maxSharedBytesPerBlock;
            function.numBlockBarriers = 1;
            cudaOccDeviceState state;
            state.cacheConfig = CACHE_PREFER_SHARED;
            state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
            cudaOccResult expected{};
            ASSERT_EQ(
                cudaOccMaxActiveBlocksPerMultiprocessor(
                    &expected, &prop, &function, &state, int(threads), dynamic),
                CUDA_OCC_SUCCESS);
            auto ours =
                occupancyOf(usage(registers, shared), threads, dynamic, gpu);
            ASSERT_EQ(ours ? ours->blocksPerMultiprocessor : 0,
                      uint32_t(expected.activeBlocksPerMultiprocessor))
                << gpu.name << " " << threads << " threads " << registers
                << " registers " << shared << "+" << dynamic << " bytes";
            ++compared;
          }
  EXPECT_GT(compared, 10000u);
}
#endif

} // namespace
} // namespace mgpu::kernels
