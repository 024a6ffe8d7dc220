// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernel.h"
#include "KernelRunner.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

using random::Kernel;

/// Compiles kernels of one shape together and compares each.
void testBatch(const random::Batch &batch) {
  const auto &[seeds, kernels] = batch;
  std::string text = random::textOf(kernels);
  auto loaded = LoadedKernel::fromText(text, kernels[0].block);
  ASSERT_TRUE(loaded) << "first seed " << seeds[0] << ": "
                      << loaded.error().message << "\n"
                      << text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<int32_t> input = random::randomInput(kernels[k], seeds[k]);
    std::vector<int32_t> output(input.size());
    (*loaded)->run({kernels[k].blocks},
                   {arg(input), arg(output), arg(int64_t(k))});
    ASSERT_EQ(output, kernels[k].interpret(input))
        << "seed " << seeds[k] << ", case " << k << " of " << kernels.size()
        << "\n"
        << random::textOf({kernels[k]});
  }
}

TEST(RandomKernel, EmitterAgreesWithTheInterpreterBitForBit) {
  auto [first, count] = random::seedRange(1, 24);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure();
       ++seed)
    testBatch({{seed}, {Kernel::make(seed)}});
}

TEST(RandomKernel, BatchesUnderASwitchAgreeToo) {
  auto [first, count] = random::seedRange(1000, 200);
  random::inBatches(first, count, 10, [](const random::Batch &batch) {
    if (!HasFatalFailure())
      testBatch(batch);
  });
}

} // namespace
} // namespace mgpu::kernels
