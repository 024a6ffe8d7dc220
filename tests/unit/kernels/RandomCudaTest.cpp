// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random kernels as CUDA C++: NVRTC takes them without a warning, and run on
// the processor, or as PTX, they give what the interpreter and the host target
// do.
#include "CornerCheck.h"
#include "KernelRunner.h"
#include "PtxTwin.h"
#include "RandomKernel.h"

#include "kernels/compile/NvrtcLibrary.h"
#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/compile/Nvrtc.h"

#include <algorithm>
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

/// `run` launches a configuration on the memory of a kernel of its batch.
template <typename Run>
void compareWithHost(const std::vector<Emitted> &all,
                     const std::vector<TwinConfig> &configs, Run run) {
  for (const Emitted &each : all) {
    const auto &[seeds, kernels] = each.batch;
    auto loaded = LoadedKernel::fromText(each.text, kernels[0].block);
    ASSERT_TRUE(loaded) << loaded.error().message << "\n" << each.text;
    for (size_t k = 0; k < kernels.size(); ++k) {
      random::Memory host(kernels[k], seeds[k]);
      (*loaded)->run({kernels[k].blocks}, host.arguments(k));
      ASSERT_EQ(host.output, kernels[k].interpret(host.input))
          << "seed " << seeds[k];
      for (const TwinConfig &twin : configs) {
        if (twin.kernel.name != each.name)
          continue;
        random::Memory memory(kernels[k], seeds[k]);
        run(twin, Dim3{kernels[k].blocks}, memory, k);
        ASSERT_EQ(memory.output, host.output)
            << "seed " << seeds[k] << ", " << toText(twin.config) << "\n"
            << random::textOf({kernels[k]});
      }
    }
  }
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
  compareWithHost(all, twins.configs,
                  [&](const TwinConfig &twin, Dim3 grid, random::Memory &memory,
                      size_t which) {
                    twins.run(twin.entry, grid, memory.arguments(which));
                  });
}

/// 20 kernels, or with MGPU_SWEEPS 2,000.
TEST(RandomCuda, GivesTheHostsBitsAsPtx) {
  auto nvrtc = NvrtcLibrary::open("");
  if (!nvrtc)
    GTEST_SKIP() << nvrtc.error().message;
  auto [first, count] = random::seedRange(9000, sweep(20, 2000));
  std::vector<Emitted> all = emitBatches(first, count);
  ASSERT_FALSE(all.empty());
  const char *const archs[] = {"sm_80", "sm_90", "sm_100"};
  for (size_t at = 0; at < all.size(); at += 8) {
    const std::vector<Emitted> some(
        all.begin() + ptrdiff_t(at),
        all.begin() + ptrdiff_t(std::min(at + 8, all.size())));
    PtxTwins twins;
    for (const Emitted &each : some)
      for (const KernelConfig &corner : cornersOf(each.space, 2))
        twins.add({"e" + std::to_string(twins.configs().size()), each.kernel,
                   each.space, corner});
    auto compiled = twins.compile(nvrtc->get(), archs[at / 8 % 3]);
    ASSERT_TRUE(compiled) << compiled.error().message;
    compareWithHost(some, twins.configs(),
                    [&](const TwinConfig &twin, Dim3 grid,
                        random::Memory &memory, size_t which) {
                      auto regionOf = [](auto &values, const char *name) {
                        ptx::Region region;
                        region.at =
                            reinterpret_cast<std::byte *>(values.data());
                        region.bytes = values.size() * sizeof(values[0]);
                        region.name = name;
                        return region;
                      };
                      auto ran =
                          twins.run(twin.entry, grid, memory.arguments(which),
                                    {regionOf(memory.input, "the input"),
                                     regionOf(memory.output, "the output"),
                                     regionOf(memory.slots, "the slots")});
                      ASSERT_TRUE(ran) << ran.error().message;
                    });
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
