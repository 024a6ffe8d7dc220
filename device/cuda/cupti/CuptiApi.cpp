// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/cupti/CuptiApi.h"

#include "device/cuda/api/HeaderTwin.h"
#include "support/SharedLibrary.h"

#include <fmt/format.h>

#if __has_include(<cupti.h>)
#include <cupti.h>
#endif

namespace mgpu::device {

std::string cuptiVersionText(uint32_t version) {
  // cupti_version.h has the list; from 13.0 on the number says it itself.
  if (version >= 130000)
    return fmt::format("{}.{}", version / 10000, version / 100 % 100);
  switch (version) {
  case 19:
    return "12.0";
  case 20:
    return "12.2";
  case 21:
    return "12.3";
  case 22:
    return "12.4";
  case 23:
    return "12.5";
  case 24:
    return "12.6";
  case 26:
    return "12.8";
  case 27:
  case 28:
    return "12.9";
  default:
    return fmt::format("of API version {}", version);
  }
}

Result<void> checkCuptiVersion(uint32_t version) {
  constexpr uint32_t first = 19, firstUnknown = 140000;
  if (version >= first && version < firstUnknown)
    return {};
  return fail(ErrorKind::Absent,
              fmt::format("libcupti is {}, and only those of CUDA 12 and 13 "
                          "are known: install that of CUDA 13",
                          cuptiVersionText(version)));
}

static Result<std::shared_ptr<const CuptiApi>>
openLibrary(const std::string &name) {
  const std::vector<std::string> names =
      name.empty() ? std::vector<std::string>{"libcupti.so.13",
                                              "libcupti.so.12", "libcupti.so"}
                   : std::vector{name};
  auto api = openToolkitApi<CuptiApi>(
      names, "no libcupti.so: install CUPTI (package cuda-cupti)",
      "install CUPTI of CUDA 13 (package cuda-cupti)",
      [](EntryPoints &entries, CuptiApi &api) {
#define MGPU_CUPTI_TAKE(name, ...) entries.take("cupti" #name, api.name);
        MGPU_CUPTI_FUNCTIONS(MGPU_CUPTI_TAKE)
#undef MGPU_CUPTI_TAKE
        if (entries.missing.empty() &&
            api.GetVersion(&api.version) != CuptiResult::Success)
          entries.missing = "version";
      });
  if (api)
    MGPU_TRY(checkCuptiVersion((*api)->version));
  return api;
}

Result<std::shared_ptr<const CuptiApi>> openCupti(const std::string &name) {
  if (!name.empty())
    return openLibrary(name);
  // Another table would be another library to CuptiSession, which would
  // subscribe once more: CUPTI has one subscriber.
  static const Result<std::shared_ptr<const CuptiApi>> opened = openLibrary("");
  return opened;
}

// Where CUPTI's headers are installed: CuptiApi.h declares what they declare.
#if __has_include(<cupti.h>)

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

#endif

} // namespace mgpu::device
