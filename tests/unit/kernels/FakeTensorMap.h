// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_FAKETENSORMAP_H
#define MGPU_TESTS_UNIT_KERNELS_FAKETENSORMAP_H

// What is in a CUtensorMap where there is no driver: NVIDIA does not say what
// is in a real one. Written by FakeCuda's cuTensorMapEncodeTiled, read by the
// shim's tensor copies, which is C++ that knows nothing else of ours.

#include <cstdint>

struct FakeTensorMap {
  static constexpr uint64_t theMagic = 0x70616d20726f736e;
  uint64_t magic;
  uint64_t address;
  uint64_t sizes[5];       ///< elements, the fastest first
  uint64_t strideBytes[4]; ///< of sizes[1] and so on
  uint32_t box[5];
  uint32_t elementBytes;
  uint32_t swizzleBytes; ///< 32, 64, 128, or 0: none
  uint32_t rank;
  uint8_t unused[128 - 8 * 11 - 4 * 8];
};
static_assert(sizeof(FakeTensorMap) == 128, "as a CUtensorMap");

#endif // MGPU_TESTS_UNIT_KERNELS_FAKETENSORMAP_H
