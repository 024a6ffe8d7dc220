// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libcupti.so.13 for programs that open CUPTI by name: it calls the table the
// program gave it (FakeLibraries.h).
#include "FakeLibraries.h"

using namespace mgpu::device;

// An entry point of a toolkit's library.
#define MGPU_ENTRY __attribute__((visibility("default"))) CuptiResult

extern "C" {

__attribute__((visibility("default"))) const CuptiApi *mgpuFakeCupti = nullptr;

MGPU_ENTRY cuptiGetVersion(uint32_t *version) {
  return mgpuFakeCupti->GetVersion(version);
}
MGPU_ENTRY cuptiGetResultString(CuptiResult result, const char **text) {
  return mgpuFakeCupti->GetResultString(result, text);
}
MGPU_ENTRY cuptiGetTimestamp(uint64_t *ns) {
  return mgpuFakeCupti->GetTimestamp(ns);
}
MGPU_ENTRY cuptiSubscribe(CuptiSubscriber **subscriber, CuptiCallback callback,
                          void *data) {
  return mgpuFakeCupti->Subscribe(subscriber, callback, data);
}
MGPU_ENTRY cuptiEnableCallback(uint32_t enable, CuptiSubscriber *subscriber,
                               uint32_t domain, uint32_t id) {
  return mgpuFakeCupti->EnableCallback(enable, subscriber, domain, id);
}
MGPU_ENTRY cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id) {
  return mgpuFakeCupti->GetGraphNodeId(node, id);
}
MGPU_ENTRY cuptiActivityRegisterCallbacks(CuptiBufferRequested requested,
                                          CuptiBufferCompleted completed) {
  return mgpuFakeCupti->ActivityRegisterCallbacks(requested, completed);
}
MGPU_ENTRY cuptiActivityEnable(CuptiKind kind) {
  return mgpuFakeCupti->ActivityEnable(kind);
}
MGPU_ENTRY cuptiActivityDisable(CuptiKind kind) {
  return mgpuFakeCupti->ActivityDisable(kind);
}
MGPU_ENTRY cuptiActivityFlushAll(uint32_t flag) {
  return mgpuFakeCupti->ActivityFlushAll(flag);
}
MGPU_ENTRY cuptiActivityGetNextRecord(uint8_t *buffer, size_t validSize,
                                      std::byte **record) {
  return mgpuFakeCupti->ActivityGetNextRecord(buffer, validSize, record);
}
MGPU_ENTRY cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                             size_t *dropped) {
  return mgpuFakeCupti->ActivityGetNumDroppedRecords(context, stream, dropped);
}
}
