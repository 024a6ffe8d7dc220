// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CudaState's memory: allocated, lent, and zeroed on its own stream.
#include "device/cuda/graph/CudaState.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

Result<void> CudaState::fill(CUdeviceptr memory, unsigned char value,
                             uint64_t bytes) {
  // On our stream: the plain cuMemset runs on the legacy one, for which a
  // non-blocking stream does not wait.
  MGPU_TRY(check(api->cuMemsetD8Async(memory, value, bytes, stream),
                 "cuMemsetD8Async", where()));
  return wait(stream, "zeroing memory");
}

Result<std::byte *> CudaState::allocate(DeviceId owner, uint64_t sizeBytes,
                                        std::string_view purpose) {
  if (!owner.isHost() && !isHere(owner))
    return fail(ErrorKind::Invalid,
                fmt::format("memory is asked of device {}, but the devices are "
                            "{}",
                            owner.value, devicesText()));
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(std::byte * out, owner.isHost()
                                       ? allocatePinned(sizeBytes, purpose)
                                       : allocateOnGpu(sizeBytes, purpose));
  memory.add(out, sizeBytes, owner);
  return out;
}

Result<std::byte *> CudaState::allocatePinned(uint64_t sizeBytes,
                                              std::string_view purpose) {
  const uint64_t bytes = std::max<uint64_t>(sizeBytes, 1);
  void *pinned = nullptr;
  CUresult code = api->cuMemHostAlloc(
      &pinned, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    return fail(ErrorKind::Absent,
                fmt::format("cannot pin {} bytes of the host's memory for "
                            "{}: use smaller buffers or raise the limit of "
                            "locked memory",
                            sizeBytes, purpose));
  MGPU_TRY(check(code, "cuMemHostAlloc", where()));
  hostMemory.push_back(pinned);
  std::memset(pinned, 0, bytes);
  return static_cast<std::byte *>(pinned);
}

Result<std::byte *> CudaState::allocateOnGpu(uint64_t sizeBytes,
                                             std::string_view purpose) {
  const uint64_t bytes = std::max<uint64_t>(sizeBytes, 1);
  CUdeviceptr address = 0;
  CUresult code = api->cuMemAlloc(&address, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    return fail(ErrorKind::Absent,
                fmt::format("no room for {} bytes for {} {} ({}): {}; use "
                            "smaller buffers or fewer devices on the GPU",
                            sizeBytes, purpose, where(), gpuName, freeText()));
  MGPU_TRY(check(code, "cuMemAlloc", where()));
  deviceMemory.push_back(address);
  MGPU_TRY(fill(address, 0, bytes));
  deviceBytes += bytes;
  return reinterpret_cast<std::byte *>(uintptr_t(address));
}

std::string CudaState::freeText() const {
  size_t free = 0, total = 0;
  if (api->cuMemGetInfo(&free, &total) != CUDA_SUCCESS)
    return "it does not say what is free";
  std::string fits = fmt::format(
      "{} of its {} bytes are free, and so many would fit", free, total);
  if (numDevices > 1)
    fits += fmt::format(" here, or {} for each of the {} devices",
                        (free + deviceBytes) / numDevices, numDevices);
  return fits;
}

Result<const std::byte *> CudaState::wordOfOne() {
  if (oneWord)
    return oneWord;
  MGPU_TRY_ASSIGN(std::byte * word, allocate(firstDevice(), sizeof(uint32_t),
                                             "the progress of collectives"));
  Current current(*this);
  MGPU_TRY(current.entered);
  // Its first byte: both sides are little-endian.
  MGPU_TRY(fill(CUdeviceptr(uintptr_t(word)), 1, 1));
  return oneWord = word;
}

Result<const std::byte *> CudaState::zeros() {
  if (!zeroBytes) {
    MGPU_TRY_ASSIGN(zeroBytes,
                    allocate(firstDevice(), sizeof(uint64_t), "zeros"));
  }
  return zeroBytes;
}

Result<std::shared_ptr<std::byte>> CudaState::borrow(DeviceId owner,
                                                     uint64_t sizeBytes,
                                                     std::string_view purpose) {
  using Key = Spare::key_type;
  auto lend = [this](Key key, std::byte *at) {
    return std::shared_ptr<std::byte>(
        at, [spare = spare, key](std::byte *it) { spare->emplace(key, it); });
  };
  const Key wanted{owner.isHost(), sizeBytes};
  // A block that is far too large stays for others.
  auto found = spare->lower_bound(wanted);
  if (found != spare->end() && found->first.first == wanted.first &&
      found->first.second / 2 <= sizeBytes) {
    auto [key, at] = *found;
    spare->erase(found);
    return lend(key, at);
  }
  MGPU_TRY_ASSIGN(std::byte * at, allocate(owner, sizeBytes, purpose));
  return lend(wanted, at);
}

// Memory of the GPU that the caller owns, and copies between it and the host.

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
