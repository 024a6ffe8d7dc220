// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_COMPILE_NVRTC_H
#define MGPU_TESTS_UNIT_COMPILE_NVRTC_H

#include "kernels/compile/NvrtcCompiler.h"

#include <gtest/gtest.h>

#include <cstdlib>

/// Declares `compiler`, or skips the test where NVRTC is absent: never where
/// MGPU_REQUIRE_NVRTC says that it must be there (.ci/run sets it where the
/// toolkit is).
#define MGPU_OPEN_NVRTC(compiler, ...)                                         \
  auto compiler = ::mgpu::kernels::NvrtcCompiler::open(__VA_ARGS__);           \
  if (!compiler) {                                                             \
    if (std::getenv("MGPU_REQUIRE_NVRTC"))                                     \
      FAIL() << compiler.error().message;                                      \
    GTEST_SKIP() << compiler.error().message;                                  \
  }

#endif // MGPU_TESTS_UNIT_COMPILE_NVRTC_H
