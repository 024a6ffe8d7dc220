// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Examples and random programs give on the CUDA target, over a driver that is
// not there, the bits they give on the host target: same plans, kernels in
// other shapes, graph nodes in any order their edges allow.
#include "tests/conformance/CudaPrograms.h"
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/RandomProgram.h"
#include "tests/unit/cuda/FakeCuda.h"

#include "planner/schedule/transform/Transform.h"
#include "support/FileIO.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

/// Runs one plan on a fresh machine and closes it.
void check(const CudaPrograms &programs, size_t number, const planner::Dag &dag,
           const std::string &scheduler, const HostData &inputs,
           const HostData &expected, uint32_t numReplays) {
  auto plan = makePlan(dag, scheduler);
  ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
  uint64_t seed = std::hash<std::string>()(scheduler) + number;
  {
    auto driver = programs.open(std::max(dag.numDevices, 1u), seed);
    ASSERT_TRUE(driver) << driver.error().message;
    auto got = execute(dag, *plan, programs.objects(number), inputs, **driver,
                       numReplays);
    ASSERT_TRUE(got) << scheduler << ": " << got.error().message;
    ASSERT_EQ(difference(expected, *got), "") << "scheduler " << scheduler;
  }
  fake::FakeCuda &machine = fake::FakeCuda::instance();
  ASSERT_TRUE(machine.violations.empty()) << machine.violations.front();
  ASSERT_EQ(machine.leaks(), std::vector<std::string>());
}

class CudaExamples : public testing::TestWithParam<Example> {};

TEST_P(CudaExamples, GiveTheBitsOfTheHost) {
  ImportOutcome outcome = importExample(GetParam());
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  auto inputs = randomInputs(dag, 7);
  ASSERT_TRUE(inputs) << inputs.error().message;
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(dag, *serial, *objects, *inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;

  std::mt19937_64 random(3);
  CudaPrograms programs;
  auto number = programs.add(dag, random);
  ASSERT_TRUE(number) << number.error().message;
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const char *scheduler : {"serial", "list", "1", "2"}) {
    check(programs, *number, dag, scheduler, *inputs, *expected, 2);
    if (HasFatalFailure())
      return;
  }
  // Kernels are cut, but no others.
  for (planner::TransformKind kind : planner::chunkTransforms) {
    planner::Dag chunked = dag;
    auto changes = planner::applyTransform(chunked, kind);
    ASSERT_TRUE(changes) << changes.error().message;
    if (*changes == 0)
      continue;
    SCOPED_TRACE(toString(kind));
    for (const char *scheduler : {"list", "1"}) {
      check(programs, *number, chunked, scheduler, *inputs, *expected, 2);
      if (HasFatalFailure())
        return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaExamples, testing::ValuesIn(allExamples()),
                         exampleName);

/// A kernel that is a file has no twin on the host: its results are computed
/// here. Sums of small integers are exact in every order.
TEST(CudaSource, AFileOfCudaCppIsAKernelLikeAnyOther) {
  ImportOutcome outcome = importExample({"source", "main", {}});
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  constexpr size_t rows = 24, columns = 300;
  std::vector<float> x(rows * columns), expected(x.size());
  for (size_t k = 0; k < x.size(); ++k)
    x[k] = float((k * 7919) % 1001) - 400;
  for (size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (size_t c = 0; c < columns; ++c)
      sum += x[row * columns + c];
    for (size_t c = 0; c < columns; ++c)
      expected[row * columns + c] =
          x[row * columns + c] - float(sum) / float(columns);
  }
  auto bytesOf = [](const std::vector<float> &values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  HostData inputs{{"x", bytesOf(x)}};
  HostData wanted{{"x", bytesOf(x)}, {"centred", bytesOf(expected)}};
  std::set<std::string> tried;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(seed);
    CudaPrograms programs;
    auto number = programs.add(dag, random);
    ASSERT_TRUE(number) << number.error().message;
    tried.insert(programs.configOf(0));
    Result<void> compiled = programs.compile();
    ASSERT_TRUE(compiled) << compiled.error().message;
    check(programs, *number, dag, "list", inputs, wanted, 2);
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(tried.size(), 1u) << "one value of the tunable only";
}

/// -1 and 1, of which sums are exact in every type and order.
HostData ones(const planner::Dag &dag, uint64_t seed) {
  std::mt19937_64 random(seed);
  HostData data;
  for (const planner::Buffer &buffer : dag.buffers) {
    if (buffer.role != planner::BufferRole::Argument)
      continue;
    uint32_t one = buffer.elementType == ElementType::F16    ? 0x3c00
                   : buffer.elementType == ElementType::BF16 ? 0x3f80
                                                             : 0x3f800000;
    const size_t width = sizeBytes(buffer.elementType);
    size_t count = 1;
    for (int64_t size : buffer.shape)
      count *= size_t(size);
    std::vector<std::byte> &bytes = data[buffer.name];
    bytes.resize(count * width);
    for (size_t k = 0; k < count; ++k) {
      uint32_t value = one | uint32_t(random() % 2) << (8 * width - 1);
      std::memcpy(&bytes[k * width], &value, width);
    }
  }
  return data;
}

/// A program of three products of f16 and bf16, by what `choose` chooses;
/// `call` is made `count` times.
void checkProducts(void (*choose)(CudaPrograms &), const char *call,
                   ptrdiff_t count) {
  Importer importer;
  ImportRequest request;
  request.name = std::string(MGPU_EXAMPLES) + "/../tests/gpu/products.mlir";
  auto file = readFile(request.name);
  ASSERT_TRUE(file) << file.error().message;
  request.text.assign(reinterpret_cast<const char *>(file->data()),
                      file->size());
  ImportOutcome outcome = importer.import(request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  HostData inputs = ones(dag, 11);
  auto objects = KernelCache().compile(dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto serial = makePlan(dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(dag, *serial, *objects, inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  std::mt19937_64 random(3);
  CudaPrograms programs;
  choose(programs);
  auto number = programs.add(dag, random);
  ASSERT_TRUE(number) << number.error().message;
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (const char *scheduler : {"serial", "list", "1"}) {
    check(programs, *number, dag, scheduler, inputs, *expected, 2);
    if (testing::Test::HasFatalFailure())
      return;
    const auto &called = fake::FakeCuda::instance().called;
    EXPECT_EQ(std::count(called.begin(), called.end(), call), count);
  }
}

/// Plans to tensor maps to warpgroups: what a card does with
/// --tensor-cores=wgmma, whose maps the driver makes; of two of the products.
TEST(CudaProducts, ByWarpgroupsGiveTheBitsOfTheHost) {
  checkProducts([](CudaPrograms &programs) { programs.useWgmma = true; },
                "cuTensorMapEncodeTiled", 4);
}

/// Each once before the graph, and captured.
TEST(CudaProducts, ByCublasLtGiveTheBitsOfTheHost) {
  checkProducts([](CudaPrograms &programs) { programs.useCublasLt = true; },
                "cublasLtMatmul", 6);
}

TEST(CudaRandomPrograms, GiveTheBitsOfTheHost) {
  constexpr uint64_t count = 24;
  Importer importer;
  KernelCache cache;
  CudaPrograms programs;
  std::vector<planner::Dag> dags;
  std::mt19937_64 random(5);
  for (uint64_t seed = 0; seed < count; ++seed) {
    RandomProgram program = makeRandomProgram(seed);
    if (seed % 2)
      addRandomLoop(program, seed);
    ImportRequest request;
    request.text = printProgram(program);
    request.name = "seed" + std::to_string(seed);
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    dags.push_back(std::move(*outcome.dag));
    auto number = programs.add(dags.back(), random);
    ASSERT_TRUE(number) << number.error().message;
  }
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const planner::Dag &dag = dags[seed];
    auto inputs = randomInputs(dag, seed);
    ASSERT_TRUE(inputs) << inputs.error().message;
    auto objects = cache.compile(dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(dag, *serial, *objects, *inputs, 1, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (const char *scheduler : {"list", "1"}) {
      check(programs, seed, dag, scheduler, *inputs, *expected, 1);
      if (HasFatalFailure())
        return;
    }
    auto all = transformed(dag);
    ASSERT_TRUE(all) << all.error().message;
    for (const Transformed &each : *all) {
      if (each.changes == 0 || each.name.find("chunk") != 0)
        continue;
      check(programs, seed, each.dag, "1", *inputs, *expected, 1);
      if (HasFatalFailure())
        return;
    }
  }
}

} // namespace
