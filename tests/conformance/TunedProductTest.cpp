// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The algorithm of cuBLASLt that a tuned configuration names, from there to the
// call that a graph has, over doubles of CUDA and the library.
#include "tests/conformance/Execute.h"
#include "tests/conformance/Import.h"
#include "tests/unit/cuda/FakeCublasLt.h"
#include "tests/unit/cuda/FakeTarget.h"
#include "tests/unit/db/TempFolder.h"

#include "capture/replay/Workspaces.h"
#include "kernels/abi/KernelImage.h"
#include "kernels/compile/NvrtcCompiler.h"
#include "pipeline/build/TuneContext.h"
#include "pipeline/compiler/MlirCompiler.h"
#include "tuner/candidate/Candidate.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mgpu::conformance {
namespace {

/// A product of bf16 that a GPU leaves to cuBLASLt, as the tuner has it.
struct Tuned {
  pipeline::LoadedProgram program;
  pipeline::TuneContext context;
  tuner::ProgramConfig config;
  size_t place = 0; ///< of MGPU_LIBRARY among the kernel's tunables
  db::TempFolder folder;

  void make() {
    ImportRequest request;
    request.name = "product";
    const std::string type = "memref<32x32xbf16>";
    request.text = fmt::format(R"(
mgpu.device_config @config #mgpu.device_config<numDevices = 1>
func.func @main(%ha: {0}, %hb: {0}, %hc: {0}) {{
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> {0}
  %b = mgpu.alloc %d : !mgpu.device -> {0}
  %c = mgpu.alloc %d : !mgpu.device -> {0}
  mgpu.memcpy %a, %ha, %d, %host : {0}, {0}, !mgpu.device, !mgpu.device
  mgpu.memcpy %b, %hb, %d, %host : {0}, {0}, !mgpu.device, !mgpu.device
  mgpu.memcpy %c, %hc, %d, %host : {0}, {0}, !mgpu.device, !mgpu.device
  linalg.matmul ins(%a, %b : {0}, {0}) outs(%c : {0})
  mgpu.memcpy %hc, %c, %host, %d : {0}, {0}, !mgpu.device, !mgpu.device
  return
}})",
                               type);
    ImportOutcome outcome = Importer().import(request);
    ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
    program.dag = std::move(*outcome.dag);
    program.from.compiler = &pipeline::mlirCompiler();
    program.from.database = folder / "t.db";
    auto texts = allOf(pipeline::mlirCompiler().emitCudaKernels(
        program.dag, program.variants, nullptr));
    ASSERT_TRUE(texts) << texts.error().message;
    ASSERT_EQ(texts->size(), 1u);
    context.texts = std::move(*texts);
    ASSERT_TRUE(context.texts[0].space);
    context.spaces = {*context.texts[0].space};
    context.target = tuner::TargetIdentity{"a GPU that is not there", "sm_90",
                                           "CUDA driver 0.0"};
    config = tuner::defaultConfig(program.dag, context.spaces, context.limits);
    const auto tunables = context.spaces[0].tunables();
    place = size_t(std::ranges::find(tunables, "MGPU_LIBRARY",
                                     &kernels::KernelAxis::name) -
                   tunables.begin());
    ASSERT_LT(place, tunables.size());
  }

  /// Runs the program with the configuration's kernels, over doubles: as `run`
  /// does, or as the tuner does with a candidate. Counts the runs of the
  /// kernel's own text, which computes nothing.
  Result<int> run(bool isCandidate) {
    MGPU_TRY_ASSIGN(auto objects,
                    pipeline::compileConfig(program, context, config));
    MGPU_TRY_ASSIGN(kernels::KernelImage object,
                    kernels::decodeImage("k", objects[0]));
    object.setBytes(fake::fakeCubin({object.entry})); // no GPU's code
    objects[0] = kernels::encodeImage(object);
    int ownRuns = 0;
    fake::FakeKernel &own = fake::freshMachine(1).kernels[object.entry];
    own.parameterSizes = {8, 8, 8, 48};
    own.run = [&](void **, const unsigned *, const unsigned *) { ++ownRuns; };
    fake::FakeCublasLt::reset(); // whose algorithms all want a workspace
    MGPU_TRY_ASSIGN(planner::Plan plan, makePlan(program.dag, "serial"));
    auto open = [](uint32_t, uint32_t, std::span<const int>) {
      return fake::openFake(fake::fakeOptions(1), [] {
        return Result<std::shared_ptr<const device::CublasLtApi>>(
            fake::FakeCublasLt::api());
      });
    };
    if (!isCandidate) {
      planner::Dag dag = program.dag;
      capture::addWorkspaces(dag, plan, objects);
      MGPU_TRY_ASSIGN(auto driver, open(1, 1, {}));
      MGPU_TRY(execute(dag, plan, objects, {}, *driver));
      return ownRuns;
    }
    tuner::CandidateOptions options;
    options.openDriver = open;
    const tuner::ProgramData data(program.dag, {});
    tuner::CandidateRun candidate(
        {std::make_shared<const planner::Dag>(program.dag),
         std::move(plan),
         {std::make_shared<const Bytes>(objects[0])}},
        data, options);
    auto outputs =
        candidate.answer(tuner::requestOf(tuner::Command::Outputs, 0));
    if (!outputs)
      return fail(ErrorKind::Invalid, outputs.error().what);
    return ownRuns;
  }
};

/// From a tuned configuration to the call that the graph has.
TEST(TunedProduct, TheChosenAlgorithmIsTheOneThatRuns) {
  if (!kernels::NvrtcCompiler::open())
    GTEST_SKIP() << "there is no NVRTC";
  Tuned tuned;
  tuned.make();
  if (HasFatalFailure())
    return;
  // 1 is the library's first choice; 0 the kernel's own text.
  for (uint32_t chosen : {1u, 4u, 3u, 0u}) {
    SCOPED_TRACE(chosen);
    tuned.config.kernels[0].tunables[tuned.place] = chosen;
    auto check = tuned.context.spaces[0].check(tuned.config.kernels[0]);
    ASSERT_TRUE(check) << check.error().message;
    for (bool isCandidate : {false, true}) {
      SCOPED_TRACE(isCandidate);
      auto ownRuns = tuned.run(isCandidate);
      ASSERT_TRUE(ownRuns) << ownRuns.error().message;
      const fake::FakeCublasLt &library = fake::FakeCublasLt::instance();
      EXPECT_EQ(*ownRuns, chosen > 0 ? 0 : isCandidate ? 2 : 1);
      EXPECT_EQ(library.captured, chosen == 0 ? 0u : 1u);
      EXPECT_EQ(library.workspace != nullptr, chosen > 0);
      if (chosen > 0)
        EXPECT_EQ(library.place, chosen - 1);
    }
  }
}

} // namespace
} // namespace mgpu::conformance
