// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_CUDAKERNELOBJECT_H
#define MGPU_KERNELS_ABI_CUDAKERNELOBJECT_H

// A compiled kernel as Driver::loadKernel of the CUDA target takes it: a cubin
// and how to launch one entry of it. Whoever compiles makes it, whoever has the
// card loads it, and neither needs the other.

#include "kernels/abi/MatrixProduct.h"
#include "kernels/abi/TensorMap.h"
#include "support/Result.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::device {

/// A launch of G blocks of the source's `sourceBlock` threads runs
/// ceil(G * sourceBlock / covers) blocks of `block` threads along each axis,
/// and along x as many more as make the last cluster whole. The kernel's
/// parameters are the source's, then, if it takes its part, G and the first
/// block of this chunk as six uint32_t (kernels/cuda writes such kernels);
/// one that does not is launched whole.
struct CudaKernelObject {
  std::string entry; ///< its name in the cubin
  std::string arch;  ///< "sm_90"
  Dim3 sourceBlock, block;
  Dim3 covers;           ///< threads of the source that one block is
  uint32_t clusterX = 1; ///< blocks of a cluster, along x
  bool takesPart = true;
  uint32_t dynamicSharedBytes = 0;
  /// It waits for the kernel its launch follows before it does anything
  /// (griddepcontrol.wait): the launch may begin before that has ended. Of
  /// sm_90 and later.
  bool awaits = false;
  /// Parameters of tensorMapBytes each: maps of the arrays whose addresses the
  /// launch gives as these arguments.
  std::vector<TensorMap> tensorMaps;
  /// What a launch computes, where a library may compute it in its place.
  std::optional<MatrixProduct> product;
  /// What of the card's memory the library may use for it: a launch has its
  /// address as one more argument, which the entry does not take. 0: none, and
  /// no such argument.
  uint64_t workspaceBytes = 0;
  std::vector<std::byte> cubin;

  /// The blocks a launch of `grid` runs; a dimension may exceed what CUDA takes
  /// in one launch.
  struct Blocks {
    uint64_t x = 0, y = 0, z = 0;
  };
  Blocks blocksOf(Dim3 grid) const;
};

/// For a matrix product by cuBLASLt. NVIDIA's cuBLAS guide recommends 32 MiB on
/// Hopper, and less elsewhere ("cublasSetWorkspace").
inline constexpr uint64_t productWorkspaceBytes = uint64_t(32) << 20;

std::vector<std::byte> encodeCudaKernel(const CudaKernelObject &kernel);
/// `name` is for errors. Invalid for bytes that encodeCudaKernel did not make.
Result<CudaKernelObject> decodeCudaKernel(std::string_view name,
                                          std::span<const std::byte> bytes);

} // namespace mgpu::device

#endif // MGPU_KERNELS_ABI_CUDAKERNELOBJECT_H
