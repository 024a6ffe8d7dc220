// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_PTXTWIN_H
#define MGPU_TESTS_UNIT_KERNELS_PTXTWIN_H

// Runs emitted CUDA C++ by its PTX, which kernels/ptx executes: what a GPU
// gets, with all checks.

#include "CudaTwin.h"

#include "kernels/ptx/Launch.h"

namespace mgpu::kernels {

/// The PTX of a text by clang, which needs no toolkit.
Result<std::string> clangPtx(const std::string &text, const std::string &arch);

/// Configurations as entries of one module.
class PtxTwins {
public:
  void add(TwinConfig config) { twins.add(std::move(config)); }
  const std::vector<TwinConfig> &configs() const { return twins.configs; }
  /// The program that the compiler takes.
  std::string source() const { return twins.source(); }
  /// By clang, or by NVRTC where it is given.
  Result<void> compile(const class NvrtcLibrary *nvrtc,
                       const std::string &arch = "sm_90a");
  /// CudaTwins::run(), in memory that the launch may touch; the order and the
  /// rest are `options`'.
  Result<void> run(const std::string &entry, Dim3 grid,
                   std::vector<uint64_t> arguments,
                   std::vector<ptx::Region> memory);
  /// CudaTwins::launch() of it.
  Result<void> launch(const TwinConfig &config,
                      const std::vector<uint64_t> &arguments,
                      const unsigned launch[12], const unsigned blocks[3],
                      const std::vector<ptx::Region> &memory);

  ptx::LaunchOptions options;
  uint64_t instructions = 0; ///< executed by all launches

private:
  CudaTwins twins;
  std::map<std::string, ptx::Instance> instances;
};

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_PTXTWIN_H
