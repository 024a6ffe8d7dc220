// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the GPU that the caller owns, and copies between it and the host.
#include "device/cuda/graph/CudaState.h"

#include <fmt/format.h>

namespace mgpu::device {

Result<void> CudaState::adopt(DeviceId device, std::span<std::byte> given) {
  MGPU_TRY(checkAlive());
  if (given.empty())
    return {};
  Current current(*this);
  MGPU_TRY(current.entered);
  unsigned type = 0;
  int ordinal = -1;
  // Its last byte too: it may begin in the GPU's memory and be longer.
  for (std::byte *end : {&given.back(), given.data()}) {
    const auto address = CUdeviceptr(uintptr_t(end));
    const bool isKnown =
        api->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   address) == CUDA_SUCCESS &&
        api->cuPointerGetAttribute(&ordinal,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   address) == CUDA_SUCCESS;
    if (isKnown && type == CU_MEMORYTYPE_DEVICE && ordinal == options.gpu)
      continue;
    log->take(); // it is no failure of ours
    return fail(ErrorKind::Usage,
                fmt::format("{} bytes at {} are not memory {}: allocate them "
                            "on that GPU",
                            given.size(),
                            static_cast<const void *>(given.data()), where()));
  }
  // Memory of ours, or adopted with as many bytes, is known.
  const bool isOurs =
      memory.ownerOf(given.data()) && !callers.contains(given.data());
  if (!isOurs) {
    memory.add(given.data(), given.size(), device);
    callers.insert(given.data());
  }
  return {};
}

void CudaState::forget(std::byte *base) {
  if (callers.erase(base) > 0)
    memory.remove(base);
}

Result<void> CudaState::transfer(std::byte *to, const std::byte *from,
                                 uint64_t bytes) {
  MGPU_TRY(checkAlive());
  if (bytes == 0)
    return {};
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY(
      check(api->cuMemcpyAsync(CUdeviceptr(uintptr_t(to)),
                               CUdeviceptr(uintptr_t(from)), bytes, stream),
            "cuMemcpyAsync", where()));
  return wait(stream, "a copy");
}

} // namespace mgpu::device
