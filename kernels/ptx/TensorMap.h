// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_TENSORMAP_H
#define MGPU_KERNELS_PTX_TENSORMAP_H

// The content of a CUtensorMap where there is no driver: NVIDIA does not say
// what is in a real one. Written by the double's cuTensorMapEncodeTiled, read
// by the executor. It includes nothing else of ours: a test's kernels read it,
// too.

#include <cstdint>

namespace mgpu::kernels::ptx {

struct TensorMap {
  static constexpr uint64_t theMagic = 0x70616d20726f736e;
  uint64_t magic;
  uint64_t address;
  uint64_t sizes[5];       ///< elements, the fastest first
  uint64_t strideBytes[4]; ///< of sizes[1] and so on
  uint32_t box[5];
  uint32_t elementBytes;
  uint32_t swizzleBytes; ///< 32, 64, 128, or 0: none
  uint32_t rank;
  uint32_t dataType; ///< a CUtensorMapDataType
  uint32_t unused;
};
static_assert(sizeof(TensorMap) == 128, "as a CUtensorMap");

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_TENSORMAP_H
