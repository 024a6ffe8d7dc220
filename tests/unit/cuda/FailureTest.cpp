// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Everything that can go wrong in the driver, at every call: no crash, no leak,
// the right words.

#include "FakeTarget.h"

#include "device/cuda/api/CudaError.h"

#include <fstream>
#include <gtest/gtest.h>
#include <regex>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

void prepare(FakeCuda &fake) {
  fake.kernels["nothing"] = {
      [](void **, const unsigned *, const unsigned *) {}, {8, 24}, 1024};
}

/// A bit of everything, up to destruction; `isTearingDown` says when.
Result<void> scenario(bool &isTearingDown) {
  isTearingDown = false;
  MGPU_TRY_ASSIGN(std::unique_ptr<Driver> driver, openFake(fakeOptions(2)));
  MGPU_TRY_ASSIGN(std::byte * a, driver->allocate({0}, 4096));
  MGPU_TRY_ASSIGN(std::byte * b, driver->allocate({1}, 4096));
  MGPU_TRY_ASSIGN(std::byte * host, driver->allocate(DeviceId::host(), 4096));
  kernels::KernelImage object;
  object.entry = "nothing";
  object.dynamicSharedBytes = 64 * 1024;
  object.setBytes(fakeCubin({"nothing"}));
  MGPU_TRY_ASSIGN(KernelHandle kernel,
                  driver->loadKernel("nothing", kernels::encodeImage(object)));
  std::unique_ptr<GraphDriver> graph = driver->createGraph();
  Box flat{0, {64}, {4}, 4}, rows{0, {8, 8}, {64, 4}, 4};
  MGPU_TRY_ASSIGN(GraphNodeId up,
                  graph->addCopy({"up", {0}, a, host, rows, flat}, {}));
  MGPU_TRY_ASSIGN(
      GraphNodeId run,
      graph->addKernel({"run", {0}, kernel, {1, 70000, 1}, {7}}, {{up}}));
  Box shifted = rows;
  shifted.offset = 32;
  MGPU_TRY_ASSIGN(
      GraphNodeId across,
      graph->addCopy({"across", {0}, a, a, shifted, rows}, {{run}}));
  CollectiveNodeParams sum;
  sum.name = "sum";
  sum.members = {{{0}, a, a, rows, rows}, {{1}, b, b, rows, rows}};
  MGPU_TRY_ASSIGN(GraphNodeId reduced, graph->addCollective(sum, {{across}}));
  GraphNodeId both[] = {reduced, run};
  MGPU_TRY(graph->addCopy({"down", {0}, host, a, flat, rows}, both));
  MGPU_TRY_ASSIGN(std::unique_ptr<GraphExec> exec, graph->instantiate());
  MGPU_TRY(exec->launch());
  std::vector<NodeTiming> timings;
  MGPU_TRY(exec->launchTimed(timings));
  isTearingDown = true;
  return {};
}

bool isTornDown(const std::string &call) {
  for (const char *end :
       {"Destroy", "Free", "Unload", "Release", "Pop", "Unregister"})
    if (call.find(end) != std::string::npos)
      return true;
  return false;
}

TEST(Failure, OfEveryCall) {
  FakeCuda &calm = freshMachine();
  prepare(calm);
  bool isTearingDown = false;
  Result<void> ok = scenario(isTearingDown);
  ASSERT_TRUE(ok) << ok.error().message;
  ASSERT_EQ(calm.leaks(), std::vector<std::string>());
  ASSERT_TRUE(calm.violations.empty()) << calm.violations.front();
  uint64_t calls = calm.calls;
  ASSERT_GT(calls, 100u);
  for (CUresult code : {CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_OUT_OF_MEMORY,
                        CUDA_ERROR_INVALID_VALUE})
    for (uint64_t n = 1; n <= calls; ++n) {
      FakeCuda &fake = freshMachine();
      prepare(fake);
      fake.failAt = n;
      fake.failCode = code;
      fake.logMessage = "the driver's own words\n";
      Result<void> result = scenario(isTearingDown);
      std::string at = "call " + std::to_string(n) + ", " + fake.failedCall +
                       ", code " + std::to_string(int(code));
      ASSERT_FALSE(fake.failedCall.empty()) << at;
      ASSERT_TRUE(fake.violations.empty())
          << at << ": " << fake.violations.front();
      // Without its context current the driver frees nothing.
      if (fake.failedCall != "cuCtxPushCurrent" || !isTearingDown) {
        ASSERT_EQ(fake.leaks(), std::vector<std::string>()) << at;
      }
      // A log that is not to be had is done without; that a kernel's
      // parameters end is said by INVALID_VALUE.
      if (isTornDown(fake.failedCall) || isTearingDown ||
          fake.failedCall == "cuLogsRegisterCallback")
        continue;
      ASSERT_FALSE(result) << at;
      const std::string &message = result.error().message;
      std::string words = fake.failedCall;
      if (words == "cuKernelGetParamInfo" && code == CUDA_ERROR_INVALID_VALUE)
        words = "compiled with";
      else if (words == "cuMemAlloc" && code == CUDA_ERROR_OUT_OF_MEMORY)
        words = "no room for";
      else if (words == "cuMemHostAlloc" && code == CUDA_ERROR_OUT_OF_MEMORY)
        words = "cannot pin";
      ASSERT_NE(message.find(words), std::string::npos)
          << at << ": " << message;
      if (fake.logs.empty() && message.find(fake.failedCall + " ") == 0 &&
          n > 4) { // the log is open by then
        ASSERT_NE(message.find("CUDA says: the driver's own words"),
                  std::string::npos)
            << message;
      }
    }
}

TEST(Failure, ThatLosesTheContextEndsAllCalls) {
  FakeCuda &calm = freshMachine();
  prepare(calm);
  bool isTearingDown = false;
  ASSERT_TRUE(scenario(isTearingDown));
  uint64_t calls = calm.calls;
  for (uint64_t n = 1; n <= calls; ++n) {
    FakeCuda &fake = freshMachine();
    prepare(fake);
    fake.failAt = n;
    fake.failCode = CUDA_ERROR_ILLEGAL_ADDRESS;
    (void)scenario(isTearingDown);
    ASSERT_TRUE(fake.violations.empty()) << n;
  }
}

class Lost : public testing::Test {
protected:
  void build() {
    auto opened = openFake(options);
    ASSERT_TRUE(opened) << opened.error().message;
    driver = std::move(*opened);
    auto memory = driver->allocate({0}, 64);
    ASSERT_TRUE(memory);
    auto graph = driver->createGraph();
    ASSERT_TRUE(graph->addCopy(
        {"copy", {0}, *memory, *memory + 32, Box::flat(0, 8), Box::flat(0, 8)},
        {}));
    auto made = graph->instantiate();
    ASSERT_TRUE(made) << made.error().message;
    exec = std::move(*made);
  }
  /// After `message` was said once, all else is refused without asking CUDA.
  void expectDead(const std::string &message) {
    FakeCuda &fake = FakeCuda::instance();
    uint64_t calls = fake.calls;
    Result<void> again = exec->launch();
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find("lost before"), std::string::npos);
    EXPECT_NE(again.error().message.find(message), std::string::npos)
        << again.error().message;
    std::vector<NodeTiming> timings;
    EXPECT_FALSE(exec->launchTimed(timings));
    EXPECT_FALSE(driver->allocate({0}, 8));
    EXPECT_FALSE(driver->createGraph()->instantiate());
    exec.reset();
    driver.reset();
    // The log's callback is taken back; nothing that could wait is called.
    for (size_t k = calls; k < fake.called.size(); ++k)
      EXPECT_EQ(fake.called[k], "cuLogsUnregisterCallback");
  }

  FakeCuda &fake = freshMachine();
  CudaOptions options = fakeOptions(1);
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphExec> exec;
};

TEST_F(Lost, AReplayThatDoesNotEnd) {
  options.deadline = std::chrono::milliseconds(30);
  build();
  fake.neverEnds = true;
  auto start = std::chrono::steady_clock::now();
  Result<void> ok = exec->launch();
  auto passed = std::chrono::steady_clock::now() - start;
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().kind, ErrorKind::Invalid);
  EXPECT_NE(
      ok.error().message.find("a replay on cuda:0 did not end within 30 ms"),
      std::string::npos)
      << ok.error().message;
  EXPECT_GE(passed, std::chrono::milliseconds(30));
  expectDead("did not end within 30 ms");
}

TEST_F(Lost, AKernelThatFaults) {
  build();
  fake.launchFault = CUDA_ERROR_ILLEGAL_ADDRESS;
  fake.logMessage = "Illegal access at 0xdead";
  Result<void> ok = exec->launch();
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().kind, ErrorKind::Invalid);
  EXPECT_EQ(ok.error().message,
            "cuStreamQuery after a replay on cuda:0: "
            "CUDA_ERROR_ILLEGAL_ADDRESS = 700 (words of the driver); CUDA "
            "says: Illegal access at 0xdead; a kernel of the program faulted "
            "and its device is lost to this process: run it on --target host "
            "to find where");
  expectDead("CUDA_ERROR_ILLEGAL_ADDRESS");
}

/// cuda.h says of each code what it leaves behind.
TEST(Sticky, CodesAreThoseOfTheHeader) {
  std::ifstream header(MGPU_CUDA_HEADER);
  std::string line, comment;
  bool isInside = false;
  int numRead = 0, numSticky = 0;
  while (std::getline(header, line)) {
    isInside |= line.find("typedef enum cudaError_enum") == 0;
    if (!isInside)
      continue;
    if (line.find("} CUresult;") == 0)
      break;
    std::smatch found;
    if (!std::regex_search(line, found,
                           std::regex("(CUDA_[A-Z_]+) *= ([0-9]+)"))) {
      comment += line;
      continue;
    }
    const bool isEnd =
        std::regex_search(std::exchange(comment, {}),
                          std::regex("terminated[ *]+and[ *]+relaunched"));
    const CUresult code = CUresult(std::stoi(found[2]));
    ++numRead;
    numSticky += isEnd;
    if (!isEnd)
      continue;
    EXPECT_TRUE(isSticky(code)) << found[1];
    Error error = cudaError(*FakeCuda::api(), code, "call", "here").value();
    EXPECT_NE(error.kind, ErrorKind::Internal) << found[1];
    EXPECT_NE(error.message.find(");"), std::string::npos) << error.message;
  }
  EXPECT_GT(numRead, 90) << MGPU_CUDA_HEADER;
  EXPECT_GT(numSticky, 10);
  EXPECT_TRUE(isSticky(CUDA_ERROR_CONTEXT_IS_DESTROYED));
  for (CUresult code :
       {CUDA_SUCCESS, CUDA_ERROR_NOT_READY, CUDA_ERROR_OUT_OF_MEMORY,
        CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED})
    EXPECT_FALSE(isSticky(code)) << code;
}

TEST(ReadBack, FindsANodeThatIsNotThere) {
  FakeCuda &fake = freshMachine();
  auto driver = openFake(fakeOptions(1));
  ASSERT_TRUE(driver);
  auto memory = (*driver)->allocate({0}, 64);
  auto graph = (*driver)->createGraph();
  ASSERT_TRUE(graph->addCopy(
      {"copy", {0}, *memory, *memory + 32, Box::flat(0, 8), Box::flat(0, 8)},
      {}));
  fake.losesANode = true;
  auto exec = graph->instantiate();
  ASSERT_FALSE(exec);
  EXPECT_EQ(exec.error().kind, ErrorKind::Internal);
  EXPECT_NE(exec.error().message.find("0 nodes, not 1"), std::string::npos);
}

} // namespace
