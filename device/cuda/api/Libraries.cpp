// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/Libraries.h"

#include "support/SharedLibrary.h"

#include <cstdint>
#include <dlfcn.h>
#include <fmt/format.h>

namespace mgpu::device {

/// Where a library is, and the function of it that says its version.
template <typename Function>
static std::pair<std::string, Function *>
findVersion(const std::vector<std::string> &names, const char *symbol) {
  auto [library, path] = openToolkitLibrary(names);
  return {path, library ? reinterpret_cast<Function *>(dlsym(library, symbol))
                        : nullptr};
}

/// major * 10000 + minor * 100 + patch, as NCCL since 2.9 and CUBLAS_VERSION.
static std::string versionText(size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100,
                     number % 100);
}

Result<FoundLibrary> findNccl() {
  // ncclResult_t is an enum; 0 is success.
  auto [path, version] =
      findVersion<int(int *)>({"libnccl.so.2"}, "ncclGetVersion");
  int number = 0;
  if (!version || version(&number) != 0)
    return fail(ErrorKind::Absent,
                "no libnccl.so.2: install NCCL (package libnccl2)");
  return FoundLibrary{path, versionText(number), number};
}

Result<FoundLibrary> findCublasLt() {
  auto [path, version] = findVersion<size_t()>(
      {"libcublasLt.so.13", "libcublasLt.so.12"}, "cublasLtGetVersion");
  if (!version)
    return fail(ErrorKind::Absent,
                "no libcublasLt.so: install cuBLAS (package libcublas)");
  return FoundLibrary{path, versionText(version())};
}

Result<FoundLibrary> findCupti() {
  auto [path, version] = findVersion<int(uint32_t *)>(
      {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}, "cuptiGetVersion");
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
