// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every kernel of every example, and of programs with barriers in memory,
// copies by tensor maps and products of warpgroups, as CUDA C++, in corners of
// its space: NVRTC takes it for three architectures without a warning, and run
// on the processor, or as PTX, it gives the bits of the host target.
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/KernelMemory.h"

#include "kernels/compile/NvrtcLibrary.h"
#include "pipeline/compiler/KernelBuild.h"
#include "planner/dag/LaunchFacts.h"
#include "tests/unit/compile/Nvrtc.h"
#include "tests/unit/kernels/CornerCheck.h"
#include "tests/unit/kernels/KernelRunner.h"
#include "tests/unit/kernels/PtxTwin.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>

using namespace mgpu;
using namespace mgpu::conformance;
using namespace mgpu::kernels;

namespace {

class ExampleCorners : public testing::TestWithParam<Example> {
protected:
  struct Emitted {
    CudaKernel text;
    kernels::KernelSpace space;
  };
  /// The kernels of the example, which is imported.
  void emit() {
    auto imported = importExample(GetParam()).dag;
    ASSERT_TRUE(imported) << imported.error().message;
    dag = std::move(*imported);
    const auto facts = planner::launchFacts(dag);
    for (uint32_t k = 0; k < dag.kernels.size(); ++k) {
      const planner::KernelSpec &spec = dag.kernels[k];
      auto space =
          kernelSpaceOf(spec, facts[k].maxGrid, kernels::KernelTarget::Cuda);
      ASSERT_TRUE(space) << space.error().message;
      auto kernel =
          emitCudaText(spec, {spec.name, "", spec.block, facts[k].maxGrid,
                              facts[k].alignment, facts[k].unwritten});
      ASSERT_TRUE(kernel) << kernel.error().message;
      kernels.push_back({std::move(*kernel), std::move(*space)});
    }
  }
  planner::Dag dag;
  std::vector<Emitted> kernels;
};

TEST_P(ExampleCorners, GiveTheBitsOfTheHostTwin) {
  ASSERT_NO_FATAL_FAILURE(emit());
  CudaTwins twins;
  std::vector<uint32_t> kernelOf;
  for (uint32_t k = 0; k < kernels.size(); ++k)
    for (const kernels::KernelConfig &corner : cornersOf(
             kernels[k].space, takesAllCorners() ? SIZE_MAX : 3, "sm_90")) {
      twins.add(
          {fmt::format("{}_corner{}", dag.kernels[k].name, kernelOf.size()),
           kernels[k].text, kernels[k].space, corner});
      kernelOf.push_back(k);
    }
  auto ready = twins.compile();
  ASSERT_TRUE(ready) << ready.error().message;
  std::optional<uint32_t> last;
  Memory initial, expected;
  for (size_t c = 0; c < kernelOf.size(); ++c) {
    const TwinConfig &twin = twins.configs[c];
    const uint32_t k = kernelOf[c];
    const planner::KernelCall &call = firstCall(dag, k);
    if (last != k) {
      auto host = LoadedKernel::fromText(**dag.kernels[k].hostText(),
                                         dag.kernels[k].block);
      ASSERT_TRUE(host) << host.error().message;
      initial = expected = memoryFor(dag, call);
      (*host)->run(call.grid, argumentsFor(call, expected));
      EXPECT_NE(expected, initial) << twin.entry << " does nothing";
      last = k;
    }
    Memory got = initial;
    twins.run(twin.entry, call.grid, argumentsFor(call, got));
    EXPECT_EQ(got, expected) << twin.entry << ": " << toText(twin.config);
  }
}

TEST_P(ExampleCorners, Compile) {
  MGPU_OPEN_NVRTC(compiler);
  ASSERT_NO_FATAL_FAILURE(emit());
  CornerCheck check;
  for (const Emitted &each : kernels)
    check.add(each.text, each.space);
  check.run(*compiler);
}

INSTANTIATE_TEST_SUITE_P(All, ExampleCorners, testing::ValuesIn(allExamples()),
                         exampleName);

std::vector<Example> bulkPrograms() {
  std::vector<Example> programs;
  for (const char *name :
       {"../tests/lit/gpu/barriers", "../tests/lit/gpu/phases",
        "../tests/lit/gpu/tensor-boxes", "../tests/lit/gpu/warpgroup"})
    programs.push_back({name, "main", {}});
  return programs;
}
INSTANTIATE_TEST_SUITE_P(Bulk, ExampleCorners,
                         testing::ValuesIn(bulkPrograms()), exampleName);

/// Copies in bulk and products of warpgroups are PTX alone.
class BulkCorners : public ExampleCorners {
protected:
  void compare(const NvrtcLibrary *nvrtc);
};

std::vector<kernels::ptx::Region> regionsOf(Memory &memory) {
  std::vector<kernels::ptx::Region> regions;
  for (auto &[number, bytes] : memory) {
    kernels::ptx::Region region;
    region.at = bytes.data();
    region.bytes = bytes.size();
    region.name = fmt::format("buffer {}", number);
    regions.push_back(region);
  }
  return regions;
}

void BulkCorners::compare(const NvrtcLibrary *nvrtc) {
  PtxTwins twins;
  std::vector<uint32_t> kernelOf;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    std::vector<kernels::KernelConfig> configs =
        cornersOf(kernels[k].space, 3, "sm_90");
    configs.push_back(kernels[k].space.defaults);
    for (const kernels::KernelConfig &config : configs) {
      twins.add({fmt::format("{}_{}", dag.kernels[k].name, kernelOf.size()),
                 kernels[k].text, kernels[k].space, config});
      kernelOf.push_back(k);
    }
  }
  auto ready = twins.compile(nvrtc);
  ASSERT_TRUE(ready) << ready.error().message;
  for (size_t c = 0; c < kernelOf.size(); ++c) {
    const TwinConfig &twin = twins.configs()[c];
    const planner::KernelSpec &spec = dag.kernels[kernelOf[c]];
    const planner::KernelCall &call = firstCall(dag, kernelOf[c]);
    auto host = LoadedKernel::fromText(**spec.hostText(), spec.block);
    ASSERT_TRUE(host) << host.error().message;
    const Memory initial = memoryFor(dag, call);
    Memory expected = initial;
    (*host)->run(call.grid, argumentsFor(call, expected));
    for (auto [seed, isEarly] : {std::pair(0, false), {0, true}, {7, false}}) {
      Memory got = initial;
      twins.options.seed = uint64_t(seed);
      twins.options.isEarly = isEarly;
      auto ran = twins.run(twin.entry, call.grid, argumentsFor(call, got),
                           regionsOf(got));
      ASSERT_TRUE(ran) << twin.entry << ": " << ran.error().message;
      EXPECT_EQ(got, expected) << twin.entry << ": " << toText(twin.config);
    }
  }
}

TEST_P(BulkCorners, GiveTheHostsBitsAsPtxOfClang) {
  if (std::string_view(GetParam().name).ends_with("warpgroup"))
    GTEST_SKIP() << "clang keeps its sums in memory and loads them behind "
                    "wgmma.fence, which is an error";
  ASSERT_NO_FATAL_FAILURE(emit());
  compare(nullptr);
}

TEST_P(BulkCorners, GiveTheHostsBitsAsPtxOfNvrtc) {
  auto nvrtc = NvrtcLibrary::open("");
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  ASSERT_NO_FATAL_FAILURE(emit());
  compare(nvrtc->get());
}

INSTANTIATE_TEST_SUITE_P(All, BulkCorners, testing::ValuesIn(bulkPrograms()),
                         exampleName);

} // namespace
