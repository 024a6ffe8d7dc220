// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where CUPTI's headers are installed: CuptiApi.h declares what they declare.
#if __has_include(<cupti.h>)

#include "device/cuda/api/HeaderTwin.h"
#include "device/cuda/cupti/CuptiApi.h"

#include <cupti.h>

namespace mgpu::device {

MGPU_EQUAL(CuptiResult::Success, CUPTI_SUCCESS);
MGPU_EQUAL(CuptiResult::InvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
MGPU_EQUAL(CuptiResult::InvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
MGPU_EQUAL(CuptiResult::MaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
MGPU_EQUAL(CuptiResult::NotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
MGPU_EQUAL(CuptiResult::InvalidKind, CUPTI_ERROR_INVALID_KIND);
MGPU_EQUAL(CuptiResult::InsufficientPrivileges,
           CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
MGPU_EQUAL(CuptiResult::MultipleSubscribers,
           CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
MGPU_EQUAL(CuptiResult::Unknown, CUPTI_ERROR_UNKNOWN);

MGPU_EQUAL(CuptiKind::Memcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
MGPU_EQUAL(CuptiKind::Memset, CUPTI_ACTIVITY_KIND_MEMSET);
MGPU_EQUAL(CuptiKind::ConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
MGPU_EQUAL(CuptiKind::MemcpyPtoP, CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(cuptiResourceDomain == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(cuptiGraphNodeCloned == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

static_assert(offsetof(CUpti_ResourceData, resourceDescriptor) == 16);
static_assert(sizeof(CuptiGraphData) == sizeof(CUpti_GraphData));
MGPU_SAME_OFFSET(CuptiGraphData, node, CUpti_GraphData, node);
MGPU_SAME_OFFSET(CuptiGraphData, originalNode, CUpti_GraphData, originalNode);

#define MGPU_CUPTI_LAYOUT(ours, theirs)                                        \
  static_assert(ours.start == offsetof(theirs, start) &&                       \
                ours.start + 8 == offsetof(theirs, end) &&                     \
                ours.device == offsetof(theirs, deviceId) &&                   \
                ours.stream == offsetof(theirs, streamId) &&                   \
                ours.node == offsetof(theirs, graphNodeId));
#if CUPTI_API_VERSION >= 130000
MGPU_CUPTI_LAYOUT(cuptiKernel, CUpti_ActivityKernel10)
MGPU_CUPTI_LAYOUT(cuptiMemcpy, CUpti_ActivityMemcpy6)
#endif
// These are CUDA 12's; the headers of 13 have them among those deprecated.
MGPU_CUPTI_LAYOUT(cuptiKernel, CUpti_ActivityKernel9)
MGPU_CUPTI_LAYOUT(cuptiMemcpy, CUpti_ActivityMemcpy5)
MGPU_CUPTI_LAYOUT(cuptiMemcpyPtoP, CUpti_ActivityMemcpyPtoP4)
MGPU_CUPTI_LAYOUT(cuptiMemset, CUpti_ActivityMemset4)
#undef MGPU_CUPTI_LAYOUT

MGPU_TWIN(CuptiApi, CUptiResult, CuptiResult);
MGPU_TWIN(CuptiApi, CUpti_ActivityKind, CuptiKind);
MGPU_TWIN(CuptiApi, CUpti_SubscriberHandle, CuptiSubscriber *);
MGPU_TWIN(CuptiApi, CUpti_CallbackDomain, uint32_t);
MGPU_TWIN(CuptiApi, CUpti_CallbackFunc, CuptiCallback);
MGPU_TWIN(CuptiApi, CUpti_Activity, std::byte);

#define MGPU_CUPTI_COMPARE(name, ...)                                          \
  MGPU_SAME_CALL(CuptiApi, name, cupti##name);
MGPU_CUPTI_FUNCTIONS(MGPU_CUPTI_COMPARE)
#undef MGPU_CUPTI_COMPARE

} // namespace mgpu::device

#endif
