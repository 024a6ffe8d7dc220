// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps of the driver that is not there. The lines are those of cuda.h
// (CUDA 13.0) that say what cuTensorMapEncodeTiled asks for.
#include "FakeCuda.h"
#include "kernels/ptx/TensorMap.h"

#include <algorithm>
#include <cstring>

namespace mgpu::fake {

namespace {

CUresult encodeTiled(CUtensorMap *map, CUtensorMapDataType type,
                     cuuint32_t rank, void *address, const cuuint64_t *sizes,
                     const cuuint64_t *strides, const cuuint32_t *box,
                     const cuuint32_t *steps, CUtensorMapInterleave interleave,
                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                     CUtensorMapFloatOOBfill fill) {
  MGPU_FAKE_ENTER("cuTensorMapEncodeTiled");
  const bool is16 = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 ||
                    type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const bool is32 = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  // What is encoded here: three to five dimensions of floats, zeros outside.
  // 23242: GPUs of compute capability 9.0 and later have them.
  if (fake.major < 9 || !map || !(is16 || is32) || rank < 3 || rank > 5 ||
      interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  // 23248: the map is aligned to 64 bytes; 23278: the array to 16.
  if (uintptr_t(map) % 64 != 0 || uintptr_t(address) % 16 != 0)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  const uint64_t elementBytes = is32 ? 4 : 2;
  uint64_t least = sizes[0] * elementBytes;
  for (unsigned d = 0; d < rank; ++d) {
    // 23282: up to 2^32 elements; 23300: boxes of up to 256; 23305: steps of 1
    // to 8.
    if (sizes[d] == 0 || sizes[d] > uint64_t(1) << 32 || box[d] == 0 ||
        box[d] > 256 || steps[d] < 1 || steps[d] > 8)
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    if (d + 1 == rank)
      continue;
    // 23288: strides are multiples of 16 below 2^40, 23297: and not smaller
    // than what they step over.
    if (strides[d] % 16 != 0 || strides[d] >= uint64_t(1) << 40 ||
        strides[d] < least)
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    least = strides[d] * (sizes[d + 1] - 1) + least;
  }
  // 23302: rows of a box are multiples of 16 bytes; 23326: and at most what the
  // swizzle spans.
  uint64_t row = box[0] * elementBytes;
  const uint32_t span = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE  ? 0
                        : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 32
                        : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
                                                               : 128;
  if (row % 16 != 0 || (span != 0 && row > span) ||
      swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  // Not an error of the call, but of the copies.
  if (!fake.isDeviceRange(uint64_t(uintptr_t(address)), least))
    fake.violations.push_back("a tensor map of what is not memory of the GPU");
  kernels::ptx::TensorMap made{};
  made.magic = kernels::ptx::TensorMap::theMagic;
  made.address = uint64_t(uintptr_t(address));
  std::copy(sizes, sizes + rank, made.sizes);
  std::copy(strides, strides + rank - 1, made.strideBytes);
  std::copy(box, box + rank, made.box);
  made.rank = rank;
  made.elementBytes = uint32_t(elementBytes);
  made.swizzleBytes = span;
  made.dataType = type;
  std::memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}

} // namespace

void addTensorMapEntries(device::CudaApi &api) {
  api.cuTensorMapEncodeTiled = encodeTiled;
}

} // namespace mgpu::fake
