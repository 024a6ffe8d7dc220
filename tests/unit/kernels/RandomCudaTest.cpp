// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels as CUDA C++: NVRTC takes them without a warning, and run on
// the processor they give what the interpreter and the host target do.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "RandomKernel.h"

#include "kernels/emit/KernelBuild.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

/// A batch as it is emitted, and its space.
struct Emitted {
  random::Batch batch;
  std::string text, name;
  CudaKernel kernel;
  planner::KernelSpace space;
};

std::vector<Emitted> emitBatches(uint64_t first, uint64_t count) {
  std::vector<Emitted> all;
  random::inBatches(first, count, 8, [&](const random::Batch &batch) {
    const random::Kernel &one = batch.kernels[0];
    Emitted each{batch,
                 random::textOf(batch.kernels),
                 "random" + std::to_string(all.size()),
                 {},
                 {}};
    auto kernel =
        emitCudaText(each.text, {each.name, "", one.block, {one.blocks}});
    ASSERT_TRUE(kernel) << "first seed " << batch.seeds[0] << ": "
                        << kernel.error().message << "\n"
                        << each.text;
    auto space = kernelSpaceOf(specOf(each.text, one.block), {one.blocks},
                               planner::KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    each.kernel = std::move(*kernel);
    each.space = std::move(*space);
    all.push_back(std::move(each));
  });
  return all;
}

TEST(RandomCuda, GivesTheBitsOfTheHostTwin) {
  auto [first, count] = random::seedRange(7000, 48);
  const std::vector<Emitted> all = emitBatches(first, count);
  ASSERT_FALSE(all.empty());
  CudaTwins twins;
  for (const Emitted &each : all)
    for (const planner::KernelConfig &corner : cornersOf(each.space, 2))
      twins.add({"e" + std::to_string(twins.configs.size()), each.kernel,
                 each.space, corner});
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const Emitted &each : all) {
    const auto &[seeds, kernels] = each.batch;
    auto host = LoadedKernel::fromText(each.text, kernels[0].block);
    ASSERT_TRUE(host) << host.error().message << "\n" << each.text;
    for (size_t k = 0; k < kernels.size(); ++k) {
      std::vector<int32_t> input = random::randomInput(kernels[k], seeds[k]),
                           expected(input.size());
      std::vector<uint64_t> arguments{arg(input), arg(expected),
                                      arg(int64_t(k))};
      (*host)->run({kernels[k].blocks}, arguments);
      ASSERT_EQ(expected, kernels[k].interpret(input)) << "seed " << seeds[k];
      for (const TwinConfig &twin : twins.configs) {
        if (twin.kernel.name != each.name)
          continue;
        std::vector<int32_t> output(input.size());
        arguments[1] = arg(output);
        twins.run(twin.entry, {kernels[k].blocks}, arguments);
        ASSERT_EQ(output, expected)
            << "seed " << seeds[k] << ", " << toText(twin.config) << "\n"
            << random::textOf({kernels[k]});
      }
    }
  }
}

TEST(RandomCuda, NvrtcTakesItWithoutAWarning) {
  MGPU_OPEN_NVRTC(compiler);
  auto [first, count] = random::seedRange(7000, 48);
  CornerCheck check;
  const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  size_t number = 0;
  for (const Emitted &each : emitBatches(first, count))
    check.add(each.kernel, each.space, 1, {archs[number++ % 3]});
  check.run(*compiler);
}

} // namespace
} // namespace mgpu::kernels
