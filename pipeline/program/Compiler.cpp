// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Compiler.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

using planner::Dag, kernels::KernelSpace;

static tl::unexpected<Error> absent(const std::string &what) {
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot {}: this mgpu-tune was built without the "
                          "compiler half (-DMGPU_COMPILER=OFF)",
                          what));
}

Result<LoadedProgram> Compiler::importProgram(const ImportOptions &options,
                                              std::vector<Message> *) const {
  auto error = absent(fmt::format("read '{}'", options.file));
  error.value().message += "; it reads bundles and .json DAGs";
  return error;
}

Result<std::string> Compiler::decode(std::span<const std::byte>,
                                     const std::string &name) const {
  return absent(fmt::format("decode '{}'", name));
}

Result<std::vector<Compiler::Object>>
Compiler::compileKernels(const Dag &dag, const std::string &) const {
  if (dag.kernels.empty())
    return std::vector<Object>();
  return absent("compile");
}

std::vector<Result<void>> Compiler::verifyHostKernels(const Dag &dag) const {
  return std::vector<Result<void>>(dag.kernels.size());
}

Result<std::vector<KernelSpace>>
Compiler::hostKernelSpaces(const Dag &dag) const {
  if (dag.kernels.empty())
    return std::vector<KernelSpace>();
  return absent("build kernels");
}

Result<Compiler::Object>
Compiler::buildHostKernel(const Dag &, planner::KernelId, const KernelSpace &,
                          const kernels::KernelConfig &,
                          const std::string &) const {
  return absent("build kernels");
}

Result<Compiler::Object> Compiler::buildErrorKernel(const Dag &,
                                                    planner::KernelId) const {
  return absent("build kernels");
}

std::vector<Result<kernels::CudaText>>
Compiler::emitCudaKernels(const Dag &dag, const Variants &,
                          device::BlobCache *) const {
  return std::vector<Result<kernels::CudaText>>(dag.kernels.size(),
                                                absent("emit kernels"));
}

const Compiler &noCompiler() {
  static const Compiler compiler;
  return compiler;
}

} // namespace mgpu::pipeline
