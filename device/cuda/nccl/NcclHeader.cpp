// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where nccl.h is installed: NcclApi.h declares what it declares.
#if __has_include(<nccl.h>)

#include "device/cuda/api/HeaderTwin.h"
#include "device/cuda/api/NcclOptions.h"
#include "device/cuda/nccl/NcclApi.h"

#include <nccl.h>

namespace mgpu::device {

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

} // namespace mgpu::device

#endif
