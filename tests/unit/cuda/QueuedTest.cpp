// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Replays that are queued into streams of the caller's.

#include "FakeTarget.h"

#include <cstring>
#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// A graph that adds 1 to a number and copies it to the host.
class Queued : public testing::Test {
protected:
  void SetUp() override { open(20'000); }
  void open(int deadlineMs) {
    exec.reset();
    driver.reset();
    fake = &freshMachine();
    fake->gpus = 2;
    FakeKernel count;
    count.parameterSizes = {8};
    count.run = [](void **parameters, const unsigned *, const unsigned *) {
      ++**static_cast<uint32_t **>(parameters[0]);
    };
    fake->kernels["count"] = count;
    CudaOptions options = fakeOptions(1);
    options.deadline = std::chrono::milliseconds(deadlineMs);
    auto opened = openFake(options);
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
    build();
  }
  Result<KernelHandle> loadKernel(const std::string &entry) {
    kernels::KernelImage image;
    image.entry = entry;
    image.arch = "sm_90";
    image.takesPart = false;
    image.setBytes(fakeCubin({entry}));
    return driver->loadKernel(entry, kernels::encodeImage(image));
  }
  void build() {
    auto kernel = loadKernel("count");
    auto number = driver->allocate({0}, 4);
    auto out = driver->allocate(DeviceId::host(), 4);
    ASSERT_TRUE(kernel && number && out);
    host = reinterpret_cast<uint32_t *>(*out);
    auto graph = driver->createGraph();
    auto node = graph->addKernel(
        {"count", {0}, *kernel, {1, 1, 1}, {uint64_t(uintptr_t(*number))}}, {});
    ASSERT_TRUE(node) << node.error().message;
    ASSERT_TRUE(graph->addCopy(
        {"out", {0}, *out, *number, Box::flat(0, 4), Box::flat(0, 4)},
        {{*node}}));
    auto made = graph->instantiate();
    ASSERT_TRUE(made) << made.error().message;
    exec = std::move(*made);
  }
  /// A stream of the caller's in the primary context of a GPU.
  CUstream makeStream(int gpu) {
    auto api = FakeCuda::api();
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    EXPECT_EQ(api->cuDeviceGet(&device, gpu), CUDA_SUCCESS);
    EXPECT_EQ(api->cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    EXPECT_EQ(api->cuCtxPushCurrent(context), CUDA_SUCCESS);
    EXPECT_EQ(
        api->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        CUDA_SUCCESS);
    EXPECT_EQ(api->cuCtxPopCurrent(&context), CUDA_SUCCESS);
    fake->streams.find(stream)->isCallers = true;
    return stream;
  }
  size_t callsOf(std::string_view name) const {
    return size_t(std::count(fake->called.begin(), fake->called.end(), name));
  }

  FakeCuda *fake = nullptr;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphExec> exec;
  uint32_t *host = nullptr;
};

TEST_F(Queued, RunsFollowEachOtherInWhateverStream) {
  CUstream first = makeStream(0), second = makeStream(0);
  const size_t waits = callsOf("cuStreamWaitEvent");
  for (CUstream each : {first, first, second, CUstream(nullptr)}) {
    Result<void> ok = exec->enqueue(each, {});
    ASSERT_TRUE(ok) << ok.error().message;
  }
  // Each but the first waits for the one before.
  EXPECT_EQ(callsOf("cuStreamWaitEvent"), waits + 3);
  Result<void> done = driver->finish();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*host, 4u);
  ASSERT_TRUE(exec->launch());
  EXPECT_EQ(*host, 5u);
  EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
}

/// Another capture is neither joined nor spoiled.
TEST_F(Queued, NotIntoAStreamThatIsCaptured) {
  const auto api = FakeCuda::api();
  CUstream stream = makeStream(0);
  CUgraph graph = nullptr, ended = nullptr;
  ASSERT_EQ(api->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(
      api->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                       CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  for (bool wasQueued : {false, true}) {
    if (wasQueued)
      ASSERT_TRUE(exec->enqueue(makeStream(0), {}));
    Result<void> refused = exec->enqueue(stream, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::Unsupported);
    EXPECT_NE(refused.error().message.find("before or after the capture"),
              std::string::npos)
        << refused.error().message;
  }
  EXPECT_EQ(api->cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
  EXPECT_EQ(api->cuGraphDestroy(graph), CUDA_SUCCESS);
  ASSERT_TRUE(exec->enqueue(stream, {}));
  ASSERT_TRUE(driver->finish());
  EXPECT_EQ(*host, 2u);
  EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
}

/// Between what the caller captures before and after, in every mode of a
/// capture, also of a program that is queued elsewhere.
TEST_F(Queued, APartOfTheCallersGraph) {
  const auto api = FakeCuda::api();
  for (CUstreamCaptureMode mode :
       {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    CUstream stream = makeStream(0);
    CUgraph graph = nullptr, ended = nullptr;
    const uint32_t before = *host;
    ASSERT_EQ(api->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(api->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr,
                                               0, mode),
              CUDA_SUCCESS);
    for (int k = 0; k < 3; ++k) {
      Result<void> ok = exec->captureInto(stream);
      ASSERT_TRUE(ok) << ok.error().message;
    }
    ASSERT_EQ(api->cuStreamEndCapture(stream, &ended), CUDA_SUCCESS);
    EXPECT_EQ(*host, before); // nothing has run
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    CUgraphExec callers = nullptr;
    ASSERT_EQ(api->cuGraphInstantiateWithParams(&callers, graph, &params),
              CUDA_SUCCESS);
    for (uint32_t k = 1; k <= 2; ++k) {
      ASSERT_EQ(api->cuGraphLaunch(callers, stream), CUDA_SUCCESS);
      while (api->cuStreamQuery(stream) != CUDA_SUCCESS)
        ;
      EXPECT_EQ(*host, before + 3 * k);
    }
    EXPECT_EQ(api->cuGraphExecDestroy(callers), CUDA_SUCCESS);
    EXPECT_EQ(api->cuGraphDestroy(graph), CUDA_SUCCESS);
  }
  ASSERT_TRUE(exec->launch()); // it goes on by itself
  EXPECT_EQ(*host, 13u);
  EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
}

TEST_F(Queued, OnlyIntoAStreamThatIsCaptured) {
  const auto api = FakeCuda::api();
  CUstream stream = makeStream(0);
  Result<void> refused = exec->captureInto(stream);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Usage);
  EXPECT_NE(refused.error().message.find("use mgt_replay_on"),
            std::string::npos)
      << refused.error().message;
  CUgraph graph = nullptr, ended = nullptr;
  ASSERT_EQ(api->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(
      api->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0,
                                       CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  fake->streams.each([](Stream &each) {
    if (each.capture)
      each.capture->isSpoiled = true;
  });
  refused = exec->captureInto(stream);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("begin another"), std::string::npos)
      << refused.error().message;
  api->cuStreamEndCapture(stream, &ended);
  EXPECT_EQ(api->cuGraphDestroy(graph), CUDA_SUCCESS);
  ASSERT_TRUE(exec->launch());
}

/// Trips of a loop: each adds the host's number, which is written in between,
/// to what is on the GPU, and copies the sum back.
TEST_F(Queued, TripsFollowEachOtherAndReadTheirNumbers) {
  FakeKernel add;
  add.parameterSizes = {8, 8};
  add.run = [](void **parameters, const unsigned *, const unsigned *) {
    **static_cast<uint64_t **>(parameters[0]) +=
        **static_cast<uint64_t **>(parameters[1]);
  };
  fake->kernels["add"] = add;
  auto kernel = loadKernel("add");
  auto sum = driver->allocate({0}, 8), number = driver->allocate({0}, 8);
  auto trip = driver->allocate(DeviceId::host(), 8),
       out = driver->allocate(DeviceId::host(), 8);
  ASSERT_TRUE(kernel && sum && number && trip && out);
  auto graph = driver->createGraph();
  const Box word = Box::flat(0, 8);
  auto in = graph->addCopy({"in", {0}, *number, *trip, word, word}, {});
  ASSERT_TRUE(in);
  auto node = graph->addKernel(
      {"add",
       {0},
       *kernel,
       {1, 1, 1},
       {uint64_t(uintptr_t(*sum)), uint64_t(uintptr_t(*number))}},
      {{*in}});
  ASSERT_TRUE(node);
  ASSERT_TRUE(graph->addCopy({"out", {0}, *out, *sum, word, word}, {{*node}}));
  auto made = graph->instantiate();
  ASSERT_TRUE(made) << made.error().message;

  ASSERT_TRUE(driver->queuesLaunches());
  fake->busyQueries = 3; // a launch is still under way when the next is queued
  const uint64_t first = uint64_t(5) << 40; // both words count
  const size_t waits = callsOf("cuStreamWaitEvent");
  for (uint64_t k = 0; k < 5; ++k) {
    const HostValue value{*trip, first + k, 8};
    Result<void> ok = (*made)->launchNext({&value, 1});
    ASSERT_TRUE(ok) << ok.error().message;
    // No more than one is behind it.
    size_t busy = 0;
    fake->streams.any([&](const Stream &each) {
      busy += each.busyQueries > 0;
      return false;
    });
    EXPECT_LE(busy, 2u);
    EXPECT_EQ(busy > 1, k > 0);
  }
  EXPECT_EQ(callsOf("cuStreamWaitEvent"), waits + 4);
  ASSERT_TRUE(driver->finish());
  uint64_t total = 0;
  std::memcpy(&total, *out, 8);
  EXPECT_EQ(total, 5 * first + 10);
  EXPECT_TRUE(fake->violations.empty()) << fake->violations.front();
  ASSERT_TRUE((*made)->launch()); // waits, and no longer behind an event
  EXPECT_TRUE(fake->violations.empty());
}

TEST_F(Queued, NumbersGoToPinnedMemoryAlone) {
  alignas(8) std::byte own[8]{};
  const HostValue value{own, 1, 8};
  Result<void> ok = exec->launchNext({&value, 1});
  ASSERT_FALSE(ok);
  EXPECT_NE(ok.error().message.find("cuStreamWriteValue32"), std::string::npos)
      << ok.error().message;
}

TEST_F(Queued, NothingIsWaitedForTwice) {
  ASSERT_TRUE(driver->finish()); // nothing was queued
  ASSERT_TRUE(exec->enqueue(makeStream(0), {}));
  ASSERT_TRUE(driver->finish());
  const size_t queries = callsOf("cuStreamQuery");
  ASSERT_TRUE(driver->finish());
  EXPECT_EQ(callsOf("cuStreamQuery"), queries);
}

TEST_F(Queued, ARunThatDoesNotEndIsSaidWhenItIsWaitedFor) {
  open(30);
  fake->neverEnds = true;
  ASSERT_TRUE(exec->enqueue(makeStream(0), {}));
  Result<void> done = driver->finish();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find(
                "a queued replay on cuda:0 did not end within 30 ms"),
            std::string::npos)
      << done.error().message;
  EXPECT_FALSE(exec->enqueue(makeStream(0), {}));
}

TEST_F(Queued, AStreamOfAnotherGpuIsRefusedBeforeAnythingRuns) {
  const uint64_t launches = callsOf("cuGraphLaunch");
  Result<void> ok = exec->enqueue(makeStream(1), {});
  ASSERT_FALSE(ok);
  EXPECT_NE(ok.error().message.find("in the caller's stream on cuda:0"),
            std::string::npos)
      << ok.error().message;
  EXPECT_EQ(callsOf("cuGraphLaunch"), launches);
  ASSERT_TRUE(exec->launch());
  EXPECT_EQ(*host, 1u);
}

} // namespace
