// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/nccl/NcclApi.h"

#include "support/SharedLibrary.h"

#include <fmt/format.h>

namespace mgpu::device {

std::string ncclVersionText(int version) {
  // Since 2.9: major * 10000 + minor * 100 + patch.
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100,
                     version % 100);
}

Result<std::shared_ptr<const NcclApi>> openNccl(const std::string &name) {
  auto [library, path] = openToolkitLibrary({name});
  if (!library)
    return fail(ErrorKind::Absent,
                fmt::format("no {}: several GPUs need NCCL; install it "
                            "(package libnccl2), or use one GPU as "
                            "cuda:K/N",
                            name));
  auto api = std::make_shared<NcclApi>();
  EntryPoints entries(library);
#define MGPU_NCCL_TAKE(name, ...) entries.take("nccl" #name, api->name);
  MGPU_NCCL_FUNCTIONS(MGPU_NCCL_TAKE)
  const std::string required = entries.missing;
  MGPU_NCCL_OPTIONAL(MGPU_NCCL_TAKE)
  entries.missing = required;
#undef MGPU_NCCL_TAKE
  entries.take("ncclGetErrorString", api->GetErrorString);
  entries.take("ncclGetLastError", api->GetLastError);
  if (entries.missing.empty() &&
      api->GetVersion(&api->version) != NcclResult::Success)
    entries.missing = "version";
  if (!entries.missing.empty())
    return fail(ErrorKind::Absent,
                fmt::format("{} has no {}: install NCCL 2.14 or later (package "
                            "libnccl2)",
                            path, entries.missing));
  return std::shared_ptr<const NcclApi>(std::move(api));
}

namespace {

struct Advice {
  ErrorKind kind;
  const char *text;
};

Advice adviceOn(NcclResult code) {
  switch (code) {
  case NcclResult::UnhandledCudaError:
    return {ErrorKind::Absent, "a call of CUDA's failed inside NCCL: look at "
                               "mgpu-tune doctor, or set NCCL_DEBUG=WARN and "
                               "NCCL_DEBUG_FILE to see which"};
  case NcclResult::SystemError:
    return {ErrorKind::Absent, "a call of the system failed inside NCCL: in a "
                               "container give it shared memory (--shm-size) "
                               "and the loopback interface"};
  case NcclResult::RemoteError:
    return {ErrorKind::Absent, "another rank ended or cannot be reached"};
  case NcclResult::InvalidUsage:
    return {ErrorKind::Absent, "two ranks may be on one GPU: look at "
                               "CUDA_VISIBLE_DEVICES"};
  default:
    return {ErrorKind::Internal, ""};
  }
}

} // namespace

tl::unexpected<Error> ncclError(const NcclApi &api, NcclResult code,
                                std::string_view call, std::string_view where,
                                NcclComm comm) {
  const char *text = api.GetErrorString(code);
  const char *last = api.GetLastError(comm);
  Advice advice = adviceOn(code);
  std::string message = fmt::format("{} {}: {} (NCCL's code {})", call, where,
                                    text ? text : "no words", int(code));
  if (last && *last)
    message += fmt::format("; NCCL says: {}", last);
  if (*advice.text)
    message += fmt::format("; {}", advice.text);
  return fail(advice.kind, std::move(message));
}

} // namespace mgpu::device
