// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few and long rows, which several blocks share: sums in the order that
// docs/numerics.md states, on the host target and as CUDA C++ run on the
// processor.
#include "tests/conformance/Import.h"
#include "tests/conformance/KernelTargets.h"
#include "tests/conformance/RowOrder.h"

#include "planner/dag/LaunchFacts.h"
#include "tests/unit/kernels/KernelRunner.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <optional>
#include <random>

using namespace mgpu;
using namespace mgpu::conformance;
using namespace mgpu::kernels;

namespace {

/// The sum of all elements, or the sums of columns.
struct LongCase {
  const char *name;
  size_t length, columns; ///< of all elements: 1
  size_t chunks, chunk;   ///< how many, and how long they are
  RowOrder ofChunk;
  /// Without an order a thread adds to what there is, one after the other.
  std::optional<RowOrder> ofRest, ofParts;
  size_t kernels;
  /// The length is that of two dimensions, the inner one so long; 0: of one.
  size_t inner = 0;
};

void PrintTo(const LongCase &shown, std::ostream *os) { *os << shown.name; }

constexpr RowOrder blockOrder{256, true}, subgroupOrder{32, true},
    columnOrder{32, false};
// The prime number of 4111 sixteens has no divisor from 8 to 16.
constexpr LongCase longCases[] = {
    {"all", 32 * 4096, 1, 32, 4096, blockOrder, {}, subgroupOrder, 2},
    {"all_by_a_divisor", 66'000, 1, 15, 4400, blockOrder, {}, {}, 2},
    {"all_with_a_rest",
     16 * 4111 + 3,
     1,
     16,
     4096,
     blockOrder,
     subgroupOrder,
     {},
     3},
    {"all_of_a_matrix", 66'000, 1, 15, 4400, blockOrder, {}, {}, 2, 250},
    {"columns_of_two_dimensions", 8192, 5, 16, 512, columnOrder, {}, {}, 2, 64},
    {"columns_with_a_rest", 8200, 5, 16, 512, columnOrder, {}, {}, 2},
};

std::string programOf(const LongCase &test) {
  std::string x, s = test.columns == 1 ? "" : fmt::format("{}x", test.columns);
  if (test.inner)
    x = fmt::format("{}x{}x{}", test.length / test.inner, test.inner, s);
  else
    x = fmt::format("{}x{}", test.length, s);
  return fmt::format(R"(
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%hx: {0}, %hs: {1}) {{
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %x = mgpu.alloc %d : !mgpu.device -> {0}
  %s = mgpu.alloc %d : !mgpu.device -> {1}
  mgpu.memcpy %x, %hx, %d, %host : {0}, {0}, !mgpu.device, !mgpu.device
  mgpu.memcpy %s, %hs, %d, %host : {1}, {1}, !mgpu.device, !mgpu.device
  linalg.reduce ins(%x : {0}) outs(%s : {1}) dimensions = [{2}]
    (%in: f32, %sum: f32) {{
      %next = arith.addf %sum, %in : f32
      linalg.yield %next : f32
    }}
  mgpu.memcpy %hs, %s, %host, %d : {1}, {1}, !mgpu.device, !mgpu.device
  return
}})",
                     "memref<" + x + "f32>", "memref<" + s + "f32>",
                     test.inner ? "0, 1" : "0");
}

template <typename At>
float addedTo(float sum, size_t length, std::optional<RowOrder> order, At at) {
  if (order)
    return sum + sumOf(length, *order, at);
  for (size_t k = 0; k < length; ++k)
    sum += at(k);
  return sum;
}

/// What the column's sum is, bit for bit, where it was `sum` before.
float referenceOf(const LongCase &test, const float *x, size_t column,
                  float sum) {
  auto elementsFrom = [&](size_t first) {
    return
        [=, &test](size_t k) { return x[(first + k) * test.columns + column]; };
  };
  const size_t whole = test.chunks * test.chunk;
  sum = addedTo(sum, test.length - whole, test.ofRest, elementsFrom(whole));
  std::vector<float> parts;
  for (size_t first = 0; first < whole; first += test.chunk)
    parts.push_back(sumOf(test.chunk, test.ofChunk, elementsFrom(first)));
  return addedTo(sum, test.chunks, test.ofParts,
                 [&](size_t k) { return parts[k]; });
}

class LongRows : public testing::TestWithParam<LongCase> {};

TEST_P(LongRows, AddInTheStatedOrderOnEachTarget) {
  const LongCase &test = GetParam();
  ImportRequest request;
  request.text = programOf(test);
  request.name = test.name;
  ImportOutcome outcome = Importer().import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  ASSERT_EQ(dag.kernels.size(), test.kernels);
  const auto facts = planner::launchFacts(dag);
  EXPECT_EQ(facts[0].maxGrid.x * facts[0].maxGrid.y, test.chunks);

  Memory initial;
  for (uint32_t k = 0; k < dag.kernels.size(); ++k)
    initial.merge(memoryFor(dag, firstCall(dag, k)));
  std::mt19937 random(11);
  std::vector<float> reference;
  uint32_t sums = 0;
  const float *x = nullptr;
  for (auto &[id, bytes] : initial) {
    auto *numbers = reinterpret_cast<float *>(bytes.data());
    for (size_t k = 0; k < bytes.size() / 4; ++k)
      numbers[k] = float(int(random() % 20001) - 10000) / 777;
    if (bytes.size() == 4 * test.length * test.columns)
      x = numbers;
    if (bytes.size() == 4 * test.columns) {
      reference.assign(numbers, numbers + test.columns);
      sums = id;
    }
  }
  ASSERT_TRUE(x && !reference.empty());
  for (size_t column = 0; column < test.columns; ++column)
    reference[column] = referenceOf(test, x, column, reference[column]);

  Memory after = runOnEachTarget(dag, initial, {"vector=4 block_x=64"});
  auto *sum = reinterpret_cast<const float *>(after[sums].data());
  EXPECT_TRUE(sameBits(std::vector<float>(sum, sum + test.columns), reference));
}

INSTANTIATE_TEST_SUITE_P(All, LongRows, testing::ValuesIn(longCases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
