// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/TensorMaps.h"

#include <fmt/format.h>

namespace mgpu::device {

static_assert(sizeof(CUtensorMap) == kernels::tensorMapBytes);

static Result<CUtensorMapDataType> dataTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  case ElementType::BF16:
    return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  case ElementType::F32:
    return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  default:
    return fail(
        ErrorKind::Unsupported,
        fmt::format("tensor maps of {} are not supported", toString(type)));
  }
}

static CUtensorMapSwizzle swizzleOf(const kernels::TensorMap &map) {
  switch (map.swizzleBytes) {
  case 0:
    return CU_TENSOR_MAP_SWIZZLE_NONE;
  case 32:
    return CU_TENSOR_MAP_SWIZZLE_32B;
  case 64:
    return CU_TENSOR_MAP_SWIZZLE_64B;
  default:
    return CU_TENSOR_MAP_SWIZZLE_128B;
  }
}

static Result<CUtensorMap> encode(CudaState &state,
                                  const kernels::TensorMap &map,
                                  uint64_t address, std::string_view name) {
  const uint64_t begin = address + map.offsetBytes;
  if (begin % kernels::tensorMapAlignment != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("argument {} begins at {:#x}, no multiple of the "
                            "{} bytes that its kernel's tensor copies take: {}",
                            map.argument, begin, kernels::tensorMapAlignment,
                            map.isAdded ? "give the memory a start that is one"
                                        : "choose another form with "
                                          "--variant mma"));
  MGPU_TRY_ASSIGN(CUtensorMapDataType type, dataTypeOf(map.type));
  const cuuint32_t steps[] = {1, 1, 1, 1, 1};
  CUtensorMap encoded{}; // aligned as CUDA asks
  MGPU_TRY(state.check(state.api->cuTensorMapEncodeTiled(
                           &encoded, type, map.rank(),
                           reinterpret_cast<void *>(uintptr_t(begin)),
                           map.sizes.data(), map.strideBytes.data(),
                           map.box.data(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           swizzleOf(map), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                       "cuTensorMapEncodeTiled",
                       fmt::format("for argument {} of '{}' {}", map.argument,
                                   name, state.where())));
  return encoded;
}

Result<std::vector<KernelArgument>>
kernelArguments(CudaState &state, const LoadedKernel &kernel,
                const KernelNodeParams &params) {
  std::vector<KernelArgument> out(params.arguments.begin(),
                                  params.arguments.end());
  if (kernel.launch.tensorMaps.empty())
    return out;
  CudaState::Current current(state);
  MGPU_TRY(current.entered);
  constexpr int firstWithMaps = 9; // of compute capability
  for (const kernels::TensorMap &map : kernel.launch.tensorMaps) {
    if (map.isAdded && state.major < firstWithMaps) {
      out.push_back(CUtensorMap{});
      continue;
    }
    auto made = encode(state, map, params.arguments[map.argument], params.name);
    if (!made)
      return failIn(fmt::format("node '{}': ", params.name), made.error());
    if (map.isAdded)
      out.push_back(*made);
    else
      out[map.argument] = *made;
  }
  return out;
}

} // namespace mgpu::device
