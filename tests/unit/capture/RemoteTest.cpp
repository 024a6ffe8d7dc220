// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One program in several processes, here threads that share nothing but
// sockets.
#include "capture/replay/Replayer.h"
#include "device/host/HostDriver.h"
#include "device/tcp/TcpChannel.h"
#include "tests/unit/capture/TestProgram.h"

#include <gtest/gtest.h>
#include <thread>

namespace mgpu::capture {
namespace {

void fillInputs(Replayer &replayer, std::vector<uint32_t> ids) {
  for (uint32_t id : ids) {
    std::span<std::byte> bytes = replayer.hostBuffer({id});
    for (size_t k = 0; k * 4 < bytes.size(); ++k) {
      const float value = float(k + 1) / float(3 + id);
      std::memcpy(bytes.data() + 4 * k, &value, 4);
    }
  }
}

/// y and out after two replays, of the process that has them.
Result<std::vector<Bytes>> run(const TestProgram &program,
                               device::Driver &driver) {
  MGPU_TRY_ASSIGN(Replayer replayer, Replayer::create(program.dag, program.plan,
                                                      program.kernels, driver));
  fillInputs(replayer, {TestProgram::ArgX, TestProgram::ArgY});
  MGPU_TRY(replayer.load());
  for (int k = 0; k < 2; ++k)
    MGPU_TRY(replayer.replay());
  MGPU_TRY(replayer.fetch());
  std::vector<Bytes> out;
  for (uint32_t id : {TestProgram::ArgY, TestProgram::Out}) {
    const auto bytes = replayer.hostBuffer({id});
    out.emplace_back(bytes.begin(), bytes.end());
  }
  return out;
}

TEST(Remote, SeveralProcessesGiveTheBitsOfOne) {
  const TestProgram program = makeTestProgram(MGPU_TEST_KERNEL);
  auto alone = device::createHostDriver(2);
  ASSERT_TRUE(alone) << alone.error().message;
  auto expected = run(program, **alone);
  ASSERT_TRUE(expected) << expected.error().message;
  for (uint32_t count : {1u, 2u, 3u}) {
    auto listening = device::listenOn(device::loopbackAt(0));
    ASSERT_TRUE(listening);
    const uint16_t port = device::localOf(*listening).port();
    *listening = {};
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        const std::chrono::seconds deadline(20);
        auto channel =
            device::joinByTcp({rank, count, "127.0.0.1", port}, deadline);
        ASSERT_TRUE(channel) << channel.error().message;
        device::MessageRendezvous others(std::move(*channel), deadline);
        device::HostPart part = device::hostPart(2, others);
        EXPECT_EQ(part.here.count, count == 1 ? 2 : rank < 2 ? 1 : 0);
        auto driver = device::createHostDriver(part);
        ASSERT_TRUE(driver) << driver.error().message;
        auto got = run(program, **driver);
        ASSERT_TRUE(got) << got.error().message;
        if (rank == 0)
          EXPECT_EQ(*got, *expected) << count << " processes";
        else
          EXPECT_EQ((*got)[0].size() + (*got)[1].size(), 0u);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
}

} // namespace
} // namespace mgpu::capture
