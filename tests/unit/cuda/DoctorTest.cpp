// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `mgpu-tune doctor` says of a driver and GPUs, which this machine need
// not have.
#include "FakeTarget.h"

#include "pipeline/target/Doctor.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

pipeline::MachineReport reportOf(int gpus, bool areApart, int &driverMajor) {
  FakeCuda &fake = freshMachine();
  fake.gpus = gpus;
  fake.areApart = areApart;
  auto api = std::make_shared<CudaApi>(*FakeCuda::api());
  Result<void> ready = initializeCuda(*api);
  pipeline::MachineReport report;
  pipeline::reportMachine(ready ? inspectCuda(*api)
                                : Result<CudaMachine>(fail(ready.error())),
                          report, driverMajor);
  return report;
}

std::string textOf(const pipeline::MachineReport &report,
                   const std::string &title) {
  for (const auto &[key, text] : report.lines)
    if (key == title)
      return text;
  return "";
}

TEST(Doctor, TellsOfGpusClocksAndPeers) {
  int driverMajor = 0;
  pipeline::MachineReport report = reportOf(3, false, driverMajor);
  EXPECT_EQ(driverMajor, 13);
  EXPECT_EQ(textOf(report, "driver"), "knows CUDA 13.0");
  EXPECT_EQ(textOf(report, "GPU 2"),
            "Fake GPU, sm_90, 67108864 bytes, 3 multiprocessors, 1980 MHz, "
            "memory 2619 MHz, compute mode default, "
            "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(textOf(report, "peers of 1"), "0, 2");
  EXPECT_EQ(report.facts["gpus"][1]["clock_khz"], 1980000);
  EXPECT_EQ(report.facts["peer_access"][0],
            nlohmann::json::array({true, true, true}));
  EXPECT_TRUE(report.problems.empty());
}

TEST(Doctor, SaysWhichGpusDoNotReachEachOther) {
  int driverMajor = 0;
  pipeline::MachineReport report = reportOf(3, true, driverMajor);
  EXPECT_EQ(textOf(report, "peers of 1"), "none");
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].find("fast collectives of GPUs 0 and 1, 0 and "
                                    "2, 1 and 2: "),
            0u)
      << report.problems[0];
}

TEST(Doctor, SaysThatThereIsNoDriver) {
  int driverMajor = 0;
  pipeline::MachineReport report = reportOf(0, false, driverMajor);
  EXPECT_EQ(driverMajor, 0);
  EXPECT_EQ(textOf(report, "driver").find("no: cuInit"), 0u)
      << textOf(report, "driver");
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0], "--target cuda: there is no usable driver");
}

} // namespace
