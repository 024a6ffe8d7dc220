// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/Replayer.h"

#include "TestProgram.h"
#include "device/host/HostDriver.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::capture;
using planner::BufferId;
using planner::Phase;

float *floats(Replayer &replayer, uint32_t buffer) {
  return reinterpret_cast<float *>(
      replayer.hostBuffer(BufferId{buffer}).data());
}

class ReplayerOnThreads : public testing::TestWithParam<uint32_t> {};

TEST_P(ReplayerOnThreads, LoadsReplaysAndFetches) {
  TestProgram program = makeTestProgram(MGPU_TEST_KERNEL);
  auto driver = *device::createHostDriver(2, GetParam());
  auto made =
      Replayer::create(program.dag, program.plan, program.kernels, *driver);
  ASSERT_TRUE(made) << made.error().message;
  Replayer replayer = std::move(*made);
  EXPECT_EQ(replayer.hostBuffer({TestProgram::ArgX}).size(), 8u * half);
  EXPECT_TRUE(replayer.hostBuffer({TestProgram::X0}).empty());
  EXPECT_TRUE(replayer.hostBuffer({1000}).empty());
  EXPECT_EQ(floats(replayer, TestProgram::Bias)[half - 1], 0.5f);

  float *x = floats(replayer, TestProgram::ArgX);
  float *y = floats(replayer, TestProgram::ArgY);
  for (int64_t k = 0; k < 2 * half; ++k)
    x[k] = float(k), y[k] = 1;
  ASSERT_TRUE(replayer.load());
  for (int64_t k = 0; k < 2 * half; ++k)
    x[k] = -1; // resident: later changes must not show
  for (int replay = 0; replay < 49; ++replay)
    ASSERT_TRUE(replayer.replay());
  auto timed = replayer.replayTimed();
  ASSERT_TRUE(timed);
  ASSERT_TRUE(replayer.fetch());

  const float *out = floats(replayer, TestProgram::Out);
  for (int64_t k = 0; k < 2 * half; ++k)
    EXPECT_EQ(y[k], 1 + 100 * float(k));
  for (int64_t k = 0; k < half; ++k)
    EXPECT_EQ(out[k], y[k] + y[k + half]);

  ASSERT_EQ(timed->nodes.size(), 7u);
  for (size_t k = 0; k < timed->nodes.size(); ++k) {
    EXPECT_EQ((timed->nodes)[k].node.value,
              k + 2); // nodes 2 to 8 are the replay
    EXPECT_LE((timed->nodes)[k].startUs, (timed->nodes)[k].endUs);
  }
  EXPECT_EQ(replayer.graph(Phase::Load).dagNodes.size(), 2u);
  EXPECT_EQ(replayer.graph(Phase::Fetch).dagNodes.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Threads, ReplayerOnThreads,
                         testing::Values(1u, 2u, 4u));

class ReplayerErrors : public testing::Test {
protected:
  void expect(ErrorKind kind, const char *words, uint32_t devices = 2) {
    auto driver = *device::createHostDriver(devices, 1);
    auto made =
        Replayer::create(program.dag, program.plan, program.kernels, *driver);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, kind);
    EXPECT_NE(made.error().message.find(words), std::string::npos)
        << made.error().message;
  }
  TestProgram program = makeTestProgram(MGPU_TEST_KERNEL);
};

TEST_F(ReplayerErrors, TooFewDevices) {
  expect(ErrorKind::Absent, "needs 2 devices", 1);
}
TEST_F(ReplayerErrors, KernelMissing) {
  program.kernels.clear();
  expect(ErrorKind::Invalid, "has 1 kernels, but 0");
}
TEST_F(ReplayerErrors, KernelDamaged) {
  program.kernels[0].resize(100);
  expect(ErrorKind::Invalid, "kernel 'axpy'");
}
TEST_F(ReplayerErrors, HugeArena) {
  program.plan.arenaBytes[1] = uint64_t(1) << 60;
  expect(ErrorKind::Absent, "for device 1");
}
TEST_F(ReplayerErrors, ConstantOfTheWrongSize) {
  program.dag.buffers[TestProgram::Bias].contents.pop_back();
  expect(ErrorKind::Invalid, "constant 'bias'");
}

} // namespace
