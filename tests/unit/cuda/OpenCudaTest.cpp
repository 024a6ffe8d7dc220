// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Finding the driver, on machines that have none, a wrong one or a stub.

#include "device/cuda/api/CudaApi.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;

TEST(OpenCuda, AMissingDriverIsSaid) {
  auto api = openCuda("libcuda-that-is-not-there.so.1");
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().kind, ErrorKind::Absent);
  EXPECT_NE(api.error().message.find("no NVIDIA driver"), std::string::npos);
  EXPECT_NE(api.error().message.find("--target host"), std::string::npos);
}

TEST(OpenCuda, AnotherLibraryIsNoDriver) {
  auto api = openCuda("libm.so.6");
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().kind, ErrorKind::Absent);
  EXPECT_NE(api.error().message.find("older than CUDA 12.0"),
            std::string::npos);
}

TEST(OpenCuda, TheToolkitsStubIsNoDriver) {
  const char *stub = "/usr/local/cuda/lib/stubs/libcuda.so";
  if (access(stub, R_OK) != 0)
    GTEST_SKIP() << stub << " is not there";
  auto api = openCuda(stub);
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().kind, ErrorKind::Absent);
}

TEST(OpenCuda, VersionsAreSpelled) {
  EXPECT_EQ(cudaVersionText(13000), "13.0");
  EXPECT_EQ(cudaVersionText(12090), "12.9");
}

} // namespace
