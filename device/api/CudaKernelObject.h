// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_CUDAKERNELOBJECT_H
#define MGPU_DEVICE_API_CUDAKERNELOBJECT_H

// A compiled kernel as Driver::loadKernel of the CUDA target takes it: a cubin
// and how to launch one entry of it. Whoever compiles makes it, whoever has the
// card loads it, and neither needs the other.

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::device {

/// A launch of G blocks of the source's `sourceBlock` threads runs, if the
/// kernel is reshapable, ceil(G.x * sourceBlock.x / (block.x * items)) blocks
/// of `block` threads, and ceil(G.y * sourceBlock.y / block.y) along y and z;
/// else ceil(G.x / items), G.y and G.z blocks of sourceBlock, which `block`
/// then is. Its parameters are the source's, then G and the first block of this
/// chunk as six uint32_t (kernels/emit/cuda writes the kernels).
struct CudaKernelObject {
  std::string entry; ///< its name in the cubin
  std::string arch;  ///< "sm_90"
  Dim3 sourceBlock, block;
  uint32_t items = 1;
  bool reshapable = false;
  uint32_t dynamicSharedBytes = 0;
  std::vector<std::byte> cubin;

  /// The blocks a launch of `grid` runs; a dimension may exceed what CUDA takes
  /// in one launch.
  struct Blocks {
    uint64_t x = 0, y = 0, z = 0;
  };
  Blocks blocksOf(Dim3 grid) const;
};

std::vector<std::byte> encodeCudaKernel(const CudaKernelObject &kernel);
/// `name` is for errors. Invalid for bytes that encodeCudaKernel did not make.
Result<CudaKernelObject> decodeCudaKernel(std::string_view name,
                                          std::span<const std::byte> bytes);

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_CUDAKERNELOBJECT_H
