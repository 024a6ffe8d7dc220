// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/Libraries.h"

#include "support/SharedLibrary.h"

#include <cstdint>
#include <dlfcn.h>
#include <fmt/format.h>

namespace mgpu::device {

Result<FoundLibrary> findNccl() {
  auto [library, path] = openToolkitLibrary({"libnccl.so.2"});
  // ncclResult_t is an enum; 0 is success.
  auto version =
      library
          ? reinterpret_cast<int (*)(int *)>(dlsym(library, "ncclGetVersion"))
          : nullptr;
  int number = 0;
  if (!version || version(&number) != 0)
    return fail(ErrorKind::Absent,
                "no libnccl.so.2: install NCCL (package libnccl2)");
  // Since 2.9: major * 10000 + minor * 100 + patch.
  return FoundLibrary{
      path,
      fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100),
      number};
}

Result<FoundLibrary> findCublasLt() {
  auto [library, path] =
      openToolkitLibrary({"libcublasLt.so.13", "libcublasLt.so.12"});
  auto version =
      library
          ? reinterpret_cast<size_t (*)()>(dlsym(library, "cublasLtGetVersion"))
          : nullptr;
  if (!version)
    return fail(ErrorKind::Absent,
                "no libcublasLt.so: install cuBLAS (package libcublas)");
  // major * 10000 + minor * 100 + patch, as CUBLAS_VERSION (cublas_api.h).
  size_t number = version();
  return FoundLibrary{path, fmt::format("{}.{}.{}", number / 10000,
                                        number / 100 % 100, number % 100)};
}

Result<FoundLibrary> findCupti() {
  auto [library, path] =
      openToolkitLibrary({"libcupti.so.13", "libcupti.so.12", "libcupti.so"});
  auto version = library ? reinterpret_cast<int (*)(uint32_t *)>(
                               dlsym(library, "cuptiGetVersion"))
                         : nullptr;
  uint32_t number = 0;
  if (!version || version(&number) != 0)
    return fail(ErrorKind::Absent,
                "no libcupti.so: install CUPTI (package cuda-cupti)");
  // CUPTI_API_VERSION spells it so: 130001 of CUDA 13.0; before, one by one.
  return FoundLibrary{
      path, number >= 130000
                ? fmt::format("{}.{}", number / 10000, number / 100 % 100)
                : fmt::format("API version {}", number)};
}

} // namespace mgpu::device
