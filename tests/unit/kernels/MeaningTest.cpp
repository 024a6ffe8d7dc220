// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host target and emitted CUDA C++, in corners of its space, give what
// Meanings.h says.
#include "CudaTwin.h"
#include "KernelRunner.h"
#include "Meanings.h"

#include "pipeline/compiler/KernelBuild.h"
#include "tests/unit/Sweep.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace mgpu::kernels {
namespace {

constexpr size_t numRead = 256, numWritten = 512;
constexpr Dim3 block{64, 1, 1}, grid{8, 1, 1};

std::string textOf(const Meaning &test) {
  return test.functions +
         "func.func @entry(%x: memref<256xi64>, %y: memref<512xi64>) {\n"
         "%i = gpu.global_id x\n" +
         test.body + "return\n}\n";
}

/// Small numbers, then the ends of the range.
std::vector<int64_t> values() {
  std::vector<int64_t> x(numRead);
  for (size_t k = 0; k < numRead; ++k)
    x[k] = int64_t(k % 32) - 16;
  x[3] = INT64_MIN;
  x[4] = INT64_MAX;
  return x;
}

TEST(Meaning, IsTheSameOnHostAndGpu) {
  CudaTwins twins;
  std::vector<Meaning> tests = meanings();
  for (auto more : {floatMeanings, laneMeanings})
    for (Meaning &each : more())
      tests.push_back(std::move(each));
  std::vector<size_t> testOf;
  for (size_t t = 0; t < tests.size(); ++t) {
    const std::string text = textOf(tests[t]);
    auto kernel = emitCudaText(text, {tests[t].name, "", block, grid, 16});
    ASSERT_TRUE(kernel) << tests[t].name << ": " << kernel.error().message;
    auto space = kernelSpaceOf(specOf(text, block), grid, KernelTarget::Cuda);
    ASSERT_TRUE(space) << space.error().message;
    std::vector<KernelConfig> configs = cornersOf(*space, sweep(2, 6));
    configs.push_back(space->defaults);
    for (const KernelConfig &config : configs) {
      twins.add({"e" + std::to_string(testOf.size()), *kernel, *space, config});
      testOf.push_back(t);
    }
  }
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  const std::vector<int64_t> initial = values();
  std::vector<std::vector<int64_t>> expected;
  for (const Meaning &test : tests) {
    std::vector<int64_t> &result = expected.emplace_back(numWritten);
    for (size_t i = 0; i < numWritten; ++i)
      result[i] = test.expected(initial, i);
    auto space =
        kernelSpaceOf(specOf(textOf(test), block), grid, KernelTarget::Host);
    ASSERT_TRUE(space) << space.error().message;
    const std::vector<KernelConfig> legal = space->legal();
    std::vector<KernelConfig> configs{space->defaults, legal.back()};
    if (sweep(0, 1))
      configs.insert(configs.end(), {legal.front(), legal[legal.size() / 2]});
    for (const KernelConfig &config : configs) {
      auto host = load(textOf(test), block, "native", config);
      ASSERT_TRUE(host) << test.name;
      std::vector<int64_t> x = initial, y(numWritten);
      host->run(grid, {arg(x), arg(y)});
      EXPECT_EQ(y, result) << test.name << " on the host: " << toText(config);
      EXPECT_EQ(x, initial);
    }
  }
  for (size_t k = 0; k < testOf.size(); ++k) {
    std::vector<int64_t> x = initial, y(numWritten);
    twins.run(twins.configs[k].entry, grid, {arg(x), arg(y)});
    EXPECT_EQ(y, expected[testOf[k]])
        << tests[testOf[k]].name << ": " << toText(twins.configs[k].config);
  }
}

// Rows of 2 GiB, of which few pages are touched.
TEST(Meaning, OffsetsBeyond32Bits) {
  constexpr size_t row = 2147483647, rows = 3, late = row - 100;
  const std::string text =
      "func.func @entry(%x: memref<3x2147483647xi8>) {\n"
      "%c0 = arith.constant 0 : index\n"
      "%late = arith.constant 2147483547 : index\n"
      "%t = gpu.thread_id x\n"
      "%b = gpu.block_id x\n"
      "%i = gpu.global_id x\n"
      "%n = arith.index_cast %i : index to i8\n"
      "memref.store %n, %x[%b, %t] : memref<3x2147483647xi8>\n"
      "%v = memref.subview %x[%b, 0] [1, 2147483647] [1, 1] : "
      "memref<3x2147483647xi8> to memref<2147483647xi8, strided<[1], offset: "
      "?>>\n"
      "%j = arith.addi %t, %late : index\n"
      "memref.store %n, %v[%j] : memref<2147483647xi8, strided<[1], offset: "
      "?>>\n"
      "return\n}\n";
  const Dim3 all{rows, 1, 1};
  auto kernel = emitCudaText(text, {"far", "", block, all});
  ASSERT_TRUE(kernel) << kernel.error().message;
  auto space = kernelSpaceOf(specOf(text, block), all, KernelTarget::Cuda);
  ASSERT_TRUE(space) << space.error().message;
  CudaTwins twins;
  for (const KernelConfig &config : cornersOf(*space, 6))
    twins.add(
        {"e" + std::to_string(twins.configs.size()), *kernel, *space, config});
  auto compiled = twins.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto host = load(text, block);
  ASSERT_TRUE(host);
  auto check = [&](const std::function<void(uint64_t)> &run,
                   const std::string &what) {
    void *memory = mmap(nullptr, rows * row, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      GTEST_SKIP() << "no 6 GiB of addresses";
    const auto *bytes = static_cast<const uint8_t *>(memory);
    run(reinterpret_cast<uint64_t>(memory));
    for (size_t k = 0; k < rows; ++k)
      for (size_t t = 0; t < block.x; ++t)
        for (size_t at : {k * row + t, k * row + late + t})
          ASSERT_EQ(bytes[at], uint8_t(k * block.x + t)) << what << " " << at;
    munmap(memory, rows * row);
  };
  check([&](uint64_t x) { host->run(all, {x}); }, "host");
  for (const TwinConfig &each : twins.configs)
    check([&](uint64_t x) { twins.run(each.entry, all, {x}); },
          toText(each.config));
}

} // namespace
} // namespace mgpu::kernels
