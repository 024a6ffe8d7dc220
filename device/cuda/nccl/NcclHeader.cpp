// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where nccl.h is installed: NcclApi.h declares what it declares.
#if __has_include(<nccl.h>)

#include "device/cuda/api/NcclOptions.h"
#include "device/cuda/nccl/NcclApi.h"

#include <nccl.h>

#include <type_traits>

namespace mgpu::device {

template <typename Ours, typename Theirs>
static constexpr bool isEqual(Ours ours, Theirs theirs) {
  return sizeof(Ours) == sizeof(Theirs) && uint32_t(ours) == uint32_t(theirs);
}

static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));
static_assert(std::is_trivially_copyable_v<NcclId>);
static_assert(isEqual(NcclResult::Success, ncclSuccess));
static_assert(isEqual(NcclResult::UnhandledCudaError, ncclUnhandledCudaError));
static_assert(isEqual(NcclResult::SystemError, ncclSystemError));
static_assert(isEqual(NcclResult::InternalError, ncclInternalError));
static_assert(isEqual(NcclResult::InvalidArgument, ncclInvalidArgument));
static_assert(isEqual(NcclResult::InvalidUsage, ncclInvalidUsage));
static_assert(isEqual(NcclResult::RemoteError, ncclRemoteError));
static_assert(isEqual(NcclResult::InProgress, ncclInProgress));
static_assert(isEqual(NcclReduction::Sum, ncclSum));
static_assert(isEqual(NcclReduction::Prod, ncclProd));
static_assert(isEqual(NcclReduction::Max, ncclMax));
static_assert(isEqual(NcclReduction::Min, ncclMin));
static_assert(isEqual(NcclType::Int8, ncclInt8));
static_assert(isEqual(NcclType::Int32, ncclInt32));
static_assert(isEqual(NcclType::Int64, ncclInt64));
static_assert(isEqual(NcclType::Float16, ncclFloat16));
static_assert(isEqual(NcclType::Float32, ncclFloat32));
static_assert(isEqual(NcclType::Float64, ncclFloat64));
static_assert(isEqual(NcclType::Bfloat16, ncclBfloat16));
#if NCCL_VERSION_CODE >= 22400
static_assert(isEqual(NcclType::Float8E4M3, ncclFloat8e4m3));
static_assert(isEqual(NcclType::Float8E5M2, ncclFloat8e5m2));
#endif

static_assert(offsetof(NcclConfig, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(NcclConfig, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(NcclConfig, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(NcclConfig, blocking) ==
              offsetof(ncclConfig_t, blocking));
static_assert(offsetof(NcclConfig, cgaClusterSize) ==
              offsetof(ncclConfig_t, cgaClusterSize));
#if NCCL_VERSION_CODE >= 22700
static_assert(offsetof(NcclConfig, minCtas) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(NcclConfig, maxCtas) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(NcclConfig, netName) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(NcclConfig, splitShare) ==
              offsetof(ncclConfig_t, splitShare));
static_assert(offsetof(NcclConfig, trafficClass) ==
              offsetof(ncclConfig_t, trafficClass));
static_assert(offsetof(NcclConfig, commName) ==
              offsetof(ncclConfig_t, commName));
static_assert(offsetof(NcclConfig, collnetEnable) ==
              offsetof(ncclConfig_t, collnetEnable));
static_assert(offsetof(NcclConfig, ctaPolicy) ==
              offsetof(ncclConfig_t, CTAPolicy));
static_assert(offsetof(NcclConfig, shrinkShare) ==
              offsetof(ncclConfig_t, shrinkShare));
static_assert(offsetof(NcclConfig, nvlsCtas) ==
              offsetof(ncclConfig_t, nvlsCTAs));
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

/// Our twin of one of their types in a parameter list.
template <typename T>
struct Twin {
  using Type = T;
};
template <>
struct Twin<ncclResult_t> {
  using Type = NcclResult;
};
template <>
struct Twin<ncclResult_t *> {
  using Type = NcclResult *;
};
template <>
struct Twin<ncclComm_t> {
  using Type = NcclComm;
};
template <>
struct Twin<ncclComm_t *> {
  using Type = NcclComm *;
};
template <>
struct Twin<ncclUniqueId> {
  using Type = NcclId;
};
template <>
struct Twin<ncclUniqueId *> {
  using Type = NcclId *;
};
template <>
struct Twin<ncclConfig_t *> {
  using Type = NcclConfig *;
};
template <>
struct Twin<ncclDataType_t> {
  using Type = NcclType;
};
template <>
struct Twin<ncclRedOp_t> {
  using Type = NcclReduction;
};

#if NCCL_VERSION_CODE >= 22700
template <>
struct Twin<ncclWindow_t> {
  using Type = NcclWindow;
};
template <>
struct Twin<ncclWindow_t *> {
  using Type = NcclWindow *;
};
#endif

template <typename F>
struct TwinOf;
template <typename R, typename... P>
struct TwinOf<R (*)(P...)> {
  using Type = typename Twin<R>::Type (*)(typename Twin<P>::Type...);
};

#define MGPU_NCCL_COMPARE(name, ...)                                           \
  static_assert(std::is_same_v<decltype(NcclApi::name),                        \
                               TwinOf<decltype(&nccl##name)>::Type>);
MGPU_NCCL_FUNCTIONS(MGPU_NCCL_COMPARE)
#if NCCL_VERSION_CODE >= 22700
MGPU_NCCL_OPTIONAL(MGPU_NCCL_COMPARE)
#endif
#undef MGPU_NCCL_COMPARE

} // namespace mgpu::device

#endif
