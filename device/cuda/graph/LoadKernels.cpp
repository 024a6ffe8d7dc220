// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CudaState's kernels: loaded before any graph exists, as a lazy load may wait
// for the whole GPU.
#include "device/cuda/graph/CudaState.h"

#include "kernels/abi/LaunchForm.h"
#include "support/Sha256.h"

#include <fmt/format.h>

namespace mgpu::device {

/// Why a driver does not take a cubin, if it is older than the compiler. A
/// driver takes what toolkits of its own major release make (CUDA
/// Compatibility, "Minor Version Compatibility").
static std::string olderThan(const CudaApi &api, const kernels::Cubin &cubin) {
  int version = 0;
  if (api.cuDriverGetVersion(&version) != CUDA_SUCCESS ||
      cubin.toolkit <= uint32_t(version / 1000))
    return "";
  return fmt::format("its code was compiled by CUDA {}, and the NVIDIA driver "
                     "is one of CUDA {}: install a driver of CUDA {}.0 or "
                     "later, or compile it with NVRTC {}",
                     cubin.toolkit, cudaVersionText(version), cubin.toolkit,
                     version / 1000);
}

Result<const CudaState::LoadedLibrary *>
CudaState::loadLibrary(std::string_view name,
                       std::span<const std::byte> cubin) {
  // Kernels compiled together come with the same cubin.
  Sha256 hash;
  hash.addField({reinterpret_cast<const char *>(cubin.data()), cubin.size()});
  std::string key = hash.hex();
  if (auto at = libraries.find(key); at != libraries.end())
    return &at->second;
  LoadedLibrary library{nullptr, kernels::readCubin(cubin)};
  const CUresult code = api->cuLibraryLoadData(
      &library.handle, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code != CUDA_SUCCESS)
    if (const std::string why = olderThan(*api, library.cubin); !why.empty())
      return fail(ErrorKind::Absent,
                  fmt::format("kernel {} {}: {}", name, where(), why));
  MGPU_TRY(check(code, "cuLibraryLoadData",
                 fmt::format("for kernel {} {}", name, where())));
  constexpr std::string_view printf = "vprintf"; // what the compiler calls
  mayPrint |= std::string_view(reinterpret_cast<const char *>(cubin.data()),
                               cubin.size())
                  .find(printf) != std::string_view::npos;
  return &libraries.emplace(key, std::move(library)).first->second;
}

Result<CUkernel> CudaState::loadEntry(CUlibrary library,
                                      const std::string &entry,
                                      std::string_view name) {
  CUkernel kernel = nullptr;
  std::string forKernel = fmt::format("for kernel {} {}", name, where());
  MGPU_TRY(check(api->cuLibraryGetKernel(&kernel, library, entry.c_str()),
                 "cuLibraryGetKernel", forKernel));
  // Loading is lazy by default, and a first launch that loads may wait for the
  // whole GPU: both steps here, before any graph exists.
  CUfunction function = nullptr;
  MGPU_TRY(check(api->cuKernelGetFunction(&function, kernel),
                 "cuKernelGetFunction", forKernel));
  MGPU_TRY(check(api->cuFuncLoad(function), "cuFuncLoad", forKernel));
  return kernel;
}

Result<void> CudaState::setSharedBytes(CUkernel kernel, uint32_t bytes,
                                       std::string_view name) {
  // Without asking it has 48 KiB less its own static bytes (cuda.h 987). The
  // bytes that nodes were made with before stay allowed.
  uint32_t &allowed = sharedBytes[kernel];
  if (bytes <= allowed)
    return {};
  const std::string forKernel = fmt::format("for kernel {} {}", name, where());
  int most = 0, fixed = 0;
  MGPU_TRY(check(
      api->cuDeviceGetAttribute(
          &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device),
      "cuDeviceGetAttribute", where()));
  MGPU_TRY(check(api->cuKernelGetAttribute(&fixed,
                                           CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                           kernel, device),
                 "cuKernelGetAttribute", forKernel));
  if (uint64_t(bytes) + uint64_t(fixed) > uint64_t(most))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {} wants {} bytes of shared memory, {} "
                            "({}) gives a block {}",
                            name, uint64_t(bytes) + uint64_t(fixed), where(),
                            gpuName, most));
  MGPU_TRY(check(
      api->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                int(bytes), kernel, device),
      "cuKernelSetAttribute", forKernel));
  allowed = bytes;
  return {};
}

Result<KernelHandle> CudaState::loadKernel(std::string_view name,
                                           std::span<const std::byte> object) {
  MGPU_TRY(checkAlive());
  LoadedKernel loaded;
  MGPU_TRY_ASSIGN(loaded.launch, kernels::decodeImage(name, object));
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(const LoadedLibrary *library,
                  loadLibrary(name, loaded.launch.bytes()));
  MGPU_TRY(kernels::checkLaunchForm(name, loaded.launch, library->cubin));
  loaded.launch.blob.clear();
  MGPU_TRY_ASSIGN(loaded.kernel,
                  loadEntry(library->handle, loaded.launch.entry, name));
  int threads = 0;
  std::string forKernel = fmt::format("for kernel {} {}", name, where());
  MGPU_TRY(check(api->cuKernelGetAttribute(
                     &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                     loaded.kernel, device),
                 "cuKernelGetAttribute", forKernel));
  if (loaded.launch.block.volume() > uint64_t(threads))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {} has blocks of {} threads, but {} ({}) "
                            "runs it with at most {}: choose a smaller block",
                            name, loaded.launch.block.volume(), where(),
                            gpuName, threads));
  MGPU_TRY(
      setSharedBytes(loaded.kernel, loaded.launch.dynamicSharedBytes, name));
  // The parameters end where the driver says that there is no such index.
  for (size_t k = 0;; ++k) {
    size_t offset = 0, size = 0;
    CUresult code = api->cuKernelGetParamInfo(loaded.kernel, k, &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE)
      break;
    MGPU_TRY(check(code, "cuKernelGetParamInfo", forKernel));
    loaded.parameterSizes.push_back(size);
  }
  if (log)
    log->take(); // that last call is not a failure
  kernels.push_back(std::move(loaded));
  return KernelHandle{uint32_t(kernels.size() - 1)};
}

Result<CUkernel> CudaState::deviceKernel(const std::string &entry,
                                         const std::string &source) {
  if (auto at = deviceKernels.find(entry); at != deviceKernels.end())
    return at->second;
  MGPU_TRY(checkAlive());
  if (!options.compile)
    return fail(ErrorKind::Absent,
                fmt::format("{} needs the kernel {}, and there is no compiler "
                            "for it: install NVRTC",
                            where(), entry));
  MGPU_TRY_ASSIGN(std::vector<std::byte> cubin,
                  options.compile(source, entry, arch()));
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(const LoadedLibrary *library, loadLibrary(entry, cubin));
  MGPU_TRY_ASSIGN(CUkernel kernel, loadEntry(library->handle, entry, entry));
  deviceKernels.emplace(entry, kernel);
  return kernel;
}

} // namespace mgpu::device
