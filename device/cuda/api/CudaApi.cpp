// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CudaApi.h"

#include "device/cuda/api/CudaError.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace mgpu::device {

std::string cudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<void> initializeCuda(CudaApi &api) {
  if (CUresult code = api.cuInit(0); code != CUDA_SUCCESS)
    return cudaError(api, code, "cuInit", "of the NVIDIA driver");
  if (CUresult code = api.cuDriverGetVersion(&api.driverVersion);
      code != CUDA_SUCCESS)
    return cudaError(api, code, "cuDriverGetVersion", "of the NVIDIA driver");
  return {};
}

Result<std::shared_ptr<const CudaApi>> openCuda(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ErrorKind::Absent,
                fmt::format("no NVIDIA driver: {} cannot be opened ({}); "
                            "install the driver, in a container start it with "
                            "the GPU (--gpus all), or use --target host",
                            path, dlerror()));
  // The symbol's own version is fixed; what it finds for others is by the
  // version asked for.
  auto find = reinterpret_cast<PFN_cuGetProcAddress_v12000>(
      dlsym(library, "cuGetProcAddress_v2"));
  if (!find)
    return fail(ErrorKind::Absent,
                fmt::format("{} is of a driver older than CUDA 12.0: install "
                            "one of CUDA 12.4 (R550) or later",
                            path));
  auto api = std::make_shared<CudaApi>();
  std::string missing;
  auto take = [&](const char *name, int version, auto &into, bool required) {
    void *function = nullptr;
    CUdriverProcAddressQueryResult found{};
    CUresult code = find(name, &function, version,
                         CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (code == CUDA_SUCCESS && function &&
        found == CU_GET_PROC_ADDRESS_SUCCESS)
      into = reinterpret_cast<std::decay_t<decltype(into)>>(function);
    else if (required && missing.empty())
      missing = name;
  };
#define MGPU_CUDA_TAKE(name, version) take(#name, version, api->name, true);
  MGPU_CUDA_REQUIRED(MGPU_CUDA_TAKE)
#undef MGPU_CUDA_TAKE
#define MGPU_CUDA_TAKE(name, version) take(#name, version, api->name, false);
  MGPU_CUDA_OPTIONAL(MGPU_CUDA_TAKE)
#undef MGPU_CUDA_TAKE
  if (!missing.empty()) {
    int version = 0;
    bool known = api->cuDriverGetVersion &&
                 api->cuDriverGetVersion(&version) == CUDA_SUCCESS;
    return fail(ErrorKind::Absent,
                fmt::format("the NVIDIA driver {} has no {}: install one of "
                            "CUDA 12.4 (R550) or later",
                            known ? "of CUDA " + cudaVersionText(version)
                                  : "in " + path,
                            missing));
  }
  MGPU_TRY(initializeCuda(*api));
  return std::shared_ptr<const CudaApi>(std::move(api));
}

} // namespace mgpu::device
