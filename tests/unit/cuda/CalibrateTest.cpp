// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// `calibrate` on the driver that is not there, where a node takes an eighth of
// a millisecond.

#include "FakeCupti.h"
#include "FakeTarget.h"

#include "bench/profile/Calibrate.h"
#include "planner/cost/TargetMachine.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;
using bench::CalibrationInput;
using bench::CalibrationKernel;

CalibrationKernel kernel(const std::string &entry) {
  kernels::KernelImage object;
  object.entry = entry;
  object.arch = "sm_90";
  object.setBytes(fakeCubin({entry}));
  CalibrationKernel out;
  out.name = entry;
  out.object = kernels::encodeImage(object);
  out.grid = {4, 1, 1};
  out.arguments = {{4096, 16}, {0, 7}};
  out.flops = 250e3;
  out.bytes = 125e3;
  return out;
}

class CalibrateTest : public testing::Test {
protected:
  void open(uint32_t devices, bool withCupti) {
    fake = &freshMachine();
    FakeCupti::reset();
    calls = 0;
    for (const char *name : {"memory", "arithmetic", "product"}) {
      FakeKernel body;
      body.parameterSizes = {8, 8, 48};
      body.run = [this](void **parameters, const unsigned *, const unsigned *) {
        // It runs at its place, with the scalar it was given.
        std::byte *at = *static_cast<std::byte **>(parameters[0]);
        *at = std::byte(1);
        EXPECT_EQ(*static_cast<uint64_t *>(parameters[1]), 7u);
        EXPECT_EQ(uintptr_t(at) % 256, 16u);
        ++calls;
      };
      fake->kernels[name] = body;
    }
    auto api = std::make_shared<CudaApi>(*FakeCuda::api());
    ASSERT_TRUE(initializeCuda(*api));
    Result<std::shared_ptr<const CuptiApi>> cupti = noCupti();
    if (withCupti)
      cupti = FakeCupti::api();
    auto opened =
        createCudaDriver(api, fakeOptions(devices), nullptr, nullptr, cupti);
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
  }
  Result<Topology> calibrate() {
    CalibrationInput input{*driver,
                           kernel("memory"),
                           kernel("arithmetic"),
                           {{"bf16", 64, 64, 64, kernel("product")}},
                           {},
                           ""};
    input.about.name = "fake";
    input.about.device.name = "Fake GPU";
    input.about.device.architecture = 90;
    input.about.device.memoryBytes = 64 << 20;
    input.about.device.smCount = 3;
    input.source = "measured by calibrate on 2025-11-22: ";
    input.largestBytes = 65536;
    input.secondsPerFigure = 0.01;
    return bench::calibrate(input);
  }

  FakeCuda *fake = nullptr;
  std::unique_ptr<Driver> driver;
  size_t calls = 0;
};

TEST_F(CalibrateTest, RatesFollowFromTheDriversTimes) {
  for (bool withCupti : {false, true}) {
    open(2, withCupti);
    auto measured = calibrate();
    ASSERT_TRUE(measured) << measured.error().message;
    EXPECT_GT(calls, 0u);
    // 125e3 bytes and 250e3 operations in 125 us.
    EXPECT_NEAR(measured->device.memoryBytesPerSecond, 1e9, 1e6);
    EXPECT_NEAR(measured->device.flopsPerSecond, 2e9, 1e6);
    EXPECT_NEAR(measured->device.bf16FlopsPerSecond,
                2.0 * 64 * 64 * 64 / 125e-6, 1e7);
    EXPECT_EQ(measured->devices, 2u);
    const Topology::Calibration &c = *measured->calibration;
    EXPECT_NEAR(c.launchUs, 125, 1);
    EXPECT_NEAR(c.copyLatencyUs, 125, 1);
    // 6 operations of 4096 and 65536 bytes.
    ASSERT_EQ(c.collectives.size(), 12u);
    EXPECT_EQ(c.collectives[0].op, "all_reduce");
    EXPECT_GE(c.collectives[0].us, 124);
    // Nothing runs beside anything; but events before and after a node have
    // between them what the driver runs meanwhile.
    EXPECT_EQ(c.contention.empty(), withCupti);
    EXPECT_EQ(c.besideKernel.empty(), withCupti);
    for (const auto &each : c.contention)
      EXPECT_GE(each.factor, 1) << each.work << " beside " << each.beside;
    for (const std::string &source :
         {measured->device.source, measured->link.source,
          measured->hostLink.source, c.source})
      EXPECT_EQ(source.find("measured by calibrate on 2025-11-22: "), 0u)
          << source;
    EXPECT_EQ(fake->violations, std::vector<std::string>());

    // What is written is planned with.
    auto read = parseTopology(topologyText(*measured), "t");
    ASSERT_TRUE(read) << read.error().message;
    const planner::Machine model(*read);
    EXPECT_EQ(model.collective(CollectiveKind::AllReduce, 4096, 2, 1).us,
              read->calibration->collectives[0].us);
    driver.reset();
    EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  }
}

TEST(CalibrateHost, FiguresThatASecondPassContradictsAreLeftOut) {
  Topology::Calibration first;
  first.host = {{{{"launch", 1}}, 64, 1}, {{{"exp", 8}}, 64, 2}};
  first.matmuls = {{"f32", 8, 8, 8, 4}};
  first.collectives = {{"all_reduce", 2, 64, 1}, {"all_reduce", 2, 1024, 6}};
  Topology::Calibration second = first;
  second.host[0].us = 1.2;
  second.host[1].us = 3.5;
  second.matmuls[0].us = 3.5;
  second.collectives[0].us = 0.2;
  size_t refused = 0;
  std::vector<Topology::Calibration> passes{first, second};
  const Topology::Calibration both = bench::agreed(passes, refused);
  EXPECT_EQ(refused, 2u);
  ASSERT_EQ(both.host.size(), 1u);
  EXPECT_EQ(both.host[0].us, 1);
  EXPECT_EQ(both.matmuls[0].us, 3.5);
  ASSERT_EQ(both.collectives.size(), 1u);
  EXPECT_EQ(both.collectives[0].bytes, 1024u);
  // A third pass settles what two could not.
  passes.push_back(first);
  passes.back().host[1].us = 2.2;
  refused = 0;
  EXPECT_EQ(bench::agreed(passes, refused).host.size(), 2u);
  EXPECT_EQ(refused, 0u);
}

TEST_F(CalibrateTest, OneDeviceHasNoLinkOfItsOwn) {
  open(1, false);
  auto measured = calibrate();
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_TRUE(measured->calibration->collectives.empty());
  EXPECT_EQ(measured->link.bytesPerSecond, measured->hostLink.bytesPerSecond);
  EXPECT_NE(measured->link.source.find("no second device"), std::string::npos);
  EXPECT_TRUE(parseTopology(topologyText(*measured), "t"));
}

TEST_F(CalibrateTest, AFailureEndsIt) {
  open(2, false);
  fake->failAt = fake->calls + 203;
  auto measured = calibrate();
  ASSERT_FALSE(measured) << fake->failedCall << " may fail";
  EXPECT_NE(measured.error().message.find(fake->failedCall), std::string::npos)
      << measured.error().message;
  driver.reset();
  EXPECT_EQ(fake->leaks(), std::vector<std::string>());
}

} // namespace
