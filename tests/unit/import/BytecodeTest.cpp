// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of the versions that are read are those of tests/stablehlo/compat.py.
#include "pipeline/compiler/MlirCompiler.h"

#include <gtest/gtest.h>

namespace mgpu::pipeline {
namespace {

TEST(Bytecode, AFutureVersionIsRefusedByIt) {
  const char bytes[] = "ML\xefR\rStableHLO_v2.0.0\0\1";
  auto text = mlirCompiler().decode(std::as_bytes(std::span(bytes)), "f");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::Unsupported);
  EXPECT_EQ(text.error().message,
            "'f' cannot be decoded (VHLO 2.0.0; this version reads up to "
            "1.20.0, which exporters can be asked for): its major version is "
            "not known");
}

} // namespace
} // namespace mgpu::pipeline
