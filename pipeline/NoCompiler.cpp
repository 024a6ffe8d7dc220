// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/Compiler.h"

#include <fmt/format.h>

namespace mgpu::pipeline {

namespace {

using planner::Dag, planner::KernelSpace;

tl::unexpected<Error> absent(const std::string &what) {
  return fail(ErrorKind::Unsupported,
              fmt::format("cannot {}: this mgpu-tune was built without the "
                          "compiler half (-DMGPU_COMPILER=OFF)",
                          what));
}

class NoCompiler final : public Compiler {
public:
  Result<LoadedProgram> importProgram(const ImportOptions &options,
                                      std::vector<Message> *) const override {
    auto error = absent(fmt::format("read '{}'", options.file));
    error.value().message += "; it reads bundles and .json DAGs";
    return error;
  }
  Result<std::vector<Object>>
  compileKernels(const Dag &dag, const std::string &) const override {
    if (dag.kernels.empty())
      return std::vector<Object>();
    return absent("compile");
  }
  Result<std::vector<KernelSpace>>
  hostKernelSpaces(const Dag &dag) const override {
    if (dag.kernels.empty())
      return std::vector<KernelSpace>();
    return absent("build kernels");
  }
  Result<Object> buildHostKernel(const Dag &, planner::KernelId,
                                 const KernelSpace &,
                                 const planner::KernelConfig &,
                                 const std::string &) const override {
    return absent("build kernels");
  }
  Result<Object> buildErrorKernel(const Dag &,
                                  planner::KernelId) const override {
    return absent("build kernels");
  }
  std::vector<Result<kernels::CudaText>>
  emitCudaKernels(const Dag &dag, const std::string &,
                  device::BlobCache *) const override {
    return std::vector<Result<kernels::CudaText>>(dag.kernels.size(),
                                                  absent("emit kernels"));
  }
};

} // namespace

const Compiler &noCompiler() {
  static const NoCompiler compiler;
  return compiler;
}

} // namespace mgpu::pipeline
