// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Twins.h over a real driver, and a main that skips every test without a card.
#include "tests/unit/cuda/RawDriver.h"
#include "tests/unit/cuda/Twins.h"

#include "device/cuda/CudaDriver.h"
#include "tests/gpu/GpuTarget.h"

#include <cstdio>
#include <cstdlib>

namespace mgpu {

namespace gpu {

Result<std::unique_ptr<device::Driver>> openCard(uint32_t numDevices) {
  device::CudaOptions options;
  options.numDevices = numDevices;
  options.deadline = std::chrono::seconds(30);
  options.compile = compile;
  return device::createCudaDriver(options);
}

/// Kernels are compiled once, not once for each driver.
Result<std::vector<std::byte>> compile(const std::string &source,
                                       const std::string &name,
                                       const std::string &arch) {
  static device::MemoryBlobCache cache;
  return kernels::compileCubin(source, name, arch, &cache);
}

} // namespace gpu

namespace fake {

Result<std::unique_ptr<device::Driver>> openCudaTwin(uint32_t numDevices,
                                                     uint64_t) {
  return gpu::openCard(numDevices);
}

std::string complaints(bool) { return ""; }

std::shared_ptr<const device::CudaApi> rawDriver() {
  auto api = device::openCuda();
  return api ? *api : nullptr;
}

std::vector<std::byte> rawCubin() {
  auto driver = gpu::openCard(1);
  if (!driver)
    return {};
  auto cubin = gpu::compile(
      "extern \"C\" __global__ void nothing(unsigned long long) {}", "nothing",
      (*driver)->architecture());
  return cubin ? *cubin : std::vector<std::byte>();
}

} // namespace fake

} // namespace mgpu

/// What ctest counts as skipped (tests/gpu/CMakeLists.txt).
static constexpr int skipped = 77;

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests))
    return RUN_ALL_TESTS();
  auto driver = mgpu::gpu::openCard(1);
  auto compiler = mgpu::kernels::NvrtcCompiler::open();
  if (!driver || !compiler) {
    std::fprintf(stderr, "%s\n",
                 (driver ? compiler.error() : driver.error()).message.c_str());
    return std::getenv("MGPU_REQUIRE_GPU") ? 1 : skipped;
  }
  driver->reset(); // its context is the tests' from here on
  return RUN_ALL_TESTS();
}
