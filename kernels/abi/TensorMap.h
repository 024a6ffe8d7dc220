// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_TENSORMAP_H
#define MGPU_KERNELS_ABI_TENSORMAP_H

#include "support/Types.h"

#include <array>

namespace mgpu::kernels {

/// An array in a device's memory as a GPU's tensor copies (TMA) see it, and the
/// box that one copy brings to shared memory; what a kernel takes in place of
/// the array's address, or behind all arguments (a CUtensorMap). In the box,
/// each 16 bytes of a row lie where the swizzle of as many bytes puts them
/// (CU_TENSOR_MAP_SWIZZLE_128B). Elements outside of the array are read as 0.
struct TensorMap {
  uint32_t argument = 0;    ///< the launch's argument that is the address
  uint64_t offsetBytes = 0; ///< from there to the array
  ElementType type = ElementType::F16;
  std::array<uint64_t, 5> sizes{};       ///< elements, the fastest first
  std::array<uint64_t, 4> strideBytes{}; ///< strides of sizes[1] and so on
  std::array<uint32_t, 5> box{};         ///< elements
  uint32_t swizzleBytes = 128;           ///< of a row; 0: none
  bool isAdded = false; ///< a parameter behind those for the arguments
  /// At least 3: an array of fewer dimensions has some of size 1.
  uint32_t rank() const { return sizes[3] == 0 ? 3 : sizes[4] == 0 ? 4 : 5; }
  bool operator==(const TensorMap &) const = default;
};

/// The size of a CUtensorMap (cuda.h), a kernel's parameter.
inline constexpr uint32_t tensorMapBytes = 128;

/// The alignment that cuTensorMapEncodeTiled (cuda.h) asks of an address and of
/// strides.
inline constexpr uint32_t tensorMapAlignment = 16;

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_TENSORMAP_H
