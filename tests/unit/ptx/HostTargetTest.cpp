// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel given as PTX is a kernel of the host target.
#include "device/host/HostDriver.h"
#include "kernels/abi/KernelImage.h"

#include <cstring>
#include <gtest/gtest.h>

namespace mgpu::device {

static const char *const twice = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 calls = 0;
.visible .entry twice(.param .u64 y, .param .u64 x, .param .f32 by) {
  .reg .b64 %rd<6>; .reg .b32 %r<4>; .reg .f32 %f<4>;
  ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [x]; ld.param.f32 %f3, [by];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r1, %r1, %r2, %r3;
  mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd2]; mul.rn.f32 %f1, %f1, %f3; st.global.f32 [%rd1], %f1;
  ret;
})";

struct PtxOnHost : testing::Test {
  void SetUp() override {
    driver = std::move(*createHostDriver(1));
    y = *driver->allocate(DeviceId{0}, 64);
    x = *driver->allocate(DeviceId{0}, 64);
    for (int k = 0; k < 16; ++k)
      reinterpret_cast<float *>(x)[k] = float(k);
  }
  std::vector<std::byte> image(const std::string &text) {
    kernels::KernelImage image;
    image.entry = "twice";
    image.takesPart = false;
    image.block = image.sourceBlock = {8, 1, 1};
    image.blob = text;
    return kernels::encodeImage(image);
  }
  /// The sentence of what fails; "" where nothing does.
  std::string run(uint32_t blocks, bool writesY = true, size_t drop = 0) {
    auto kernel = driver->loadKernel("twice", image(twice));
    if (!kernel)
      return kernel.error().message;
    auto graph = driver->createGraph();
    KernelNodeParams params;
    params.name = "node";
    params.device = DeviceId{0};
    params.kernel = *kernel;
    params.grid = {blocks, 1, 1};
    const float by = 2;
    uint64_t bits = 0;
    std::memcpy(&bits, &by, sizeof by);
    params.arguments = {uint64_t(uintptr_t(y)), uint64_t(uintptr_t(x)), bits};
    params.arguments.resize(3 - drop);
    params.memory = {{y, 64, writesY, "y"}, {x, 64, false, "x"}};
    if (auto node = graph->addKernel(params, {}); !node)
      return node.error().message;
    auto exec = std::move(*graph->instantiate());
    for (int replay = 0; replay < 2; ++replay)
      if (auto ok = exec->launch(); !ok)
        return ok.error().message;
    return "";
  }
  std::unique_ptr<Driver> driver;
  std::byte *y = nullptr, *x = nullptr;
};

TEST_F(PtxOnHost, ComputesWhatItSays) {
  EXPECT_EQ(run(2), "");
  EXPECT_EQ(reinterpret_cast<float *>(y)[13], 26);
}

TEST_F(PtxOnHost, FaultsAreErrorsOfTheReplay) {
  const std::string beyond = run(3);
  EXPECT_NE(beyond.find("node 'node'"), beyond.npos) << beyond;
  EXPECT_NE(beyond.find("outside of all buffers"), beyond.npos) << beyond;
  EXPECT_NE(beyond.find("block 2 0 0"), beyond.npos) << beyond;
  const std::string undeclared = run(2, false);
  EXPECT_NE(undeclared.find("read only"), undeclared.npos) << undeclared;
}

TEST_F(PtxOnHost, WrongArgumentsAndTextsAreRefused) {
  EXPECT_NE(run(2, true, 1).find("takes 3 parameters"), std::string::npos);
  auto bad = driver->loadKernel("twice", image("nonsense"));
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("kernel 'twice'"), std::string::npos);
}

} // namespace mgpu::device
