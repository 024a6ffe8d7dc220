// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/KernelTargets.h"

#include "pipeline/compiler/KernelBuild.h"
#include "planner/dag/LaunchFacts.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/kernels/CudaTwin.h"
#include "tests/unit/kernels/KernelRunner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>

namespace mgpu::conformance {

using namespace mgpu::kernels;

static void runOnHost(const planner::Dag &dag, Memory &memory) {
  for (uint32_t k = 0; k < dag.kernels.size(); ++k) {
    const planner::KernelSpec &spec = dag.kernels[k];
    auto host = LoadedKernel::fromText(**spec.hostText(), spec.block);
    ASSERT_TRUE(host) << host.error().message;
    const planner::KernelCall &call = firstCall(dag, k);
    (*host)->run(call.grid, argumentsFor(call, memory));
  }
}

static void addTwins(const planner::Dag &dag,
                     const std::vector<std::string> &more, CudaTwins &twins) {
  const auto facts = planner::launchFacts(dag);
  for (uint32_t k = 0; k < dag.kernels.size(); ++k) {
    const planner::KernelSpec &spec = dag.kernels[k];
    auto space =
        kernelSpaceOf(spec, facts[k].maxGrid, kernels::KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    auto text = emitCudaText(spec, {spec.name, "", spec.block, facts[k].maxGrid,
                                    facts[k].alignment, facts[k].unwritten});
    ASSERT_TRUE(text) << text.error().message;
    std::vector<kernels::KernelConfig> configs{space->defaults};
    for (const std::string &each : more) {
      auto config = kernels::parseKernelConfig(each, space->defaults);
      ASSERT_TRUE(config) << config.error().message;
      if (space->check(*config))
        configs.push_back(*config);
    }
    for (const kernels::KernelConfig &corner :
         cornersOf(*space, sweep(1, 8), "sm_90"))
      configs.push_back(corner);
    for (const kernels::KernelConfig &config : configs)
      twins.add({fmt::format("k{}_{}", k, twins.configs.size()), *text, *space,
                 config});
  }
}

Memory runOnEachTarget(const planner::Dag &dag, const Memory &initial,
                       const std::vector<std::string> &more) {
  Memory expected = initial, got = initial;
  runOnHost(dag, expected);
  CudaTwins twins;
  addTwins(dag, more, twins);
  auto ready = twins.compile();
  EXPECT_TRUE(ready) << ready.error().message;
  if (testing::Test::HasFailure())
    return expected;
  for (uint32_t k = 0; k < dag.kernels.size(); ++k) {
    const planner::KernelCall &call = firstCall(dag, k);
    const Memory before = got;
    std::optional<Memory> first;
    for (const TwinConfig &twin : twins.configs) {
      if (!twin.entry.starts_with(fmt::format("k{}_", k)))
        continue;
      got = before;
      twins.run(twin.entry, call.grid, argumentsFor(call, got));
      EXPECT_EQ(got, first.value_or(got)) << toText(twin.config);
      first = got;
    }
  }
  EXPECT_EQ(got, expected);
  return expected;
}

} // namespace mgpu::conformance
