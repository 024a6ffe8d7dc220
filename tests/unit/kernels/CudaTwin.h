// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_CUDATWIN_H
#define MGPU_TESTS_UNIT_KERNELS_CUDATWIN_H

// Runs emitted CUDA C++ on the processor, through CudaShim.h, beside the host
// target's code for the same kernel.

#include "kernels/abi/MatrixProduct.h"
#include "kernels/compile/KernelRecipe.h"
#include "kernels/cuda/CudaEmitter.h"
#include "kernels/ptx/TensorMap.h"
#include "kernels/space/KernelSpace.h"
#include "support/Result.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mgpu::kernels {

/// emitCudaKernel of a module given as text.
Result<CudaKernel> emitCudaText(const std::string &text,
                                const CudaEmitOptions &options);

/// The same of a program's kernel; one of CUDA C++ is taken as it is.
Result<CudaKernel> emitCudaText(const planner::KernelSpec &spec,
                                const CudaEmitOptions &options);

/// emitTensorMatmul of one, and its space.
std::pair<CudaKernel, KernelSpace> tensorText(const std::string &text,
                                              const CudaEmitOptions &options);
/// tensorMatmulRefusal of one.
std::string tensorRefusal(const std::string &text);
/// The same of emitWgmmaMatmul.
std::pair<CudaKernel, KernelSpace> wgmmaText(const std::string &text,
                                             const CudaEmitOptions &options);
std::string wgmmaRefusal(const std::string &text);
/// libraryMatmul of one, where libraryMatmulRefusal has nothing against it.
std::optional<MatrixProduct> libraryProduct(const std::string &text);

/// Up to `limit` of the corners of a space, at random: each parameter and
/// tunable has its least or its greatest value, in all combinations, of those
/// that are legal on the first GPU of `arch`, by default the smallest one.
/// Where a rule lets not all have it, the first ones go before in one corner
/// and the last ones in another.
std::vector<KernelConfig> cornersOf(const KernelSpace &space, size_t limit,
                                    const char *arch = "sm_80");

/// A kernel under one configuration.
struct TwinConfig {
  std::string entry; ///< its name in the shared object
  CudaKernel kernel;
  KernelSpace space;
  KernelConfig config;

  uint32_t dynamicSharedBytes() const;
  /// The tensor map that parameter k is, or null.
  const TensorMap *tensorMap(size_t k) const;
};

/// Configurations compiled together, as one C++ program.
class CudaTwins {
public:
  void add(TwinConfig config) { configs.push_back(std::move(config)); }
  /// The program NVRTC takes.
  std::string source() const { return batchSource(items(false)); }
  Result<void> compile();
  ~CudaTwins();
  /// Runs a launch of `grid` blocks of the source as two parts of the grid, the
  /// second from its last third on, and each of them in two launches, the
  /// second from the middle on. `arguments` as the host ABI has them.
  void run(const std::string &entry, Dim3 grid,
           std::vector<uint64_t> arguments) const;
  /// The launches of such a run; tensor maps among the arguments are `maps`.
  struct Part {
    std::vector<uint64_t> arguments;
    unsigned launch[12], blocks[3];
  };
  static std::vector<Part> partsOf(const TwinConfig &config, Dim3 grid,
                                   std::vector<uint64_t> arguments,
                                   std::vector<ptx::TensorMap> &maps);

  /// One launch as the device makes it: the MgpuLaunch, blocks and threads. An
  /// argument that is a tensor map is where its bytes are.
  void launch(const std::string &entry, const std::vector<uint64_t> &arguments,
              const unsigned launch[12], const unsigned blocks[3],
              const unsigned threads[3]) const;
  /// The bytes of each of an entry's parameters but the MgpuLaunch.
  std::vector<size_t> parameterSizes(const std::string &entry) const;

  std::vector<TwinConfig> configs;
  /// What runs is worth more of the compiler's time.
  bool runsLong = false;
  /// Programs wait for what they follow (MGPU_PDL), by calling this.
  void (*onAwait)() = nullptr;
  /// Leaves the waits out nonetheless, for tests of tests.
  bool leavesOutWaits = false;

private:
  std::vector<BatchItem> items(bool forShim) const;
  void *library = nullptr;
};

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_CUDATWIN_H
