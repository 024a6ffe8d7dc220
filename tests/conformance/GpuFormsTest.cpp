// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which form of matrix products a GPU takes, by its variants.
#include "tests/conformance/ExampleProgram.h"

#include "pipeline/compiler/MlirCompiler.h"
#include "pipeline/program/Variants.h"

#include <gtest/gtest.h>

namespace mgpu::conformance {

using Forms = std::vector<pipeline::Variant>;
using enum pipeline::Variant;

/// What is chosen by such a record, and what else the kernel then has.
TEST(GpuForms, TextsAreOfTheFormThatPassed) {
  auto request =
      readProgramFile(examplesFolder() + "/../tests/gpu/products.mlir");
  ASSERT_TRUE(request) << request.error().message;
  ImportOutcome outcome = Importer().import(*request);
  ASSERT_TRUE(outcome.dag) << outcome.dag.error().message;
  auto formsBy = [&](const pipeline::Variants &variants) {
    std::string forms;
    auto texts = allOf(pipeline::mlirCompiler().emitCudaKernels(
        *outcome.dag, variants, nullptr));
    EXPECT_TRUE(texts) << texts.error().message;
    for (const kernels::CudaText &text : *texts)
      forms += text.form + (text.image.product ? "+cublaslt " : " ");
    return forms;
  };
  auto formsOf = [&](const Forms &passed) {
    pipeline::Variants variants;
    for (pipeline::Variant each : passed)
      variants.byDefault[size_t(each)] = true;
    return formsBy(variants);
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
  // What is asked for goes before what has passed.
  pipeline::Variants variants;
  variants.byDefault[size_t(Wgmma)] = true;
  ASSERT_TRUE(variants.take("mma"));
  EXPECT_EQ(formsBy(variants), formsOf({Mma}));
  ASSERT_TRUE(variants.take("mma=off"));
  EXPECT_EQ(formsBy(variants), formsOf({Wgmma}));
  ASSERT_TRUE(variants.take("cublaslt"));
  EXPECT_EQ(formsBy(variants), formsOf({}));
  EXPECT_EQ(formsOf({Wgmma}),
            "threads threads threads wgmma threads wgmma threads "
            "threads+cublaslt threads ");
}

} // namespace mgpu::conformance
