// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Times of nodes by CUPTI's records, and by events where there are none.

#include "FakeCupti.h"
#include "FakeTarget.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// out[0] += 1, in as many launches as asked for.
FakeKernel addingKernel() {
  FakeKernel kernel;
  kernel.parameterSizes = {8, 48};
  kernel.run = [](void **parameters, const unsigned *, const unsigned *) {
    ++**static_cast<uint32_t **>(parameters[0]);
  };
  return kernel;
}

class CuptiTest : public testing::Test {
protected:
  void SetUp() override {
    fake = &freshMachine();
    fake->kernels["add"] = addingKernel();
    cupti = &FakeCupti::reset();
  }
  void TearDown() override {
    exec.reset();
    driver.reset();
    EXPECT_EQ(cupti->violations, std::vector<std::string>());
    EXPECT_EQ(fake->violations, std::vector<std::string>());
    EXPECT_EQ(fake->leaks(), std::vector<std::string>());
  }

  /// A kernel, a copy after it, and a node that joins them and does nothing.
  void open(Result<std::shared_ptr<const CuptiApi>> table) {
    auto api = std::make_shared<CudaApi>(*FakeCuda::api());
    ASSERT_TRUE(initializeCuda(*api));
    CudaOptions options = fakeOptions(2);
    options.profiles = true;
    warnings.clear();
    options.warn = [this](const std::string &text) {
      warnings.push_back(text);
    };
    auto opened = createCudaDriver(api, options, nullptr, nullptr, table);
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
    kernels::KernelImage object;
    object.entry = "add";
    object.arch = "sm_90";
    object.setBytes(fakeCubin({"add"}));
    auto handle = driver->loadKernel("add", kernels::encodeImage(object));
    ASSERT_TRUE(handle) << handle.error().message;
    out = *driver->allocate({0}, 4);
    host = *driver->allocate(DeviceId::host(), 4);
    auto graph = driver->createGraph();
    // 70000 blocks along y make two nodes of CUDA's and one that joins them.
    auto kernel = graph->addKernel(
        {"k", {1}, *handle, {1, 70000, 1}, {uint64_t(uintptr_t(out))}}, {});
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto copy = graph->addCopy(
        {"c", {0}, host, out, Box::flat(0, 4), Box::flat(0, 4)}, {{*kernel}});
    ASSERT_TRUE(copy);
    auto nothing = graph->addCopy(
        {"n", {0}, host, out, Box::flat(0, 0), Box::flat(0, 0)}, {{*copy}});
    ASSERT_TRUE(nothing) << nothing.error().message;
    auto made = graph->instantiate();
    ASSERT_TRUE(made) << made.error().message;
    exec = std::move(*made);
  }
  void open() { open(FakeCupti::api()); }

  /// Times of all three nodes, which ran `runs` times by now.
  void expectTimes(uint32_t runs) {
    std::vector<NodeTiming> timings;
    Result<void> ok = exec->launchTimed(timings);
    ASSERT_TRUE(ok) << ok.error().message;
    EXPECT_EQ(*reinterpret_cast<uint32_t *>(host), 2 * runs);
    ASSERT_EQ(timings.size(), 3u);
    for (uint32_t k = 0; k < 3; ++k)
      EXPECT_EQ(timings[k].node.value, k);
    EXPECT_EQ(timings[0].queue, 1u);
    EXPECT_LT(timings[0].startUs, timings[0].endUs);
    EXPECT_LE(timings[0].endUs, timings[1].startUs);
    EXPECT_LT(timings[1].startUs, timings[1].endUs);
    EXPECT_LE(timings[1].endUs, timings[2].startUs);
    EXPECT_LE(timings[2].startUs, timings[2].endUs);
    ASSERT_EQ(exec->hostSpans().size(), 2u);
    EXPECT_EQ(exec->hostSpans()[1].activity, HostActivity::Wait);
  }
  void expectEvents(const std::string &reason) {
    EXPECT_NE(driver->timedBy().find("CUDA events"), std::string::npos)
        << driver->timedBy();
    EXPECT_NE(driver->timedBy().find(reason), std::string::npos)
        << driver->timedBy();
    // Said once, in the same words.
    EXPECT_EQ(warnings, std::vector<std::string>{"nodes are timed by " +
                                                 driver->timedBy()});
  }

  FakeCuda *fake = nullptr;
  FakeCupti *cupti = nullptr;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphExec> exec;
  std::vector<std::string> warnings;
  std::byte *out = nullptr, *host = nullptr;
};

TEST_F(CuptiTest, RecordsBecomeTimesOfNodes) {
  open();
  for (uint32_t run = 1; run <= 3; ++run)
    expectTimes(run);
  EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
  EXPECT_EQ(cupti->buffersOut, 0u);
  // Without events: each of CUDA's nodes takes an eighth of a millisecond here.
  std::vector<NodeTiming> timings;
  ASSERT_TRUE(exec->launchTimed(timings));
  EXPECT_NEAR(timings[0].endUs - timings[0].startUs, 250, 1e-6);
  EXPECT_NEAR(timings[1].endUs - timings[1].startUs, 125, 1e-6);
  EXPECT_EQ(timings[2].startUs, timings[2].endUs);
  for (const std::string &call : fake->called)
    EXPECT_NE(call, "cuEventCreate");
}

TEST_F(CuptiTest, RecordsMayNameTheNodesThatWereCloned) {
  cupti->namesOriginals = true;
  open();
  expectTimes(1);
  EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
}

TEST_F(CuptiTest, RecordsMayComeLate) {
  open();
  cupti->late = 3;
  expectTimes(1);
  EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
}

TEST_F(CuptiTest, BuffersThatAreKeptBackAreForced) {
  open();
  cupti->needsForce = true;
  expectTimes(1);
  auto us = exec->launchSpan();
  ASSERT_TRUE(us && *us) << us.error().message;
  EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
  EXPECT_EQ(warnings, std::vector<std::string>());
}

/// Two records of one node are not those of two.
TEST_F(CuptiTest, EachNodeHasItsRecord) {
  open();
  cupti->twice = 2;
  expectTimes(1);
  EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
}

/// CUPTI may hold a lock of its own around callbacks in two threads.
TEST_F(CuptiTest, ItIsCalledWithoutALock) {
  open();
  std::vector<NodeTiming> timings;
  cupti->hasWorker = true; // first at a clone's number
  ASSERT_TRUE(exec->launchTimed(timings));
  EXPECT_EQ(cupti->violations, std::vector<std::string>());
  ASSERT_EQ(cupti->threads.size(), 1u);
  cupti->hasWorker = true; // then at a record
  ASSERT_TRUE(exec->launchTimed(timings));
  EXPECT_EQ(cupti->threads.size(), 2u);
  EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
}

/// The span of a launch is events', and nothing is recorded for it.
TEST_F(CuptiTest, ASpanIsByEvents) {
  open();
  auto us = exec->launchSpan();
  ASSERT_TRUE(us && *us) << us.error().message;
  EXPECT_GT(**us, 0);
  EXPECT_TRUE(cupti->wereEnabled.empty());
  expectTimes(2);
  EXPECT_TRUE(cupti->enabled.count(CuptiKind::ConcurrentKernel));
}

TEST_F(CuptiTest, PlainReplaysAreNotRecorded) {
  open();
  ASSERT_TRUE(exec->launch());
  EXPECT_TRUE(cupti->wereEnabled.empty());
}

TEST_F(CuptiTest, WithoutTheLibraryThereAreEvents) {
  open(openCupti("libcupti-that-is-not-there.so"));
  expectTimes(1);
  expectEvents("no libcupti.so: install CUPTI");
  auto us = exec->launchSpan();
  ASSERT_TRUE(us && *us) << us.error().message;
  EXPECT_GT(**us, 0);
}

TEST_F(CuptiTest, WithoutPermissionThereAreEvents) {
  // Some drivers refuse the client, others the first kind.
  for (const char *call : {"Subscribe", "ActivityEnable"}) {
    TearDown();
    SetUp();
    cupti->refused[call] = CuptiResult::InsufficientPrivileges;
    open();
    expectTimes(1);
    expectEvents("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    expectEvents("--cap-add=SYS_ADMIN");
    expectTimes(2);
  }
}

TEST_F(CuptiTest, UnderAnotherProfilerThereAreEvents) {
  cupti->isSubscribed = true;
  open();
  expectTimes(1);
  expectEvents("under another profiler");
}

TEST_F(CuptiTest, EachCallThatFailsLeavesEvents) {
  for (const char *call :
       {"Subscribe", "EnableCallback", "ActivityRegisterCallbacks",
        "ActivityEnable", "ActivityFlushAll", "ActivityGetNumDroppedRecords"}) {
    TearDown();
    SetUp();
    cupti->refused[call] = CuptiResult::Unknown;
    open();
    expectTimes(std::string(call).find("Activity") == 0 &&
                        std::string(call) != "ActivityEnable" &&
                        std::string(call) != "ActivityRegisterCallbacks"
                    ? fake->launches + 1
                    : 1);
    expectEvents("CUPTI's code 999");
  }
  // These are done without.
  for (const char *call : {"GetTimestamp"}) {
    TearDown();
    SetUp();
    cupti->refused[call] = CuptiResult::Unknown;
    open();
    expectTimes(1);
    EXPECT_EQ(driver->timedBy(), "CUPTI 13.0");
  }
}

TEST_F(CuptiTest, RecordsThatAreLostLeaveEvents) {
  struct Case {
    const char *reason;
    std::function<void(FakeCupti &)> harm;
  };
  for (const Case &each : {
           Case{"CUPTI dropped 1 records",
                [](FakeCupti &cupti) { cupti.drops = 1; }},
           Case{"no times of 'k'",
                [](FakeCupti &cupti) { cupti.knowsNoTimes = true; }},
           Case{"0 records of the 1 nodes of 'c'",
                [](FakeCupti &cupti) {
                  cupti.unrecorded.insert(CU_GRAPH_NODE_TYPE_MEMCPY);
                }},
           Case{"0 records of the 2 nodes of 'k'",
                [](FakeCupti &cupti) {
                  cupti.refused["GetGraphNodeId"] = CuptiResult::Unknown;
                }},
       }) {
    TearDown();
    SetUp();
    open();
    each.harm(*cupti);
    // The launch that gave nothing was made, and another one follows it.
    expectTimes(2);
    expectEvents(each.reason);
    expectTimes(3);
  }
}

TEST_F(CuptiTest, ALostTargetIsNotLaunchedAgain) {
  open();
  fake->launchFault = CUDA_ERROR_ILLEGAL_ADDRESS;
  std::vector<NodeTiming> timings;
  Result<void> ok = exec->launchTimed(timings);
  ASSERT_FALSE(ok);
  EXPECT_NE(ok.error().message.find("CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos);
  size_t launches = 0;
  for (const std::string &call : fake->called)
    launches += call == "cuGraphLaunch";
  EXPECT_EQ(launches, 1u);
  exec.reset();
  driver.reset();
  SetUp();
}

TEST(OpenCupti, OnlyKnownVersionsAreRead) {
  EXPECT_TRUE(checkCuptiVersion(130001));
  EXPECT_TRUE(checkCuptiVersion(22));
  for (uint32_t version : {18u, 140000u}) {
    Result<void> ok = checkCuptiVersion(version);
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().kind, ErrorKind::Absent);
  }
  EXPECT_NE(checkCuptiVersion(140000).error().message.find("libcupti is 14.0"),
            std::string::npos);
  EXPECT_EQ(cuptiVersionText(22), "12.4");
}

TEST(OpenCupti, TheToolkitsLibraryHasAllThatIsCalled) {
  const char *path = "/usr/local/cuda/lib/libcupti.so.13";
  struct stat found;
  if (stat(path, &found) != 0)
    GTEST_SKIP() << path << " is not there";
  auto api = openCupti(path);
  ASSERT_TRUE(api) << api.error().message;
  EXPECT_GE((*api)->version, 130000u);
  EXPECT_FALSE(openCupti("libm.so.6"));
}

} // namespace
