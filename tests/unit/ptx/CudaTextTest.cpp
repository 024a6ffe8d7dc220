// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel that is CUDA C++ alone becomes an object of the host target.
#include "device/host/HostDriver.h"
#include "kernels/compile/GivenObject.h"
#include "kernels/compile/NvrtcLibrary.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {

static const char *const reversed =
    R"(extern "C" __global__ void reversed(float *y, const float *x, int n) {
  __shared__ float part[64];
  part[threadIdx.x] = expf(x[threadIdx.x]) * SCALE;
  BARRIER
  y[threadIdx.x] = part[n - 1 - threadIdx.x];
})";

static planner::KernelSpec specOf(const char *barrier) {
  planner::CudaFile file;
  file.file = "reversed.cu";
  file.entry = file.hostEntry = "reversed";
  file.text = reversed;
  file.text.replace(file.text.find("BARRIER"), 7, barrier);
  file.tunables = {{"SCALE", {2, 3}}};
  file.parameters = {{ElementType::F32, true},
                     {ElementType::F32, true},
                     {ElementType::I32, false}};
  planner::KernelSpec spec;
  spec.name = "reversed";
  spec.block = {64, 1, 1};
  spec.numArguments = 3;
  spec.source = std::move(file);
  return spec;
}

/// The error's sentence, or "" and y.
static std::string runOn(const std::vector<std::byte> &object,
                         std::vector<float> &y) {
  auto driver = std::move(*device::createHostDriver(1));
  std::byte *to = *driver->allocate(DeviceId{0}, 256);
  std::byte *from = *driver->allocate(DeviceId{0}, 256);
  auto kernel = driver->loadKernel("reversed", object);
  if (!kernel)
    return kernel.error().message;
  reinterpret_cast<float *>(from)[5] = 1;
  device::KernelNodeParams params;
  params.name = "node";
  params.device = DeviceId{0};
  params.kernel = *kernel;
  params.arguments = {uint64_t(uintptr_t(to)), uint64_t(uintptr_t(from)), 64};
  params.memory = {{to, 256, true, "y"}, {from, 256, false, "x"}};
  auto graph = driver->createGraph();
  if (auto node = graph->addKernel(params, {}); !node)
    return node.error().message;
  if (auto ok = (*graph->instantiate())->launch(); !ok)
    return ok.error().message;
  const auto *values = reinterpret_cast<const float *>(to);
  y.assign(values, values + 64);
  return "";
}

TEST(PtxOfCuda, RunsAndIsChecked) {
  if (!NvrtcLibrary::open(""))
    GTEST_SKIP() << "NVRTC is not here, which makes PTX of CUDA C++";
  const planner::KernelSpec spec = specOf("__syncthreads();");
  ASSERT_TRUE(runsAsGiven(spec));
  std::vector<float> y;
  auto object = givenObject(spec, {}, nullptr);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(runOn(*object, y), "");
  EXPECT_EQ(y[0], 2);
  EXPECT_NEAR(y[58], 2 * 2.7182818f, 1e-5);
  object = givenObject(spec, {{"SCALE", 3}}, nullptr);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(runOn(*object, y), "");
  EXPECT_EQ(y[0], 3);
}

TEST(PtxOfCuda, AMissingBarrierIsFoundAtItsLine) {
  if (!NvrtcLibrary::open(""))
    GTEST_SKIP() << "NVRTC is not here, which makes PTX of CUDA C++";
  std::vector<float> y;
  auto object = givenObject(specOf(""), {}, nullptr);
  ASSERT_TRUE(object) << object.error().message;
  const std::string error = runOn(*object, y);
  EXPECT_NE(error.find("reversed.cu:5"), error.npos) << error;
  EXPECT_NE(error.find("shared memory"), error.npos) << error;
}

TEST(PtxOfCuda, PtxIsPreferredToAText) {
  planner::KernelSpec spec = specOf("");
  auto &file = std::get<planner::CudaFile>(spec.source);
  file.cubins["sm_80"] = "nonsense .version 8.0";
  auto object = givenObject(spec, {}, nullptr);
  ASSERT_FALSE(object);
  EXPECT_NE(object.error().message.find("'nonsense'"), std::string::npos);
  file.host = "void reversed() {}";
  EXPECT_FALSE(runsAsGiven(spec));
}

} // namespace mgpu::kernels
