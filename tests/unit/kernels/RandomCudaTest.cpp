// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels as CUDA C++: NVRTC takes them without a warning, and run on
// the processor they give what the interpreter and the host target do.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "RandomKernel.h"

#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/compile/Nvrtc.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

/// A batch as it is emitted, and its space.
struct Emitted {
  random::Batch batch;
  std::string text, name;
  CudaKernel kernel;
  KernelSpace space;
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
        emitCudaText(each.text, {each.name, "", one.block, {one.blocks}, 16});
    ASSERT_TRUE(kernel) << "first seed " << batch.seeds[0] << ": "
                        << kernel.error().message << "\n"
                        << each.text;
    auto space = kernelSpaceOf(specOf(each.text, one.block), {one.blocks},
                               KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    each.kernel = std::move(*kernel);
    each.space = std::move(*space);
    all.push_back(std::move(each));
  });
  return all;
}

TEST(RandomCuda, GivesTheBitsOfTheHostTwin) {
  auto [first, count] = random::seedRange(7000, sweep(12, 48));
  const std::vector<Emitted> all = emitBatches(first, count);
  ASSERT_FALSE(all.empty());
  CudaTwins twins;
  for (const Emitted &each : all)
    for (const KernelConfig &corner : cornersOf(each.space, 2))
      twins.add({"e" + std::to_string(twins.configs.size()), each.kernel,
                 each.space, corner});
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const Emitted &each : all) {
    const auto &[seeds, kernels] = each.batch;
    auto loaded = LoadedKernel::fromText(each.text, kernels[0].block);
    ASSERT_TRUE(loaded) << loaded.error().message << "\n" << each.text;
    for (size_t k = 0; k < kernels.size(); ++k) {
      random::Memory host(kernels[k], seeds[k]);
      (*loaded)->run({kernels[k].blocks}, host.arguments(k));
      ASSERT_EQ(host.output, kernels[k].interpret(host.input))
          << "seed " << seeds[k];
      for (const TwinConfig &twin : twins.configs) {
        if (twin.kernel.name != each.name)
          continue;
        random::Memory memory(kernels[k], seeds[k]);
        twins.run(twin.entry, {kernels[k].blocks}, memory.arguments(k));
        ASSERT_EQ(memory.output, host.output)
            << "seed " << seeds[k] << ", " << toText(twin.config) << "\n"
            << random::textOf({kernels[k]});
      }
    }
  }
}

TEST(RandomCuda, NvrtcTakesItWithoutAWarning) {
  MGPU_OPEN_NVRTC(compiler);
  auto [first, count] = random::seedRange(7000, sweep(12, 48));
  CornerCheck check;
  const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  size_t number = 0;
  for (const Emitted &each : emitBatches(first, count))
    check.add(each.kernel, each.space, 1, {archs[number++ % 3]});
  // Constants are compared with 0, and divided by it where nothing comes, and
  // what is written need not be read.
  check.run(*compiler, "39,179,186,550");
}

} // namespace
} // namespace mgpu::kernels
