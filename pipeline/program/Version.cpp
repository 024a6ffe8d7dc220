// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Version.h"

#include "BuildInfo.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

std::string_view version() { return MGPU_VERSION; }

std::string versionText(std::string_view program, std::string_view llvm) {
  const std::string_view cuda = MGPU_CUDA_HEADERS;
  return fmt::format("{} {} (commit {})\nLLVM: {}\nCUDA headers: {}", program,
                     MGPU_VERSION, MGPU_COMMIT, llvm.empty() ? "none" : llvm,
                     cuda.empty() ? "none" : cuda);
}

} // namespace mgpu::pipeline
