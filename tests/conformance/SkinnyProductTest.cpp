// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of a few vectors and a large matrix: sums in the order that
// docs/numerics.md states, on the host target and as CUDA C++ run on the
// processor.
#include "tests/conformance/Import.h"
#include "tests/conformance/KernelTargets.h"
#include "tests/conformance/RowOrder.h"

#include "tests/unit/cuda/StoredNumbers.h"
#include "tests/unit/kernels/KernelRunner.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;
using namespace mgpu::kernels;

namespace {

struct SkinnyCase {
  const char *name;
  bool isTransposed; ///< the matrix is [n][k]
  size_t m, n, k;
  size_t kernels;
  /// Chunks of k, each summed by one thread; 0: `order` is that of all of k.
  size_t chunks = 0, chunk = 0;
  std::optional<RowOrder> order = {};  ///< that of the chunks' sums; one by one
  ElementType type = ElementType::F32; ///< of the factors
};

void PrintTo(const SkinnyCase &shown, std::ostream *os) { *os << shown.name; }

constexpr SkinnyCase skinnyCases[] = {
    {"vector_by_columns", false, 1, 512, 256, 2, 8, 32},
    {"vector_by_columns_with_a_rest", false, 1, 520, 265, 2, 8, 32},
    {"vector_by_columns_of_many_chunks", false, 1, 64, 4096, 2, 128, 32,
     RowOrder{8, false}},
    {"vectors_by_columns", false, 3, 512, 256, 2, 8, 32},
    {"pair_by_ragged_columns", false, 2, 519, 265, 2, 8, 32},
    {"vectors_by_columns_of_many_chunks", false, 5, 64, 4096, 2, 128, 32,
     RowOrder{8, false}},
    {"most_vectors_by_columns", false, 16, 260, 265, 2, 8, 32},
    {"bf16_by_columns", false, 2, 520, 256, 2, 8, 32, {}, ElementType::BF16},
    {"f16_by_columns", false, 3, 264, 397, 2, 12, 32, {}, ElementType::F16},
    {"f16_by_ragged_columns",
     false,
     4,
     521,
     150,
     2,
     3,
     48,
     {},
     ElementType::F16},
    {"most_bf16_by_columns",
     false,
     4,
     512,
     257,
     2,
     8,
     32,
     {},
     ElementType::BF16},
    {"vector_by_rows", true, 1, 300, 256, 1, 0, 0, RowOrder{256, true}},
    {"vectors_by_rows", true, 3, 256, 264, 1, 0, 0, RowOrder{256, true}},
    {"vectors_by_short_rows", true, 16, 520, 128, 1, 0, 0, RowOrder{32, true}},
};

std::string programOf(const SkinnyCase &test) {
  auto matrix = [](size_t rows, size_t columns, ElementType type) {
    return fmt::format("memref<{}x{}x{}>", rows, columns, toString(type));
  };
  const std::string x = matrix(test.m, test.k, test.type),
                    w = test.isTransposed ? matrix(test.n, test.k, test.type)
                                          : matrix(test.k, test.n, test.type),
                    y = matrix(test.m, test.n, ElementType::F32);
  const std::string maps =
      test.isTransposed ? "indexing_maps = [affine_map<(i, j, k) -> (i, k)>, "
                          "affine_map<(i, j, k) -> (j, k)>, "
                          "affine_map<(i, j, k) -> (i, j)>] "
                        : "";
  return fmt::format(R"(
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%hx: {0}, %hw: {1}, %hy: {2}) {{
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %x = mgpu.alloc %d : !mgpu.device -> {0}
  %w = mgpu.alloc %d : !mgpu.device -> {1}
  %y = mgpu.alloc %d : !mgpu.device -> {2}
  mgpu.memcpy %x, %hx, %d, %host : {0}, {0}, !mgpu.device, !mgpu.device
  mgpu.memcpy %w, %hw, %d, %host : {1}, {1}, !mgpu.device, !mgpu.device
  mgpu.memcpy %y, %hy, %d, %host : {2}, {2}, !mgpu.device, !mgpu.device
  linalg.matmul {3}ins(%x, %w : {0}, {1}) outs(%y : {2})
  mgpu.memcpy %hy, %y, %host, %d : {2}, {2}, !mgpu.device, !mgpu.device
  return
}})",
                     x, w, y, maps);
}

/// What an element of the result is, bit for bit, where it was `sum` before and
/// `step` adds the product of a k to a sum.
template <typename Step>
float referenceOf(const SkinnyCase &test, float sum, Step step) {
  std::vector<float> parts(test.chunks ? test.chunks : test.order->parts,
                           -0.0f);
  if (test.chunks == 0) {
    for (size_t k = 0; k < test.k; ++k)
      parts[k % parts.size()] = step(parts[k % parts.size()], k);
    return sum +
           sumOf(parts.size(), *test.order, [&](size_t k) { return parts[k]; });
  }
  for (size_t k = test.chunks * test.chunk; k < test.k; ++k)
    sum = step(sum, k);
  for (size_t k = 0; k < test.chunks * test.chunk; ++k)
    parts[k / test.chunk] = step(parts[k / test.chunk], k);
  auto part = [&](size_t k) { return parts[k]; };
  if (test.order)
    return sum + sumOf(test.chunks, *test.order, part);
  for (float each : parts)
    sum += each;
  return sum;
}

class SkinnyProducts : public testing::TestWithParam<SkinnyCase> {};

TEST_P(SkinnyProducts, AddInTheStatedOrderOnEachTarget) {
  const SkinnyCase &test = GetParam();
  ImportRequest request;
  request.text = programOf(test);
  request.name = test.name;
  ImportOutcome outcome = Importer().import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_EQ(dag.kernels.size(), test.kernels);

  Memory initial;
  for (uint32_t k = 0; k < dag.kernels.size(); ++k)
    initial.merge(memoryFor(dag, firstCall(dag, k)));
  std::mt19937 random(23);
  std::vector<float> x, w, y;
  uint32_t result = 0;
  const size_t size = sizeBytes(test.type);
  for (auto &[id, bytes] : initial) {
    const bool isX = bytes.size() == test.m * test.k * size,
               isW = bytes.size() == test.n * test.k * size;
    const ElementType type = isX || isW ? test.type : ElementType::F32;
    std::vector<float> numbers;
    for (size_t k = 0; k < bytes.size() / sizeBytes(type); ++k) {
      fake::write(type, bytes.data(), k,
                  float(int(random() % 20001) - 10000) / 777);
      numbers.push_back(float(fake::read(type, bytes.data(), k)));
    }
    if (isX)
      x = numbers;
    if (isW)
      w = numbers;
    if (bytes.size() == test.m * test.n * sizeof(float)) {
      y = numbers;
      result = id;
    }
  }
  ASSERT_FALSE(x.empty() || w.empty() || y.empty());
  std::vector<float> reference;
  for (size_t m = 0; m < test.m; ++m)
    for (size_t n = 0; n < test.n; ++n)
      reference.push_back(
          referenceOf(test, y[m * test.n + n], [&](float sum, size_t k) {
            return std::fma(
                x[m * test.k + k],
                test.isTransposed ? w[n * test.k + k] : w[k * test.n + n], sum);
          }));
  Memory after = runOnEachTarget(dag, initial,
                                 {"vector=4 block_x=8", "vector=4 block_x=32",
                                  "vector=4 block_x=64 unroll=4",
                                  "vector=8 block_x=32 block_y=4 unroll=2"});
  auto *sums = reinterpret_cast<const float *>(after[result].data());
  EXPECT_TRUE(
      sameBits(std::vector<float>(sums, sums + test.m * test.n), reference));
}

INSTANTIATE_TEST_SUITE_P(All, SkinnyProducts, testing::ValuesIn(skinnyCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
