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

using Forms = std::vector<pipeline::TensorForm>;
using enum pipeline::TensorForm;

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
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{});
  EXPECT_EQ(asked, 0u) << "a GPU is asked for though nothing is stored";
  const pipeline::GpuIdentity h100 = gpus[0],
                              older{h100.name, h100.arch, "12.8"},
                              a100{"NVIDIA A100", "sm_80", "13.0"};
  auto store = db::TuningStore::open(options.database);
  ASSERT_TRUE(store) << store.error().message;
  auto record = [&](const pipeline::GpuIdentity &gpu, pipeline::TensorForm form,
                    const char *fault) {
    auto done = pipeline::recordForm(*store, gpu, form, 12.5, fault);
    ASSERT_TRUE(done) << done.error().message;
  };
  record(h100, Mma, "");
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{Mma});
  record(h100, Wgmma, "");
  EXPECT_EQ(pipeline::passedForms(options, identify), (Forms{Wgmma, Mma}));
  gpus = {older};
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{});
  gpus = {h100, a100}; // both must have it
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{});
  record(a100, Mma, "");
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{Mma});
  gpus = {h100};
  record(h100, Wgmma, "c differs");
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{Mma});
  record(h100, Wgmma, ""); // for good
  EXPECT_EQ(pipeline::passedForms(options, identify), Forms{Mma});
  using pipeline::LoadOptions, pipeline::PrepareOptions;
  for (auto change :
       {+[](LoadOptions &o) { o.target = "host"; },
        +[](LoadOptions &o) { o.products = *pipeline::productPolicy("none"); },
        +[](LoadOptions &o) { o.usesRecord = false; },
        +[](LoadOptions &o) { o.database += "x"; }}) {
    LoadOptions other = options;
    change(other);
    EXPECT_EQ(pipeline::passedForms(other, identify), Forms{});
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
  auto formsOf = [&](const Forms &passed) {
    pipeline::ProductPolicy products;
    products.passed = passed;
    std::string forms;
    auto texts = allOf(pipeline::mlirCompiler().emitCudaKernels(
        *outcome.dag, products, nullptr));
    EXPECT_TRUE(texts) << texts.error().message;
    for (const kernels::CudaText &text : *texts)
      forms += text.form + (text.image.product ? "+cublaslt " : " ");
    return forms;
  };
  // The last product's rows are of no multiple of 16 bytes.
  EXPECT_EQ(formsOf({}),
            "threads threads threads threads+cublaslt threads threads+cublaslt "
            "threads threads+cublaslt threads ");
  EXPECT_EQ(formsOf({Mma}),
            "threads threads threads tensor_cores threads tensor_cores threads "
            "tensor_cores threads ");
  EXPECT_EQ(formsOf({Wgmma, Mma}),
            "threads threads threads wgmma threads wgmma threads tensor_cores "
            "threads ");
  EXPECT_EQ(formsOf({Wgmma}),
            "threads threads threads wgmma threads wgmma threads "
            "threads+cublaslt threads ");
}

} // namespace mgpu::conformance
