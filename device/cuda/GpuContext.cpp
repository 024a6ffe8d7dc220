// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/GpuContext.h"

#include "device/cuda/api/CudaError.h"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>

namespace mgpu::device {

namespace {

class PrimaryContext final : public GpuContext {
public:
  PrimaryContext(std::shared_ptr<const CudaApi> api, int gpu)
      : api(std::move(api)), gpu(gpu) {}
  ~PrimaryContext() override {
    if (stream)
      (void)inside([&] { return api->cuStreamDestroy(stream); });
    if (context)
      api->cuDevicePrimaryCtxRelease(device);
  }

  Result<void> start() {
    int count = 0;
    MGPU_TRY(check(api->cuDeviceGetCount(&count), "cuDeviceGetCount"));
    if (gpu < 0 || gpu >= count)
      return fail(ErrorKind::Absent,
                  fmt::format("there is no GPU {}: there are {}", gpu, count));
    MGPU_TRY(check(api->cuDeviceGet(&device, gpu), "cuDeviceGet"));
    size_t bytes = 0;
    MGPU_TRY(check(api->cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
    total = bytes;
    MGPU_TRY(check(api->cuDevicePrimaryCtxRetain(&context, device),
                   "cuDevicePrimaryCtxRetain"));
    return check(inside([&] {
                   return api->cuStreamCreateWithPriority(
                       &stream, CU_STREAM_NON_BLOCKING, 0);
                 }),
                 "cuStreamCreateWithPriority");
  }

  Result<void *> allocate(size_t bytes) override {
    CUdeviceptr address = 0;
    MGPU_TRY(check(inside([&] {
                     return api->cuMemAlloc(&address,
                                            std::max<size_t>(bytes, 1));
                   }),
                   "cuMemAlloc"));
    return reinterpret_cast<void *>(address);
  }

  void release(void *memory) override {
    (void)inside(
        [&] { return api->cuMemFree(reinterpret_cast<CUdeviceptr>(memory)); });
  }

  Result<void> copy(void *to, const void *from, size_t bytes) override {
    if (bytes == 0)
      return {};
    const std::lock_guard guard(lock);
    return check(inside([&] {
                   const CUresult queued = api->cuMemcpyAsync(
                       reinterpret_cast<CUdeviceptr>(to),
                       reinterpret_cast<CUdeviceptr>(from), bytes, stream);
                   return queued == CUDA_SUCCESS
                              ? api->cuStreamSynchronize(stream)
                              : queued;
                 }),
                 "cuMemcpyAsync");
  }

  uint64_t totalBytes() const override { return total; }

private:
  template <typename Call>
  CUresult inside(Call call) {
    if (CUresult code = api->cuCtxPushCurrent(context); code != CUDA_SUCCESS)
      return code;
    const CUresult code = call();
    CUcontext popped = nullptr;
    const CUresult after = api->cuCtxPopCurrent(&popped);
    return code == CUDA_SUCCESS ? after : code;
  }
  Result<void> check(CUresult code, const char *call) const {
    if (code == CUDA_SUCCESS)
      return {};
    return cudaError(*api, code, call, fmt::format("cuda:{}", gpu));
  }

  std::shared_ptr<const CudaApi> api;
  int gpu;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  uint64_t total = 0;
  std::mutex lock; ///< of the stream
};

} // namespace

Result<std::shared_ptr<GpuContext>> GpuContext::open(int gpu) {
  MGPU_TRY_ASSIGN(auto api, openCuda());
  auto opened = std::make_shared<PrimaryContext>(std::move(api), gpu);
  MGPU_TRY(opened->start());
  return std::shared_ptr<GpuContext>(std::move(opened));
}

} // namespace mgpu::device
