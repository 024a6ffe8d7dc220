// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Compiler.h"

#include <fmt/format.h>

namespace mgpu::tune {

static constexpr const char *reason =
    "this mgpu-tune was built without the compiler half (-DMGPU_COMPILER=OFF)";

Result<Program> importProgram(const Options &options, bool,
                              std::vector<Message> *, bool) {
  return fail(
      ErrorKind::Unsupported,
      fmt::format("cannot read '{}': {}; it reads bundles and .json DAGs",
                  options.file, reason));
}

Result<std::vector<std::vector<std::byte>>>
compileKernels(const planner::Dag &dag, const std::string &) {
  if (dag.kernels.empty())
    return std::vector<std::vector<std::byte>>();
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot compile: {}", reason));
}

Result<std::vector<planner::KernelSpace>>
hostKernelSpaces(const planner::Dag &dag) {
  if (dag.kernels.empty())
    return std::vector<planner::KernelSpace>();
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot build kernels: {}", reason));
}

Result<std::vector<std::byte>> buildHostKernel(const planner::Dag &,
                                               planner::KernelId,
                                               const planner::KernelSpace &,
                                               const planner::KernelConfig &,
                                               const std::string &) {
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot build kernels: {}", reason));
}

Result<std::vector<std::byte>> buildErrorKernel(const planner::Dag &,
                                                planner::KernelId) {
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot build kernels: {}", reason));
}

std::vector<Result<kernels::CudaText>> emitCudaKernels(const planner::Dag &dag,
                                                       const std::string &,
                                                       device::BlobCache *) {
  return std::vector<Result<kernels::CudaText>>(
      dag.kernels.size(), fail(ErrorKind::Unsupported,
                               fmt::format("cannot emit kernels: {}", reason)));
}

} // namespace mgpu::tune
