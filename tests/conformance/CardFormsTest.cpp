// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which form of matrix products a card takes, by what passed on it before.
#include "tests/conformance/ExampleProgram.h"
#include "tests/unit/db/TempFolder.h"

#include "tools/mgpu-tune/Compiler.h"
#include "tools/mgpu-tune/ProductForms.h"

#include <gtest/gtest.h>

namespace mgpu::conformance {

/// A form of products is a card's default where it has passed there, with this
/// driver, and never where it once failed.
TEST(CardForms, WhatPassedOnACardIsItsDefault) {
  db::TempFolder folder;
  tune::Options options;
  options.database = folder / "forms.db";
  options.target = "cuda:0";
  std::vector<tune::CardIdentity> cards{{"NVIDIA H100", "sm_90", "13.0"}};
  size_t asked = 0;
  auto identify = [&](const std::string &target) {
    EXPECT_EQ(target, options.target);
    ++asked;
    return Result<std::vector<tune::CardIdentity>>(cards);
  };
  EXPECT_EQ(tune::passedForms(options, identify), "");
  EXPECT_EQ(asked, 0u) << "a card is asked for though nothing is stored";
  const tune::CardIdentity h100 = cards[0], older{h100.name, h100.arch, "12.8"},
                           a100{"NVIDIA A100", "sm_80", "13.0"};
  auto store = db::TuningStore::open(options.database);
  ASSERT_TRUE(store) << store.error().message;
  auto record = [&](const tune::CardIdentity &card, const char *form,
                    const char *fault) {
    auto done = tune::recordForm(*store, card, form, 12.5, fault);
    ASSERT_TRUE(done) << done.error().message;
  };
  record(h100, "mma", "");
  EXPECT_EQ(tune::passedForms(options, identify), "passed:mma");
  record(h100, "wgmma", "");
  EXPECT_EQ(tune::passedForms(options, identify), "passed:wgmma,mma");
  cards = {older};
  EXPECT_EQ(tune::passedForms(options, identify), "");
  cards = {h100, a100}; // both must have it
  EXPECT_EQ(tune::passedForms(options, identify), "");
  record(a100, "mma", "");
  EXPECT_EQ(tune::passedForms(options, identify), "passed:mma");
  cards = {h100};
  record(h100, "wgmma", "c differs");
  EXPECT_EQ(tune::passedForms(options, identify), "passed:mma");
  record(h100, "wgmma", ""); // for good
  EXPECT_EQ(tune::passedForms(options, identify), "passed:mma");
  for (auto change : {+[](tune::Options &o) { o.target = "host"; },
                      +[](tune::Options &o) { o.tensorCores = "none"; },
                      +[](tune::Options &o) { o.useTuned = false; },
                      +[](tune::Options &o) { o.needsPlan = true; },
                      +[](tune::Options &o) { o.planFile = "p.plan"; },
                      +[](tune::Options &o) { o.database += "x"; }}) {
    tune::Options other = options;
    change(other);
    EXPECT_EQ(tune::passedForms(other, identify), "");
  }
}

/// What is chosen by such a record, and what else the kernel then has.
TEST(CardForms, TextsAreOfTheFormThatPassed) {
  auto request =
      readProgram(std::string(MGPU_EXAMPLES) + "/../tests/gpu/products.mlir");
  ASSERT_TRUE(request) << request.error().message;
  ImportOutcome outcome = Importer().import(*request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  auto formsOf = [&](const std::string &tensorCores) {
    std::string forms;
    auto texts =
        allOf(tune::emitCudaKernels(*outcome.dag, tensorCores, nullptr));
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
