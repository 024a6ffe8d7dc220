// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CusparseApi.h"

#include "support/SharedLibrary.h"

#include <fmt/format.h>

namespace mgpu::device {

Result<std::shared_ptr<const CusparseApi>>
openCusparse(const std::vector<std::string> &names) {
  auto [library, path] = openToolkitLibrary(names);
  if (!library)
    return fail(ErrorKind::Absent,
                "no libcusparse.so: install cuSPARSE (package libcusparse)");
  auto api = std::make_shared<CusparseApi>();
  EntryPoints entries(library);
#define MGPU_CUSPARSE_TAKE(name, ...) entries.take("cusparse" #name, api->name);
  MGPU_CUSPARSE_FUNCTIONS(MGPU_CUSPARSE_TAKE)
#undef MGPU_CUSPARSE_TAKE
  entries.take("cusparseGetErrorString", api->GetErrorString);
  if (!entries.missing.empty())
    return fail(ErrorKind::Absent,
                fmt::format("{} has no {}: install that of CUDA 12 or later "
                            "(package libcusparse)",
                            path, entries.missing));
  return std::shared_ptr<const CusparseApi>(std::move(api));
}

tl::unexpected<Error> cusparseError(const CusparseApi &api,
                                    CusparseStatus status,
                                    std::string_view call,
                                    std::string_view where) {
  const char *words = api.GetErrorString(status);
  const bool isMemory = status == CusparseStatus::AllocFailed ||
                        status == CusparseStatus::InsufficientResources;
  return fail(isMemory || status == CusparseStatus::NotInitialized ||
                      status == CusparseStatus::ArchMismatch
                  ? ErrorKind::Absent
                  : ErrorKind::Invalid,
              fmt::format("{} {}: {} ({}); --variant cusparse=off does without "
                          "cuSPARSE",
                          call, where, words ? words : "no words",
                          uint32_t(status)));
}

} // namespace mgpu::device
