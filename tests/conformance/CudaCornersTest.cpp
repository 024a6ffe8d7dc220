// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kernel of every example as CUDA C++, in the corners of its space: NVRTC
// takes it for three architectures without a warning, and run on the processor
// it gives the bits of the host target. MGPU_ALL_CORNERS=1 takes all corners,
// not some at random.
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/KernelMemory.h"

#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/PtxasLog.h"
#include "kernels/emit/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/kernels/CudaTwin.h"
#include "tests/unit/kernels/KernelRunner.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::conformance;
using namespace mgpu::kernels;

namespace {

class CudaCorners : public testing::TestWithParam<Example> {};

TEST_P(CudaCorners, CompileAndGiveTheBitsOfTheHostTwin) {
  auto imported = importExample(GetParam()).dag;
  ASSERT_TRUE(imported) << imported.error().message;
  const planner::Dag &dag = *imported;
  std::vector<Dim3> grids = planner::largestGrids(dag);
  bool all = std::getenv("MGPU_ALL_CORNERS");
  CudaTwins compiled, run; // few are run: clang takes longer than NVRTC
  std::map<std::string, uint32_t> kernelOf;
  for (uint32_t k = 0; k < dag.kernels.size(); ++k) {
    const planner::KernelSpec &spec = dag.kernels[k];
    auto space = kernelSpaceOf(spec, grids[k], planner::KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    auto kernel =
        emitCudaText(spec.source, {spec.name, "", spec.block, grids[k]});
    ASSERT_TRUE(kernel) << kernel.error().message;
    auto corners = cornersOf(*space, all ? SIZE_MAX : 8);
    EXPECT_FALSE(corners.empty()) << spec.name;
    for (size_t c = 0; c < corners.size(); ++c) {
      TwinConfig twin{spec.name + "_corner" + std::to_string(c), *kernel,
                      *space, corners[c]};
      kernelOf[twin.entry] = k;
      compiled.add(twin);
      if (all || c < 3)
        run.add(twin);
    }
  }
  auto ready = run.compile();
  ASSERT_TRUE(ready) << ready.error().message;
  for (const TwinConfig &twin : run.configs) {
    uint32_t k = kernelOf[twin.entry];
    const planner::KernelCall &call = firstCall(dag, k);
    auto host =
        LoadedKernel::fromText(dag.kernels[k].source, dag.kernels[k].block);
    ASSERT_TRUE(host) << host.error().message;
    Memory initial = memoryFor(dag, call), expected = initial, got = initial;
    (*host)->run(call.grid, argumentsFor(call, expected));
    run.run(twin.entry, call.grid, argumentsFor(call, got));
    EXPECT_NE(expected, initial) << twin.entry << " does nothing";
    EXPECT_EQ(got, expected) << twin.entry << ": " << toText(twin.config);
  }
  MGPU_OPEN_NVRTC(compiler);
  std::vector<CompileJob> jobs;
  for (const char *arch : {"sm_80", "sm_90", "sm_100"})
    jobs.push_back({compiled.source(), "corners.cu", {"--fmad=false"}, arch});
  for (auto &kernel : compiler->compileAll(jobs)) {
    ASSERT_TRUE(kernel) << kernel.error().message;
    EXPECT_FALSE(hasWarning(kernel->log)) << kernel->log;
    for (const TwinConfig &twin : compiled.configs)
      EXPECT_TRUE(kernel->find(twin.entry)) << twin.entry;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaCorners, testing::ValuesIn(allExamples()),
                         exampleName);

} // namespace
