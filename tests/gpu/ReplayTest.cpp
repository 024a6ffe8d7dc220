// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Kernels and replays on a GPU: launch shapes, many replays, events, faults.

#include "device/cuda/CudaDriver.h"
#include "kernels/abi/LaunchForm.h"
#include "tests/gpu/GpuTarget.h"

#include <gtest/gtest.h>

namespace {

using namespace mgpu;
using namespace mgpu::device;

/// counts[block of the source] += 1, by the parameters emitted kernels have.
constexpr const char *countSource = R"cuda(
struct Launch { unsigned int grid[3], first[3], base[3], end[3]; };
extern "C" __global__ void count(unsigned int *counts, Launch launch) {
  unsigned long long x = launch.base[0] + launch.first[0] + blockIdx.x;
  unsigned long long y = launch.base[1] + launch.first[1] + blockIdx.y;
  unsigned long long z = launch.base[2] + launch.first[2] + blockIdx.z;
  counts[(z * launch.grid[1] + y) * launch.grid[0] + x] += 1;
}
extern "C" __global__ void fault(unsigned int *counts, Launch launch) {
  counts[1ull << 40] = 1;
}
extern "C" __global__ void forever(volatile unsigned int *counts,
                                   Launch launch) {
  while (*counts == 0) {
  }
}
)cuda";

Result<KernelHandle> load(Driver &driver, const std::string &entry) {
  kernels::KernelImage object;
  object.entry = entry;
  object.arch = driver.architecture();
  MGPU_TRY_ASSIGN(auto cubin,
                  gpu::compile(countSource + kernels::launchFormText(object),
                               "count", object.arch));
  object.setBytes(cubin);
  return driver.loadKernel(entry, kernels::encodeImage(object));
}

struct Program {
  std::unique_ptr<Driver> driver;
  std::unique_ptr<GraphExec> exec;
  uint32_t *counts = nullptr; ///< pinned
};

/// One launch of `entry` and a copy of its counts to the host.
Result<Program> build(const std::string &entry, Dim3 grid) {
  Program program;
  MGPU_TRY_ASSIGN(program.driver, gpu::openGpu(2));
  uint64_t bytes = grid.volume() * 4;
  MGPU_TRY_ASSIGN(std::byte * counts, program.driver->allocate({1}, bytes));
  MGPU_TRY_ASSIGN(std::byte * host,
                  program.driver->allocate(DeviceId::host(), bytes));
  MGPU_TRY_ASSIGN(KernelHandle kernel, load(*program.driver, entry));
  auto graph = program.driver->createGraph();
  MGPU_TRY_ASSIGN(
      GraphNodeId node,
      graph->addKernel(
          {entry, {1}, kernel, grid, {uint64_t(uintptr_t(counts))}}, {}));
  Box all = Box::flat(0, int64_t(bytes));
  MGPU_TRY(graph->addCopy({"fetch", {1}, host, counts, all, all}, {{node}}));
  MGPU_TRY_ASSIGN(program.exec, graph->instantiate());
  program.counts = reinterpret_cast<uint32_t *>(host);
  return program;
}

TEST(Replays, CoverTheWholeGrid) {
  for (Dim3 grid :
       {Dim3{1, 1, 1}, Dim3{7, 5, 3}, Dim3{1, 70000, 2}, Dim3{2, 1, 140000}}) {
    auto program = build("count", grid);
    ASSERT_TRUE(program) << program.error().message;
    Result<void> ok = program->exec->launch();
    ASSERT_TRUE(ok) << ok.error().message;
    for (uint64_t k = 0; k < grid.volume(); ++k)
      ASSERT_EQ(program->counts[k], 1u) << k;
  }
}

TEST(Replays, TenThousandInARow) {
  auto program = build("count", {64, 1, 1});
  ASSERT_TRUE(program) << program.error().message;
  for (uint32_t k = 1; k <= 10'000; ++k) {
    Result<void> ok = program->exec->launch();
    ASSERT_TRUE(ok) << ok.error().message;
    ASSERT_EQ(program->counts[63], k);
  }
}

TEST(Replays, EventsGiveOrderedSpans) {
  auto program = build("count", {64, 1, 1});
  ASSERT_TRUE(program) << program.error().message;
  std::vector<NodeTiming> timings;
  Result<void> ok = program->exec->launchTimed(timings);
  ASSERT_TRUE(ok) << ok.error().message;
  ASSERT_EQ(timings.size(), 2u);
  EXPECT_GE(timings[0].endUs, timings[0].startUs);
  EXPECT_GE(timings[1].startUs, timings[0].endUs);
}

// These lose the context of the process they run in: ctest runs each test in
// one of its own, and main() holds no context for them.
TEST(LostContexts, AFaultIsSaid) {
  auto program = build("fault", {1, 1, 1});
  ASSERT_TRUE(program) << program.error().message;
  Result<void> ok = program->exec->launch();
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().kind, ErrorKind::Invalid);
  EXPECT_NE(ok.error().message.find("faulted"), std::string::npos)
      << ok.error().message;
  EXPECT_FALSE(program->exec->launch());
}

TEST(LostContexts, OneThatDoesNotEndIsGivenUp) {
  CudaOptions options;
  options.deadline = std::chrono::milliseconds(500);
  options.compile = gpu::compile;
  auto driver = createCudaDriver(options);
  ASSERT_TRUE(driver) << driver.error().message;
  auto counts = (*driver)->allocate({0}, 4);
  auto kernel = load(**driver, "forever");
  ASSERT_TRUE(counts && kernel);
  auto graph = (*driver)->createGraph();
  ASSERT_TRUE(graph->addKernel(
      {"forever", {0}, *kernel, {1, 1, 1}, {uint64_t(uintptr_t(*counts))}},
      {}));
  auto exec = graph->instantiate();
  ASSERT_TRUE(exec) << exec.error().message;
  Result<void> ok = (*exec)->launch();
  ASSERT_FALSE(ok);
  EXPECT_NE(ok.error().message.find("did not end within 500 ms"),
            std::string::npos)
      << ok.error().message;
  // The process ends with the kernel still running; the driver takes it down.
  std::_Exit(HasFailure() ? 1 : 0);
}

} // namespace
