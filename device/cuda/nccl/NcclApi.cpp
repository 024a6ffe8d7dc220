// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/nccl/NcclApi.h"

#include "device/cuda/api/HeaderTwin.h"
#include "device/cuda/api/NcclOptions.h"
#include "support/SharedLibrary.h"

#include <fmt/format.h>

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace mgpu::device {

std::string ncclVersionText(int version) {
  // Since 2.9: major * 10000 + minor * 100 + patch.
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100,
                     version % 100);
}

Result<std::shared_ptr<const NcclApi>> openNccl(const std::string &name) {
  return openToolkitApi<NcclApi>(
      {name},
      fmt::format("no {}: several GPUs need NCCL; install it (package "
                  "libnccl2), or use one GPU as cuda:K/N",
                  name),
      "install NCCL 2.14 or later (package libnccl2)",
      [](EntryPoints &entries, NcclApi &api) {
#define MGPU_NCCL_TAKE(name, ...) entries.take("nccl" #name, api.name);
        MGPU_NCCL_FUNCTIONS(MGPU_NCCL_TAKE)
        const std::string required = entries.missing;
        MGPU_NCCL_OPTIONAL(MGPU_NCCL_TAKE)
        entries.missing = required;
#undef MGPU_NCCL_TAKE
        entries.take("ncclGetErrorString", api.GetErrorString);
        entries.take("ncclGetLastError", api.GetLastError);
        if (entries.missing.empty() &&
            api.GetVersion(&api.version) != NcclResult::Success)
          entries.missing = "version";
      });
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

// Where nccl.h is installed: NcclApi.h declares what it declares.
#if __has_include(<nccl.h>)

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
static_assert(std::is_trivially_copyable_v<NcclId>);
MGPU_EQUAL(NcclResult::Success, ncclSuccess);
MGPU_EQUAL(NcclResult::UnhandledCudaError, ncclUnhandledCudaError);
MGPU_EQUAL(NcclResult::SystemError, ncclSystemError);
MGPU_EQUAL(NcclResult::InternalError, ncclInternalError);
MGPU_EQUAL(NcclResult::InvalidArgument, ncclInvalidArgument);
MGPU_EQUAL(NcclResult::InvalidUsage, ncclInvalidUsage);
MGPU_EQUAL(NcclResult::RemoteError, ncclRemoteError);
MGPU_EQUAL(NcclResult::InProgress, ncclInProgress);
MGPU_EQUAL(NcclReduction::Sum, ncclSum);
MGPU_EQUAL(NcclReduction::Prod, ncclProd);
MGPU_EQUAL(NcclReduction::Max, ncclMax);
MGPU_EQUAL(NcclReduction::Min, ncclMin);
MGPU_EQUAL(NcclType::Int8, ncclInt8);
MGPU_EQUAL(NcclType::Int32, ncclInt32);
MGPU_EQUAL(NcclType::Int64, ncclInt64);
MGPU_EQUAL(NcclType::Float16, ncclFloat16);
MGPU_EQUAL(NcclType::Float32, ncclFloat32);
MGPU_EQUAL(NcclType::Float64, ncclFloat64);
MGPU_EQUAL(NcclType::Bfloat16, ncclBfloat16);
#if NCCL_VERSION_CODE >= 22400
MGPU_EQUAL(NcclType::Float8E4M3, ncclFloat8e4m3);
MGPU_EQUAL(NcclType::Float8E5M2, ncclFloat8e5m2);
#endif

MGPU_SAME_OFFSET(NcclConfig, size, ncclConfig_t, size);
MGPU_SAME_OFFSET(NcclConfig, magic, ncclConfig_t, magic);
MGPU_SAME_OFFSET(NcclConfig, version, ncclConfig_t, version);
MGPU_SAME_OFFSET(NcclConfig, blocking, ncclConfig_t, blocking);
MGPU_SAME_OFFSET(NcclConfig, cgaClusterSize, ncclConfig_t, cgaClusterSize);
#if NCCL_VERSION_CODE >= 22700
MGPU_SAME_OFFSET(NcclConfig, minCtas, ncclConfig_t, minCTAs);
MGPU_SAME_OFFSET(NcclConfig, maxCtas, ncclConfig_t, maxCTAs);
MGPU_SAME_OFFSET(NcclConfig, netName, ncclConfig_t, netName);
MGPU_SAME_OFFSET(NcclConfig, splitShare, ncclConfig_t, splitShare);
MGPU_SAME_OFFSET(NcclConfig, trafficClass, ncclConfig_t, trafficClass);
MGPU_SAME_OFFSET(NcclConfig, commName, ncclConfig_t, commName);
MGPU_SAME_OFFSET(NcclConfig, collnetEnable, ncclConfig_t, collnetEnable);
MGPU_SAME_OFFSET(NcclConfig, ctaPolicy, ncclConfig_t, CTAPolicy);
MGPU_SAME_OFFSET(NcclConfig, shrinkShare, ncclConfig_t, shrinkShare);
MGPU_SAME_OFFSET(NcclConfig, nvlsCtas, ncclConfig_t, nvlsCTAs);
static_assert(int(NcclOptions::Ctas::Efficiency) == NCCL_CTA_POLICY_EFFICIENCY);
static_assert(ncclSymmetric == NCCL_WIN_COLL_SYMMETRIC);
#endif
// The whole of 2.27's: 2.28 goes on where it ends.
#if NCCL_VERSION_CODE >= 22800
static_assert(sizeof(NcclConfig) ==
              offsetof(ncclConfig_t, nChannelsPerNetPeer));
static_assert(int(NcclOptions::Ctas::Zero) == NCCL_CTA_POLICY_ZERO);
#elif NCCL_VERSION_CODE >= 22700
static_assert(sizeof(NcclConfig) == sizeof(ncclConfig_t));
#endif
#ifdef NCCL_WIN_REQUIRED_ALIGNMENT
static_assert(ncclWindowAlignment == NCCL_WIN_REQUIRED_ALIGNMENT);
#endif

MGPU_TWIN(NcclApi, ncclResult_t, NcclResult);
MGPU_TWIN(NcclApi, ncclComm_t, NcclComm);
MGPU_TWIN(NcclApi, ncclUniqueId, NcclId);
MGPU_TWIN(NcclApi, ncclConfig_t, NcclConfig);
MGPU_TWIN(NcclApi, ncclDataType_t, NcclType);
MGPU_TWIN(NcclApi, ncclRedOp_t, NcclReduction);
#if NCCL_VERSION_CODE >= 22700
MGPU_TWIN(NcclApi, ncclWindow_t, NcclWindow);
#endif

#define MGPU_NCCL_COMPARE(name, ...) MGPU_SAME_CALL(NcclApi, name, nccl##name);
MGPU_NCCL_FUNCTIONS(MGPU_NCCL_COMPARE)
#if NCCL_VERSION_CODE >= 22700
MGPU_NCCL_OPTIONAL(MGPU_NCCL_COMPARE)
#endif
#undef MGPU_NCCL_COMPARE

#endif

} // namespace mgpu::device
