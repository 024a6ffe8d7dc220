// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_CUPTI_CUPTIAPI_H
#define MGPU_DEVICE_CUDA_CUPTI_CUPTIAPI_H

// The entry points of CUPTI that time the nodes of graphs, as a table: taken
// from libcupti at run time, replaced by a double in tests. Declared here,
// because a machine with CUDA's headers need not have CUPTI's; CuptiApi.cpp
// compares the two where it has.

#include "support/Result.h"

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace mgpu::device {

/// The results that are told apart (cupti_result.h).
enum class CuptiResult : uint32_t {
  Success = 0,
  InvalidParameter = 1,
  InvalidOperation = 7,
  MaxLimitReached = 12,
  NotInitialized = 15,
  InvalidKind = 21,
  InsufficientPrivileges = 35,
  MultipleSubscribers = 39,
  Unknown = 999,
};

/// Kinds of records (cupti_activity.h). KERNEL (3) is none of them: it makes
/// kernels run one after the other.
enum class CuptiKind : uint32_t {
  Memcpy = 1,
  Memset = 2,
  ConcurrentKernel = 10,
  MemcpyPtoP = 22,
};

inline constexpr uint32_t cuptiResourceDomain = 3;
inline constexpr uint32_t cuptiGraphNodeCloned = 20; ///< of that domain
inline constexpr uint32_t cuptiFlushForced = 1;

/// Where a record has what is read of it, in bytes; the end follows the start.
/// It is unchanged since CUPTI 12.0: records grow at their end.
struct CuptiLayout {
  size_t start, device, stream, node;
};
inline constexpr CuptiLayout cuptiKernel{16, 40, 48, 144},
    cuptiMemcpy{16, 32, 40, 64}, cuptiMemcpyPtoP{16, 32, 40, 72},
    cuptiMemset{16, 32, 40, 64};

/// CUpti_GraphData.
struct CuptiGraphData {
  CUgraph graph, originalGraph;
  CUgraphNode node, originalNode;
  CUgraphNodeType nodeType;
  CUgraphNode dependency;
  CUgraphExec graphExec;
};

struct CuptiSubscriber; ///< CUpti_Subscriber_st
using CuptiCallback = void (*)(void *data, uint32_t domain, uint32_t id,
                               const void *about);
using CuptiBufferRequested = void (*)(uint8_t **buffer, size_t *size,
                                      size_t *mostRecords);
using CuptiBufferCompleted = void (*)(CUcontext context, uint32_t stream,
                                      uint8_t *buffer, size_t size,
                                      size_t validSize);

/// X(name without "cupti", parameters...); all return CuptiResult.
#define MGPU_CUPTI_FUNCTIONS(X)                                                \
  X(GetVersion, uint32_t *version)                                             \
  X(GetResultString, CuptiResult result, const char **text)                    \
  X(GetTimestamp, uint64_t *ns)                                                \
  X(Subscribe, CuptiSubscriber **subscriber, CuptiCallback callback,           \
    void *data)                                                                \
  X(EnableCallback, uint32_t enable, CuptiSubscriber *subscriber,              \
    uint32_t domain, uint32_t id)                                              \
  X(GetGraphNodeId, CUgraphNode node, uint64_t *id)                            \
  X(ActivityRegisterCallbacks, CuptiBufferRequested requested,                 \
    CuptiBufferCompleted completed)                                            \
  X(ActivityEnable, CuptiKind kind)                                            \
  X(ActivityDisable, CuptiKind kind)                                           \
  X(ActivityFlushAll, uint32_t flag)                                           \
  X(ActivityGetNextRecord, uint8_t *buffer, size_t validSize,                  \
    std::byte **record)                                                        \
  X(ActivityGetNumDroppedRecords, CUcontext context, uint32_t stream,          \
    size_t *dropped)

struct CuptiApi {
#define MGPU_CUPTI_MEMBER(name, ...) CuptiResult (*name)(__VA_ARGS__) = nullptr;
  MGPU_CUPTI_FUNCTIONS(MGPU_CUPTI_MEMBER)
#undef MGPU_CUPTI_MEMBER
  uint32_t version = 0; ///< as cuptiGetVersion() has it
};

/// "13.0" of 130001, "12.4" of 22.
std::string cuptiVersionText(uint32_t version);

/// Absent, with what to install, for a version whose records are not those that
/// were looked at: those of CUDA 12 and 13.
Result<void> checkCuptiVersion(uint32_t version);

/// Opens CUPTI, which is never closed again; the same table each time. Absent
/// where there is none, or one of another version. `name` is for tests.
Result<std::shared_ptr<const CuptiApi>> openCupti(const std::string &name = "");

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_CUPTI_CUPTIAPI_H
