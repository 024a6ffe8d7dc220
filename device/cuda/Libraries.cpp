// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/Libraries.h"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <vector>

namespace mgpu::device {

namespace {

/// Opens the first of `names` that the loader finds, or a toolkit has.
void *openFirst(const std::vector<std::string> &names, std::string &path) {
  std::vector<std::string> folders{""};
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = std::getenv(variable); home && *home)
      folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  for (const std::string &folder : folders)
    for (const char *inside : {"/lib64/", "/extras/CUPTI/lib64/"})
      for (const std::string &name : names) {
        path = folder.empty() ? name : folder + inside + name;
        if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
          return library;
      }
  return nullptr;
}

} // namespace

Result<FoundLibrary> findNccl() {
  FoundLibrary found;
  void *library = openFirst({"libnccl.so.2"}, found.path);
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
  found.version =
      fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
  return found;
}

Result<FoundLibrary> findCupti() {
  FoundLibrary found;
  void *library = openFirst({"libcupti.so.13", "libcupti.so.12", "libcupti.so"},
                            found.path);
  auto version = library ? reinterpret_cast<int (*)(uint32_t *)>(
                               dlsym(library, "cuptiGetVersion"))
                         : nullptr;
  uint32_t number = 0;
  if (!version || version(&number) != 0)
    return fail(ErrorKind::Absent,
                "no libcupti.so: install CUPTI (package cuda-cupti)");
  // As CUPTI_API_VERSION spells it: 130001 of CUDA 13.0.
  found.version = fmt::format("{}.{}", number / 10000, number / 100 % 100);
  return found;
}

} // namespace mgpu::device
