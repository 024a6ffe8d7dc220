// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/MathAccuracy.h"

#include "bench/suites/FunctionError.h"

#include <gtest/gtest.h>

namespace mgpu::kernels {
namespace {

/// bench-ulp takes more samples.
TEST(MathAccuracy, FunctionsAreWithinTheirTable) {
  for (const FunctionUlps &function : functionUlps)
    for (bool isF64 : {false, true}) {
      auto error = bench::measureFunction(function.operation, isF64, 30000);
      ASSERT_TRUE(error) << error.error().message;
      EXPECT_LE(error->ulps, isF64 ? function.hostF64 : function.hostF32)
          << function.operation << (isF64 ? " of f64 " : " of f32 ") << error->x
          << ", " << error->y;
    }
  EXPECT_FALSE(bench::measureFunction("absf", false, 1));
}

} // namespace
} // namespace mgpu::kernels
