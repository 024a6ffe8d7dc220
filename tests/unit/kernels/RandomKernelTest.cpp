// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "RandomKernel.h"
#include "KernelRunner.h"

#include "tests/unit/Sweep.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

using random::Kernel;

/// Compiles kernels of one shape together and compares each.
void testBatch(const random::Batch &batch) {
  const auto &[seeds, kernels] = batch;
  const std::string text = random::textOf(kernels);
  // Other vectors, other faults of who makes them.
  const char *cpu = seeds[0] % 4 == 0 ? "x86-64-v2" : "native";
  auto loaded = LoadedKernel::fromText(text, kernels[0].block, cpu);
  ASSERT_TRUE(loaded) << "first seed " << seeds[0] << ": "
                      << loaded.error().message << "\n"
                      << text;
  for (size_t k = 0; k < kernels.size(); ++k) {
    random::Memory memory(kernels[k], seeds[k]);
    (*loaded)->run({kernels[k].blocks}, memory.arguments(k));
    ASSERT_EQ(memory.output, kernels[k].interpret(memory.input))
        << "seed " << seeds[k] << ", case " << k << " of " << kernels.size()
        << ", " << cpu << "\n"
        << random::textOf({kernels[k]});
  }
}

TEST(RandomKernel, EmitterAgreesWithTheInterpreterBitForBit) {
  auto [first, count] = random::seedRange(1, sweep(12, 24));
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure();
       ++seed)
    testBatch({{seed}, {Kernel::make(seed)}});
}

TEST(RandomKernel, BatchesUnderASwitchAgreeToo) {
  auto [first, count] = random::seedRange(1000, sweep(30, 200));
  random::inBatches(first, count, 10, [](const random::Batch &batch) {
    if (!HasFatalFailure())
      testBatch(batch);
  });
}

} // namespace
} // namespace mgpu::kernels
