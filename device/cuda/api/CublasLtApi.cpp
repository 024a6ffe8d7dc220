// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CublasLtApi.h"

#include "support/SharedLibrary.h"

#include <fmt/format.h>

namespace mgpu::device {

Result<std::shared_ptr<const CublasLtApi>>
openCublasLt(const std::vector<std::string> &names) {
  auto [library, path] = openToolkitLibrary(names);
  if (!library)
    return fail(ErrorKind::Absent,
                "no libcublasLt.so: install cuBLAS (package libcublas)");
  auto api = std::make_shared<CublasLtApi>();
  EntryPoints entries(library);
#define MGPU_CUBLASLT_TAKE(name, ...) entries.take("cublasLt" #name, api->name);
  MGPU_CUBLASLT_FUNCTIONS(MGPU_CUBLASLT_TAKE)
#undef MGPU_CUBLASLT_TAKE
  entries.take("cublasLtGetStatusString", api->GetStatusString);
  entries.take("cublasLtGetVersion", api->GetVersion);
  if (!entries.missing.empty())
    return fail(ErrorKind::Absent,
                fmt::format("{} has no {}: install cuBLAS 12 or later (package "
                            "libcublas)",
                            path, entries.missing));
  return std::shared_ptr<const CublasLtApi>(std::move(api));
}

tl::unexpected<Error> cublasLtError(const CublasLtApi &api, CublasStatus status,
                                    std::string_view call,
                                    std::string_view where) {
  const char *words = api.GetStatusString(status);
  const bool isMemory = status == CublasStatus::AllocFailed;
  return fail(isMemory || status == CublasStatus::NotInitialized ||
                      status == CublasStatus::ArchMismatch
                  ? ErrorKind::Absent
                  : ErrorKind::Invalid,
              fmt::format("{} {}: {} ({}); {}", call, where,
                          words ? words : "no words", uint32_t(status),
                          isMemory
                              ? "use smaller buffers or fewer devices on "
                                "the GPU, or --variant cublaslt=off, which "
                                "does without cuBLASLt"
                              : "--variant cublaslt=off does without "
                                "cuBLASLt"));
}

} // namespace mgpu::device
