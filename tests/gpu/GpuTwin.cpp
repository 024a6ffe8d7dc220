// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Twins.h over a real driver, and a main that skips every test without a GPU.
// It has fewer cases of collectives and copies than over the double;
// MGPU_GPU_CASES=all in the environment has all of them.
#include "tests/unit/cuda/RawDriver.h"
#include "tests/unit/cuda/Twins.h"

#include "device/cuda/CudaDriver.h"
#include "tests/gpu/GpuTarget.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace mgpu {

namespace gpu {

Result<std::unique_ptr<device::Driver>> openGpu(uint32_t numDevices) {
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
  return gpu::openGpu(numDevices);
}

bool areCasesFew() {
  const char *cases = std::getenv("MGPU_GPU_CASES");
  return !cases || std::string_view(cases) != "all";
}

std::string complaints(bool) { return ""; }

std::shared_ptr<const device::CudaApi> rawDriver() {
  auto api = device::openCuda();
  return api ? *api : nullptr;
}

bool mayDisagree() { return true; }

std::vector<std::byte> rawCubin() {
  auto driver = gpu::openGpu(1);
  if (!driver)
    return {};
  auto cubin = gpu::compile(
      "extern \"C\" __global__ void nothing(unsigned long long) {}", "nothing",
      (*driver)->architecture());
  return cubin ? *cubin : std::vector<std::byte>();
}

} // namespace fake

} // namespace mgpu

namespace {

/// The GPU's context, as making and ending it takes longer than most tests,
/// which open a driver for each case. Tests that lose it are to end with none.
class HeldContext : public testing::Environment {
public:
  void SetUp() override {
    const testing::UnitTest &all = *testing::UnitTest::GetInstance();
    for (int k = 0; k < all.total_test_suite_count(); ++k) {
      const testing::TestSuite &suite = *all.GetTestSuite(k);
      if (suite.should_run() && suite.name() == std::string("LostContexts"))
        return;
    }
    api = mgpu::fake::rawDriver();
    CUcontext context = nullptr;
    ASSERT_NE(api, nullptr);
    ASSERT_EQ(api->cuDeviceGet(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(api->cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    isHeld = true;
  }
  void TearDown() override {
    if (isHeld) {
      EXPECT_EQ(api->cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
    }
  }

private:
  std::shared_ptr<const mgpu::device::CudaApi> api;
  CUdevice device = 0;
  bool isHeld = false;
};

} // namespace

/// What ctest counts as skipped (tests/gpu/CMakeLists.txt).
static constexpr int skipped = 77;

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests))
    return RUN_ALL_TESTS();
  auto driver = mgpu::gpu::openGpu(1);
  auto compiler = mgpu::kernels::NvrtcCompiler::open();
  if (!driver || !compiler) {
    std::fprintf(stderr, "%s\n",
                 (driver ? compiler.error() : driver.error()).message.c_str());
    return std::getenv("MGPU_REQUIRE_GPU") ? 1 : skipped;
  }
  testing::AddGlobalTestEnvironment(new HeldContext); // gtest's to delete
  driver->reset();
  return RUN_ALL_TESTS();
}
