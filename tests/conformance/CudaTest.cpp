// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Examples and random programs give on the CUDA target, over a driver that is
// not there, the bits they give on the host target: same plans, kernels in
// other shapes, graph nodes in any order their edges allow.
#include "tests/conformance/CollectivePrograms.h"
#include "tests/conformance/CudaPrograms.h"
#include "tests/conformance/ExampleProgram.h"
#include "tests/conformance/RandomProgram.h"
#include "tests/conformance/RandomSharded.h"
#include "tests/conformance/RandomSpmd.h"
#include "tests/unit/Sweep.h"
#include "tests/unit/cuda/FakeCuda.h"
#include "tests/unit/db/TempFolder.h"

#include "kernels/abi/KernelImage.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/build/Kernels.h"
#include "pipeline/build/MakeBundle.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "pipeline/program/Load.h"
#include "planner/plan/Verify.h"
#include "planner/plan/Workspace.h"
#include "planner/schedule/transform/Transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

using namespace mgpu;
using namespace mgpu::conformance;

namespace {

/// Runs one plan on a fresh machine and closes it.
void check(const CudaPrograms &programs, size_t number, planner::Dag dag,
           const std::string &scheduler, const HostData &inputs,
           const HostData &expected, uint32_t numReplays) {
  auto plan = makePlan(dag, scheduler);
  ASSERT_TRUE(plan) << scheduler << ": " << plan.error().message;
  planner::addWorkspaces(dag, *plan, programs.workspaces(number));
  auto safe = planner::verify(*plan, dag);
  ASSERT_TRUE(safe) << safe.error().message;
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

/// A kernel that is a file has no twin on the host: the results of
/// examples/source are computed here. Sums of small integers are exact in every
/// order.
std::pair<HostData, HostData> centredRows() {
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
  return {{{"x", bytesOf(x)}},
          {{"x", bytesOf(x)}, {"centred", bytesOf(expected)}}};
}

TEST(CudaSource, AFileOfCudaCppIsAKernelLikeAnyOther) {
  ImportOutcome outcome = importExample({"source", "main", {}});
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  const planner::Dag &dag = *outcome.dag;
  auto [inputs, wanted] = centredRows();
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

/// What the command loads of a bundle of it, for which it needs no compiler:
/// the text and the cubin that were put in, launched as it was written; and
/// they compute what the program does.
TEST(CudaSource, ABundleOfItRunsOnGpus) {
  if (!kernels::NvrtcCompiler::open())
    GTEST_SKIP() << "there is no NVRTC";
  db::TempFolder folder;
  pipeline::LoadOptions options;
  options.compiler = &pipeline::mlirCompiler();
  options.file = examplesFolder() + "/source/source.mlir";
  auto source = pipeline::loadProgram(options);
  ASSERT_TRUE(source) << source.error().message;
  pipeline::PrepareOptions prepare;
  prepare.useTuned = false;
  auto made = pipeline::makeBundle(std::move(*source), prepare,
                                   {{"x86-64-v2"}, {"sm_90"}});
  ASSERT_TRUE(made) << made.error().message;
  pipeline::LoadOptions bundled;
  bundled.file = folder / "source.mgpu";
  bundled.racesAreErrors = true;
  auto written = capture::writeBundle(bundled.file, made->contents);
  ASSERT_TRUE(written) << written.error().message;
  auto program = pipeline::loadProgram(bundled);
  ASSERT_TRUE(program) << program.error().message;
  const planner::Dag &dag = program->dag;
  auto texts = pipeline::cudaTexts(*program, nullptr);
  ASSERT_TRUE(texts) << texts.error().message;
  auto cubins = program->bundle->cubins("sm_90");
  ASSERT_TRUE(cubins) << cubins.error().message;
  auto loaded = pipeline::cudaKernels(*program, "sm_90", nullptr);
  ASSERT_TRUE(loaded) << loaded.error().message;
  size_t files = 0;
  for (size_t k = 0; k < texts->size(); ++k) {
    auto object = kernels::decodeImage("k", (*loaded)[k]);
    ASSERT_TRUE(object) << object.error().message;
    EXPECT_TRUE(std::ranges::equal(object->bytes(), (*cubins)[k]));
    EXPECT_EQ(object->takesPart, (*texts)[k].image.takesPart);
    auto emitted = kernels::emitCudaText(
        dag.kernels[k], {dag.kernels[k].name, dag.kernels[k].location,
                         dag.kernels[k].block, planner::largestGrids(dag)[k]});
    ASSERT_TRUE(emitted) << emitted.error().message;
    if (object->takesPart)
      continue;
    ++files;
    EXPECT_EQ(object->entry, "rowMean");
    EXPECT_EQ(object->block, dag.kernels[k].block);
    EXPECT_EQ((*texts)[k].image.blob, emitted->image.blob);
  }
  EXPECT_EQ(files, 1u);
  std::mt19937_64 random(1);
  CudaPrograms programs;
  auto number = programs.add(dag, random);
  ASSERT_TRUE(number) << number.error().message;
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  auto [inputs, wanted] = centredRows();
  check(programs, *number, dag, "list", inputs, wanted, 2);
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
  auto request =
      readProgramFile(examplesFolder() + "/../tests/gpu/products.mlir");
  ASSERT_TRUE(request) << request.error().message;
  ImportOutcome outcome = importer.import(*request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  HostData inputs = ones(*outcome.dag, 11);
  auto objects = KernelCache().compile(*outcome.dag);
  ASSERT_TRUE(objects) << objects.error().message;
  auto serial = makePlan(*outcome.dag, "serial");
  ASSERT_TRUE(serial) << serial.error().message;
  auto expected = execute(*outcome.dag, *serial, *objects, inputs, 1, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  std::mt19937_64 random(3);
  CudaPrograms programs;
  choose(programs);
  const planner::Dag &dag = *outcome.dag;
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

/// Each once before the graph, and captured.
TEST(CudaProducts, ByCublasLtGiveTheBitsOfTheHost) {
  checkProducts([](CudaPrograms &programs) { programs.useCublasLt = true; },
                "cublasLtMatmul", 6);
}

/// Programs whose kernels follow each other, what the host makes of them, and
/// the same programs with kernels that begin early.
struct EarlyPrograms {
  void add(planner::Dag dag, uint64_t seed) {
    auto number = programs.add(dag, random);
    ASSERT_TRUE(number) << number.error().message;
    auto given = randomInputs(dag, seed);
    ASSERT_TRUE(given) << given.error().message;
    auto objects = cache.compile(dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto made = execute(dag, *serial, *objects, *given, 1, 2);
    ASSERT_TRUE(made) << made.error().message;
    dags.push_back(std::move(dag));
    inputs.push_back(std::move(*given));
    expected.push_back(std::move(*made));
  }
  void addSome() {
    for (const Example &example :
         {Example{"mlp", "main", {}}, Example{"attention", "main", {}}}) {
      ImportOutcome outcome = importExample(example);
      ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
      add(std::move(*outcome.dag), 7);
    }
    Importer importer;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      ImportRequest request;
      request.text = printProgram(makeRandomProgram(seed));
      request.name = "seed" + std::to_string(seed);
      ImportOutcome outcome = importer.import(request);
      ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
      add(std::move(*outcome.dag), seed);
    }
    Result<void> compiled = programs.compile();
    ASSERT_TRUE(compiled) << compiled.error().message;
  }
  /// How it differs from what is expected, if it does.
  std::string run(size_t k, const std::string &scheduler, uint64_t seed) {
    auto plan = makePlan(dags[k], scheduler);
    if (!plan)
      return plan.error().message;
    auto driver = programs.open(std::max(dags[k].numDevices, 1u), seed);
    if (!driver)
      return driver.error().message;
    auto got =
        execute(dags[k], *plan, programs.objects(k), inputs[k], **driver, 2);
    began += fake::FakeCuda::instance().earlyBegins;
    return got ? difference(expected[k], *got) : got.error().message;
  }

  CudaPrograms programs;
  std::mt19937_64 random{9};
  KernelCache cache;
  std::vector<planner::Dag> dags;
  std::vector<HostData> inputs, expected;
  uint64_t began = 0;
};

TEST(CudaEarly, KernelsThatBeginEarlyGiveTheBitsOfTheHost) {
  EarlyPrograms early;
  early.programs.beginEarly();
  early.addSome();
  ASSERT_FALSE(HasFatalFailure());
  for (size_t k = 0; k < early.dags.size(); ++k)
    for (const char *scheduler : {"serial", "list", "1"}) {
      ASSERT_EQ(early.run(k, scheduler, k), "") << k << ", " << scheduler;
      ASSERT_TRUE(fake::FakeCuda::instance().violations.empty());
      ASSERT_EQ(fake::FakeCuda::instance().leaks(), std::vector<std::string>());
    }
  EXPECT_GT(early.began, 20u) << "hardly any began early";
}

/// Else the test above would prove nothing.
TEST(CudaEarly, OnesThatDoNotWaitAreFound) {
  EarlyPrograms early;
  early.programs.beginEarly();
  early.programs.leaveOutWaits();
  early.addSome();
  ASSERT_FALSE(HasFatalFailure());
  size_t wrong = 0;
  for (size_t k = 0; k < early.dags.size(); ++k)
    for (const char *scheduler : {"serial", "list"})
      wrong += !early.run(k, scheduler, k).empty();
  EXPECT_GT(early.began, 0u);
  EXPECT_GT(wrong, 2u);
}

TEST(CudaCollectives, GiveTheBitsOfTheHost) {
  std::mt19937_64 random(5);
  CudaPrograms programs;
  constexpr ElementType types[] = {
      ElementType::I1,       ElementType::I16,  ElementType::F8E5M2,
      ElementType::F64,      ElementType::I8,   ElementType::I32,
      ElementType::I64,      ElementType::F16,  ElementType::Index,
      ElementType::F8E4M3FN, ElementType::BF16, ElementType::F32};
  for (ElementType type : std::span(types).first(sweep(4, std::size(types)))) {
    SCOPED_TRACE(toString(type));
    ImportRequest request;
    request.text = printProgram(makeCollectiveProgram(type));
    request.name = std::string(toString(type));
    ImportOutcome outcome = Importer().import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    auto number = programs.add(*outcome.dag, random);
    ASSERT_TRUE(number) << number.error().message;
    auto inputs = randomInputs(*outcome.dag, 3);
    ASSERT_TRUE(inputs) << inputs.error().message;
    auto serial = makePlan(*outcome.dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(*outcome.dag, *serial, {}, *inputs, 1, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (const char *scheduler : {"list", "1"}) {
      check(programs, *number, *outcome.dag, scheduler, *inputs, *expected, 1);
      if (HasFatalFailure())
        return;
    }
  }
}

using InputsOf =
    std::function<Result<HostData>(const planner::Dag &, uint64_t number)>;

/// Each program on GPUs gives the bits it gives on the host.
void checkPrograms(const std::vector<std::string> &texts,
                   const InputsOf &inputsOf) {
  Importer importer;
  KernelCache cache;
  CudaPrograms programs;
  std::vector<planner::Dag> dags;
  std::mt19937_64 random(5);
  for (const std::string &text : texts) {
    ImportRequest request;
    request.text = text;
    request.name = "seed" + std::to_string(dags.size());
    ImportOutcome outcome = importer.import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    dags.push_back(std::move(*outcome.dag));
    auto number = programs.add(dags.back(), random);
    ASSERT_TRUE(number) << number.error().message;
  }
  Result<void> compiled = programs.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  for (uint64_t seed = 0; seed < texts.size(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const planner::Dag &dag = dags[seed];
    auto inputs = inputsOf(dag, seed);
    ASSERT_TRUE(inputs) << inputs.error().message;
    auto objects = cache.compile(dag);
    ASSERT_TRUE(objects) << objects.error().message;
    auto serial = makePlan(dag, "serial");
    ASSERT_TRUE(serial) << serial.error().message;
    auto expected = execute(dag, *serial, *objects, *inputs, 1, 1);
    ASSERT_TRUE(expected) << expected.error().message;
    for (const char *scheduler : {"list", "1"}) {
      check(programs, seed, dag, scheduler, *inputs, *expected, 1);
      if (testing::Test::HasFatalFailure())
        return;
    }
    auto all = transformed(dag);
    ASSERT_TRUE(all) << all.error().message;
    for (const Transformed &each : *all) {
      if (each.changes == 0 || each.name.find("chunk") != 0)
        continue;
      check(programs, seed, each.dag, "1", *inputs, *expected, 1);
      if (testing::Test::HasFatalFailure())
        return;
    }
  }
}

TEST(CudaRandomPrograms, GiveTheBitsOfTheHost) {
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < sweep(12, 24); ++seed) {
    RandomProgram program = makeRandomProgram(seed);
    if (seed % 2)
      addRandomLoop(program, seed);
    texts.push_back(printProgram(program));
  }
  checkPrograms(texts, randomInputs);
}

/// SpmdTest.cpp proves that these give the bits of one device.
TEST(CudaTensorPrograms, GiveTheBitsOfTheHost) {
  std::vector<RandomSpmd> programs;
  std::vector<std::string> texts;
  for (uint64_t seed = 0; seed < sweep(12, 240); ++seed) {
    programs.push_back(seed % 4 == 3 ? randomSharded(seed) : randomSpmd(seed));
    texts.push_back(programs.back().many);
  }
  checkPrograms(texts, [&](const planner::Dag &, uint64_t seed) {
    return Result<HostData>(spmdInputs(programs[seed], seed));
  });
}

} // namespace
