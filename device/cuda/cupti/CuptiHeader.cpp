// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where CUPTI's headers are installed: CuptiApi.h declares what they declare.
#if __has_include(<cupti.h>)

#include "device/cuda/cupti/CuptiApi.h"

#include <cupti.h>

/// A namespace of its own, as NcclHeader.cpp has the same names.
namespace mgpu::device::cuptiheader {

template <typename Ours, typename Theirs>
static constexpr bool isEqual(Ours ours, Theirs theirs) {
  return sizeof(Ours) == sizeof(Theirs) && uint32_t(ours) == uint32_t(theirs);
}

static_assert(isEqual(CuptiResult::Success, CUPTI_SUCCESS));
static_assert(isEqual(CuptiResult::InvalidParameter,
                      CUPTI_ERROR_INVALID_PARAMETER));
static_assert(isEqual(CuptiResult::InvalidOperation,
                      CUPTI_ERROR_INVALID_OPERATION));
static_assert(isEqual(CuptiResult::MaxLimitReached,
                      CUPTI_ERROR_MAX_LIMIT_REACHED));
static_assert(isEqual(CuptiResult::NotInitialized,
                      CUPTI_ERROR_NOT_INITIALIZED));
static_assert(isEqual(CuptiResult::InvalidKind, CUPTI_ERROR_INVALID_KIND));
static_assert(isEqual(CuptiResult::InsufficientPrivileges,
                      CUPTI_ERROR_INSUFFICIENT_PRIVILEGES));
static_assert(isEqual(CuptiResult::MultipleSubscribers,
                      CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));
static_assert(isEqual(CuptiResult::Unknown, CUPTI_ERROR_UNKNOWN));

static_assert(isEqual(CuptiKind::Memcpy, CUPTI_ACTIVITY_KIND_MEMCPY));
static_assert(isEqual(CuptiKind::Memset, CUPTI_ACTIVITY_KIND_MEMSET));
static_assert(isEqual(CuptiKind::ConcurrentKernel,
                      CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
static_assert(isEqual(CuptiKind::MemcpyPtoP, CUPTI_ACTIVITY_KIND_MEMCPY2));
static_assert(cuptiResourceDomain == CUPTI_CB_DOMAIN_RESOURCE);
static_assert(cuptiGraphNodeCloned == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);

static_assert(offsetof(CUpti_ResourceData, resourceDescriptor) == 16);
static_assert(sizeof(CuptiGraphData) == sizeof(CUpti_GraphData));
static_assert(offsetof(CuptiGraphData, node) ==
              offsetof(CUpti_GraphData, node));
static_assert(offsetof(CuptiGraphData, originalNode) ==
              offsetof(CUpti_GraphData, originalNode));

#define MGPU_CUPTI_LAYOUT(ours, theirs)                                        \
  static_assert(ours.start == offsetof(theirs, start) &&                       \
                ours.start + 8 == offsetof(theirs, end) &&                     \
                ours.device == offsetof(theirs, deviceId) &&                   \
                ours.stream == offsetof(theirs, streamId));
#if CUPTI_API_VERSION >= 130000
MGPU_CUPTI_LAYOUT(cuptiKernel, CUpti_ActivityKernel10)
static_assert(cuptiKernel.node ==
              offsetof(CUpti_ActivityKernel10, graphNodeId));
MGPU_CUPTI_LAYOUT(cuptiMemcpy, CUpti_ActivityMemcpy6)
static_assert(cuptiMemcpy.node == offsetof(CUpti_ActivityMemcpy6, graphNodeId));
#endif
// These are CUDA 12's; the headers of 13 have them among those deprecated.
MGPU_CUPTI_LAYOUT(cuptiKernel, CUpti_ActivityKernel9)
static_assert(cuptiKernel.node == offsetof(CUpti_ActivityKernel9, graphNodeId));
MGPU_CUPTI_LAYOUT(cuptiMemcpy, CUpti_ActivityMemcpy5)
static_assert(cuptiMemcpy.node == offsetof(CUpti_ActivityMemcpy5, graphNodeId));
MGPU_CUPTI_LAYOUT(cuptiMemcpyPtoP, CUpti_ActivityMemcpyPtoP4)
static_assert(cuptiMemcpyPtoP.node ==
              offsetof(CUpti_ActivityMemcpyPtoP4, graphNodeId));
MGPU_CUPTI_LAYOUT(cuptiMemset, CUpti_ActivityMemset4)
static_assert(cuptiMemset.node == offsetof(CUpti_ActivityMemset4, graphNodeId));
#undef MGPU_CUPTI_LAYOUT

/// Our twin of one of their types in a parameter list.
template <typename T>
struct Twin {
  using Type = T;
};
template <>
struct Twin<CUptiResult> {
  using Type = CuptiResult;
};
template <>
struct Twin<CUpti_ActivityKind> {
  using Type = CuptiKind;
};
template <>
struct Twin<CUpti_SubscriberHandle> {
  using Type = CuptiSubscriber *;
};
template <>
struct Twin<CUpti_SubscriberHandle *> {
  using Type = CuptiSubscriber **;
};
template <>
struct Twin<CUpti_CallbackDomain> {
  using Type = uint32_t;
};
template <>
struct Twin<CUpti_CallbackFunc> {
  using Type = CuptiCallback;
};
template <>
struct Twin<CUpti_Activity **> {
  using Type = std::byte **;
};

template <typename F>
struct TwinOf;
template <typename R, typename... P>
struct TwinOf<R (*)(P...)> {
  using Type = typename Twin<R>::Type (*)(typename Twin<P>::Type...);
};

#define MGPU_CUPTI_COMPARE(name, ...)                                          \
  static_assert(std::is_same_v<decltype(CuptiApi::name),                       \
                               TwinOf<decltype(&cupti##name)>::Type>);
MGPU_CUPTI_FUNCTIONS(MGPU_CUPTI_COMPARE)
#undef MGPU_CUPTI_COMPARE

} // namespace mgpu::device::cuptiheader

#endif
