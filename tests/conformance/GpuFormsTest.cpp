// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which form of matrix products a GPU takes, by what passed on it before.
#include "tests/conformance/ExampleProgram.h"
#include "tests/unit/db/TempFolder.h"

#include "pipeline/Prepare.h"
#include "pipeline/ProductForms.h"
#include "pipeline/compiler/MlirCompiler.h"

#include <gtest/gtest.h>

namespace mgpu::conformance {

/// A form of products is a GPU's default where it has passed there, with this
/// driver, and never where it once failed.
TEST(GpuForms, WhatPassedOnAGpuIsItsDefault) {
  db::TempFolder folder;
  pipeline::LoadOptions options;
  options.database = folder / "forms.db";
  options.target = "cuda:0";
  std::vector<pipeline::GpuIdentity> gpus{{"NVIDIA H100", "sm_90", "13.0"}};
  size_t asked = 0;
  auto identify = [&](const std::string &target) {
    EXPECT_EQ(target, options.target);
    ++asked;
    return Result<std::vector<pipeline::GpuIdentity>>(gpus);
  };
  EXPECT_EQ(pipeline::passedForms(options, identify), "");
  EXPECT_EQ(asked, 0u) << "a GPU is asked for though nothing is stored";
  const pipeline::GpuIdentity h100 = gpus[0],
                              older{h100.name, h100.arch, "12.8"},
                              a100{"NVIDIA A100", "sm_80", "13.0"};
  auto store = db::TuningStore::open(options.database);
  ASSERT_TRUE(store) << store.error().message;
  auto record = [&](const pipeline::GpuIdentity &gpu, const char *form,
                    const char *fault) {
    auto done = pipeline::recordForm(*store, gpu, form, 12.5, fault);
    ASSERT_TRUE(done) << done.error().message;
  };
  record(h100, "mma", "");
  EXPECT_EQ(pipeline::passedForms(options, identify), "passed:mma");
  record(h100, "wgmma", "");
  EXPECT_EQ(pipeline::passedForms(options, identify), "passed:wgmma,mma");
  gpus = {older};
  EXPECT_EQ(pipeline::passedForms(options, identify), "");
  gpus = {h100, a100}; // both must have it
  EXPECT_EQ(pipeline::passedForms(options, identify), "");
  record(a100, "mma", "");
  EXPECT_EQ(pipeline::passedForms(options, identify), "passed:mma");
  gpus = {h100};
  record(h100, "wgmma", "c differs");
  EXPECT_EQ(pipeline::passedForms(options, identify), "passed:mma");
  record(h100, "wgmma", ""); // for good
  EXPECT_EQ(pipeline::passedForms(options, identify), "passed:mma");
  using pipeline::LoadOptions, pipeline::PrepareOptions;
  for (auto change : {+[](LoadOptions &o) { o.target = "host"; },
                      +[](LoadOptions &o) { o.tensorCores = "none"; },
                      +[](LoadOptions &o) { o.usesRecord = false; },
                      +[](LoadOptions &o) { o.database += "x"; }}) {
    LoadOptions other = options;
    change(other);
    EXPECT_EQ(pipeline::passedForms(other, identify), "");
  }
  EXPECT_TRUE(pipeline::mayUseRecord({}));
  for (auto change : {+[](PrepareOptions &o) { o.useTuned = false; },
                      +[](PrepareOptions &o) { o.mustBeStored = true; },
                      +[](PrepareOptions &o) { o.planFile = "p.plan"; }}) {
    PrepareOptions prepare;
    change(prepare);
    EXPECT_FALSE(pipeline::mayUseRecord(prepare));
  }
}

/// What is chosen by such a record, and what else the kernel then has.
TEST(GpuForms, TextsAreOfTheFormThatPassed) {
  auto request =
      readProgramFile(examplesFolder() + "/../tests/gpu/products.mlir");
  ASSERT_TRUE(request) << request.error().message;
  ImportOutcome outcome = Importer().import(*request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  auto formsOf = [&](const std::string &tensorCores) {
    std::string forms;
    auto texts = allOf(pipeline::mlirCompiler().emitCudaKernels(
        *outcome.dag, tensorCores, nullptr));
    EXPECT_TRUE(texts) << texts.error().message;
    for (const kernels::CudaText &text : *texts)
      forms += text.form + (text.image.product ? "+cublaslt " : " ");
    return forms;
  };
  // The last product's rows are of no multiple of 16 bytes.
  EXPECT_EQ(formsOf(""),
            "threads threads threads threads+cublaslt threads threads+cublaslt "
            "threads threads+cublaslt threads ");
  EXPECT_EQ(formsOf("passed:mma"),
            "threads threads threads tensor_cores threads tensor_cores threads "
            "tensor_cores threads ");
  EXPECT_EQ(formsOf("passed:wgmma,mma"),
            "threads threads threads wgmma threads wgmma threads tensor_cores "
            "threads ");
  EXPECT_EQ(formsOf("passed:wgmma"),
            "threads threads threads wgmma threads wgmma threads "
            "threads+cublaslt threads ");
}

} // namespace mgpu::conformance
