// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of the devices and of the host.
#include "FakeNodes.h"

#include <cstdlib>
#include <cstring>

namespace mgpu::fake {

namespace {

CUresult memAlloc(CUdeviceptr *address, size_t bytes) {
  MGPU_FAKE_ENTER("cuMemAlloc");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  if (bytes == 0) // 8582: bytesize 0 is INVALID_VALUE
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (fake.isCapturingHere()) // 15444: one of the calls that no capture sees
    return fake.refuseUnsafe();
  const size_t taken = fake.bytesTaken(fake.current());
  if (bytes > fake.gpuBytes || taken > fake.gpuBytes - bytes)
    return fake.refuse(CUDA_ERROR_OUT_OF_MEMORY);
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xa5, bytes); // 8582: the memory is not cleared
  *address = CUdeviceptr(uintptr_t(memory));
  fake.deviceMemory[*address] = {bytes, fake.current()};
  return CUDA_SUCCESS;
}

CUresult memFree(CUdeviceptr address) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuMemFree");
  if (fake.isCapturingHere())
    return fake.refuseUnsafe();
  auto at = fake.deviceMemory.find(address);
  if (at == fake.deviceMemory.end()) // 8676: must have been allocated
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  std::free(reinterpret_cast<void *>(at->first));
  fake.deviceMemory.erase(at);
  return entered;
}

CUresult memHostAlloc(void **memory, size_t bytes, unsigned flags) {
  MGPU_FAKE_ENTER("cuMemHostAlloc");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE |
                             CU_MEMHOSTALLOC_DEVICEMAP |
                             CU_MEMHOSTALLOC_WRITECOMBINED;
  if (bytes == 0 || (flags & ~known))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (fake.isCapturingHere())
    return fake.refuseUnsafe();
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0x5a, bytes);
  fake.hostMemory[uintptr_t(*memory)] = {
      bytes, flags & CU_MEMHOSTALLOC_PORTABLE ? nullptr : fake.current()};
  return CUDA_SUCCESS;
}

CUresult memFreeHost(void *memory) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuMemFreeHost");
  if (fake.isCapturingHere())
    return fake.refuseUnsafe();
  // 8798: must have been returned by cuMemAllocHost or cuMemHostAlloc.
  if (!fake.hostMemory.erase(uintptr_t(memory)))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  std::free(memory);
  return entered;
}

CUresult hostRegister(void *memory, size_t bytes, unsigned flags) {
  MGPU_FAKE_ENTER("cuMemHostRegister");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  constexpr unsigned known =
      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  if (!memory || bytes == 0 || (flags & ~known))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (fake.isCapturingHere())
    return fake.refuseUnsafe();
  if (fake.isHostRange(memory, 1)) // 9531
    return fake.refuse(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  // 9474: for other contexts too only with this flag.
  fake.registered[uintptr_t(memory)] = {
      bytes, flags & CU_MEMHOSTREGISTER_PORTABLE ? nullptr : fake.current()};
  return CUDA_SUCCESS;
}

CUresult hostUnregister(void *memory) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuMemHostUnregister");
  if (fake.isCapturingHere())
    return fake.refuseUnsafe();
  const auto start = uintptr_t(memory);
  auto isIn = [&](const void *address) {
    auto at = fake.registered.find(start);
    return at != fake.registered.end() &&
           uintptr_t(address) - start < at->second.bytes;
  };
  auto isBusy = [&](const Run &run) {
    for (size_t k = 0; k < run.steps.size(); ++k) {
      const Node &node = run.steps[k].node;
      const CUDA_MEMCPY3D &copy = node.params.memcpy.copyParams;
      if (!run.isDone[k] && !node.start &&
          node.params.type == CU_GRAPH_NODE_TYPE_MEMCPY &&
          (isIn(copy.srcHost) || isIn(copy.dstHost)))
        return true;
    }
    return false;
  };
  if (fake.streams.any([&](const Stream &stream) {
        return std::any_of(stream.runs.begin(), stream.runs.end(),
                           [&](const auto &run) { return isBusy(*run); });
      }))
    fake.violations.push_back("host memory unpinned while work uses it");
  // 9548: the base address that was registered.
  if (!fake.registered.erase(uintptr_t(memory)))
    return fake.refuse(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  return entered;
}

CUresult memInfo(size_t *free, size_t *total) {
  MGPU_FAKE_ENTER("cuMemGetInfo");
  if (!fake.current())
    return fake.refuse(CUDA_ERROR_INVALID_CONTEXT);
  *total = fake.gpuBytes;
  *free = *total - fake.bytesTaken(fake.current());
  return CUDA_SUCCESS;
}

/// Why work cannot go to the stream in the current context, if it cannot.
static CUresult refusalOf(FakeCuda &fake, CUstream stream,
                          const char *work = nullptr) {
  if (!fake.current())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!stream)
    fake.violations.push_back("work on the legacy default stream");
  return fake.refusalOf(stream, work);
}

CUresult memset8(CUdeviceptr address, unsigned char value, size_t bytes,
                 CUstream stream) {
  MGPU_FAKE_ENTER("cuMemsetD8Async");
  if (CUresult refusal = refusalOf(fake, stream); refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  if (!fake.isDeviceRange(address, bytes, fake.current()))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  Stream *on = fake.streams.find(stream);
  if (on && on->capture) {
    auto node = std::make_unique<Node>();
    std::memset(&node->params, 0, sizeof node->params);
    node->params.type = CU_GRAPH_NODE_TYPE_MEMSET;
    node->params.memset = {address,
                           0,
                           value,
                           1,
                           bytes,
                           1,
                           reinterpret_cast<CUcontext>(fake.current())};
    captureNode(*on, std::move(node));
    return CUDA_SUCCESS;
  }
  std::memset(reinterpret_cast<void *>(address), value, bytes);
  if (on)
    on->busyQueries = fake.busyQueries;
  return CUDA_SUCCESS;
}

CUresult copyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                   CUstream stream) {
  MGPU_FAKE_ENTER("cuMemcpyAsync");
  if (CUresult refusal = refusalOf(fake, stream, "a copy");
      refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  // What is not the GPU's is the host's, pinned or not.
  if (!fake.isDeviceRange(to, bytes, fake.current()) &&
      !fake.isDeviceRange(from, bytes, fake.current()))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  std::memcpy(reinterpret_cast<void *>(to),
              reinterpret_cast<const void *>(from), bytes);
  if (stream)
    fake.streams.find(stream)->busyQueries = fake.busyQueries;
  return CUDA_SUCCESS;
}

CUresult pointerGetAttribute(void *data, CUpointer_attribute attribute,
                             CUdeviceptr address) {
  MGPU_FAKE_ENTER("cuPointerGetAttribute");
  auto next = fake.deviceMemory.upper_bound(address);
  const bool isDevice = fake.isDeviceRange(address, 1);
  if (!isDevice && !fake.isHostRange(reinterpret_cast<void *>(address), 1))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<unsigned *>(data) =
        isDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    *static_cast<int *>(data) = isDevice ? std::prev(next)->second.of->gpu : 0;
  else
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

} // namespace

void addMemoryEntries(device::CudaApi &api) {
  api.cuMemAlloc = memAlloc;
  api.cuMemFree = memFree;
  api.cuMemHostAlloc = memHostAlloc;
  api.cuMemFreeHost = memFreeHost;
  api.cuMemHostRegister = hostRegister;
  api.cuMemHostUnregister = hostUnregister;
  api.cuMemGetInfo = memInfo;
  api.cuMemsetD8Async = memset8;
  api.cuMemcpyAsync = copyAsync;
  api.cuPointerGetAttribute = pointerGetAttribute;
}

} // namespace mgpu::fake
