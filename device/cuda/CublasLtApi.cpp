// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/CublasLtApi.h"

#include "support/SharedLibrary.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace mgpu::device {

Result<std::shared_ptr<const CublasLtApi>>
openCublasLt(const std::vector<std::string> &names) {
  auto [library, path] = openToolkitLibrary(names);
  if (!library)
    return fail(ErrorKind::Absent,
                "no libcublasLt.so: install cuBLAS (package libcublas)");
  auto api = std::make_shared<CublasLtApi>();
  std::string missing;
  auto take = [&, handle = library](const char *symbol, auto &into) {
    into =
        reinterpret_cast<std::decay_t<decltype(into)>>(dlsym(handle, symbol));
    if (!into && missing.empty())
      missing = symbol;
  };
#define MGPU_CUBLASLT_TAKE(name, ...) take("cublasLt" #name, api->name);
  MGPU_CUBLASLT_FUNCTIONS(MGPU_CUBLASLT_TAKE)
#undef MGPU_CUBLASLT_TAKE
  take("cublasLtGetStatusString", api->GetStatusString);
  take("cublasLtGetVersion", api->GetVersion);
  if (!missing.empty())
    return fail(ErrorKind::Absent,
                fmt::format("{} has no {}: install cuBLAS 12 or later (package "
                            "libcublas)",
                            path, missing));
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
                          isMemory ? "use smaller buffers or fewer devices on "
                                     "the card, or --tensor-cores=none, which "
                                     "does without cuBLASLt"
                                   : "--tensor-cores=none does without "
                                     "cuBLASLt"));
}

} // namespace mgpu::device
