// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeCupti.h"

#include <cstring>
#include <future>

namespace mgpu::fake {

using device::CuptiKind;
using device::CuptiLayout;
using device::CuptiResult;

static std::unique_ptr<FakeCupti> theCupti;

namespace {

/// Bytes of a record, those of CUDA 13.0's structs.
size_t sizeOf(CuptiKind kind) {
  switch (kind) {
  case CuptiKind::ConcurrentKernel:
    return 216;
  case CuptiKind::Memcpy:
  case CuptiKind::MemcpyPtoP:
    return 96;
  case CuptiKind::Memset:
    return 88;
  default:
    return 56;
  }
}

const CuptiLayout &layoutOf(CuptiKind kind) {
  switch (kind) {
  case CuptiKind::ConcurrentKernel:
    return device::cuptiKernel;
  case CuptiKind::Memcpy:
    return device::cuptiMemcpy;
  case CuptiKind::MemcpyPtoP:
    return device::cuptiMemcpyPtoP;
  default:
    return device::cuptiMemset;
  }
}

/// 0 of nodes that leave none: empty ones, and in 13.0 events, which have no
/// number of a node.
CuptiKind kindOf(const Node &node) {
  if (node.start) // a library's call is a kernel
    return CuptiKind::ConcurrentKernel;
  switch (node.params.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return CuptiKind::ConcurrentKernel;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return CuptiKind::Memcpy;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return CuptiKind::Memset;
  default:
    return CuptiKind(0);
  }
}

uint64_t toNs(double ms) { return uint64_t(1e9 + ms * 1e6); }

#define MGPU_FAKE_CUPTI(name)                                                  \
  FakeCupti &fake = FakeCupti::instance();                                     \
  if (CuptiResult code = fake.enter(name); code != CuptiResult::Success)       \
    return code;

CuptiResult getVersion(uint32_t *version) {
  MGPU_FAKE_CUPTI("GetVersion");
  *version = 130001;
  return CuptiResult::Success;
}

CuptiResult resultString(CuptiResult result, const char **text) {
  *text = result == CuptiResult::InsufficientPrivileges
              ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
              : "CUPTI_ERROR_OTHER";
  return CuptiResult::Success;
}

CuptiResult timestamp(uint64_t *ns) {
  MGPU_FAKE_CUPTI("GetTimestamp");
  *ns = toNs(FakeCuda::instance().clockMs);
  return CuptiResult::Success;
}

CuptiResult subscribe(device::CuptiSubscriber **subscriber,
                      device::CuptiCallback callback, void *data) {
  MGPU_FAKE_CUPTI("Subscribe");
  // cupti_callbacks.h 714: there is one subscriber at a time.
  if (fake.isSubscribed)
    return CuptiResult::MultipleSubscribers;
  fake.isSubscribed = true;
  fake.callback = callback;
  fake.callbackData = data;
  *subscriber = reinterpret_cast<device::CuptiSubscriber *>(&fake);
  return CuptiResult::Success;
}

CuptiResult enableCallback(uint32_t enable, device::CuptiSubscriber *subscriber,
                           uint32_t domain, uint32_t id) {
  MGPU_FAKE_CUPTI("EnableCallback");
  // 870: a subscriber that is one, and a callback there is.
  if (!fake.isSubscribed ||
      subscriber != reinterpret_cast<device::CuptiSubscriber *>(&fake) ||
      domain != device::cuptiResourceDomain)
    return CuptiResult::InvalidParameter;
  if (id == device::cuptiGraphNodeCloned)
    fake.tellsClones = enable;
  return CuptiResult::Success;
}

CuptiResult graphNodeId(CUgraphNode node, uint64_t *id) {
  MGPU_FAKE_CUPTI("GetGraphNodeId");
  if (!node) // cupti_activity.h 7378
    return CuptiResult::InvalidParameter;
  fake.meanwhile([&fake] {
    uint8_t *buffer = nullptr;
    size_t size = 0, most = 0;
    fake.requested(&buffer, &size, &most);
    fake.completed(nullptr, 0, buffer, size, 0);
  });
  *id = reinterpret_cast<Node *>(node)->id;
  return CuptiResult::Success;
}

CuptiResult registerCallbacks(device::CuptiBufferRequested requested,
                              device::CuptiBufferCompleted completed) {
  MGPU_FAKE_CUPTI("ActivityRegisterCallbacks");
  if (!requested || !completed) // 7664
    return CuptiResult::InvalidParameter;
  fake.requested = requested;
  fake.completed = completed;
  return CuptiResult::Success;
}

CuptiResult enable(CuptiKind kind) {
  MGPU_FAKE_CUPTI("ActivityEnable");
  // Seen on an H100 with CUPTI 13.0: with GRAPH_TRACE on, the launch of a graph
  // that was instantiated before faults within CUPTI.
  if (uint32_t(kind) == 51)
    fake.violations.push_back("whole graphs are traced");
  // 208: KERNEL makes kernels run one after the other.
  if (uint32_t(kind) == 3)
    fake.violations.push_back("kernels are made to run one by one");
  fake.enabled.insert(kind);
  fake.wereEnabled.insert(kind);
  return CuptiResult::Success;
}

CuptiResult disable(CuptiKind kind) {
  MGPU_FAKE_CUPTI("ActivityDisable");
  // Release notes of CUDA 13.0 update 1: ending this one could hang.
  if (kind == CuptiKind::ConcurrentKernel)
    fake.violations.push_back("the trace of kernels is ended, which may hang");
  fake.enabled.erase(kind);
  return CuptiResult::Success;
}

CuptiResult flushAll(uint32_t flag) {
  MGPU_FAKE_CUPTI("ActivityFlushAll");
  if (!fake.completed) // 7742: only after the callbacks were registered
    return CuptiResult::InvalidOperation;
  // 7722: without force, buffers with unfinished records stay; 7715: and those
  // of work that the client has not synchronized with may be unfinished.
  const bool isForced = flag & device::cuptiFlushForced;
  if (fake.late > 0) {
    --fake.late;
    return CuptiResult::Success;
  }
  if (!isForced && (FakeCuda::instance().unsynchronized || fake.needsForce))
    return CuptiResult::Success;
  fake.flush();
  return CuptiResult::Success;
}

CuptiResult nextRecord(uint8_t *buffer, size_t validSize, std::byte **record) {
  MGPU_FAKE_CUPTI("ActivityGetNextRecord");
  if (!buffer) // 7585
    return CuptiResult::InvalidParameter;
  fake.meanwhile([&fake] {
    device::CuptiGraphData graph{};
    struct {
      CUcontext context;
      void *handle;
      void *descriptor;
    } resource{nullptr, nullptr, &graph};
    fake.callback(fake.callbackData, device::cuptiResourceDomain,
                  device::cuptiGraphNodeCloned, &resource);
  });
  auto *first = reinterpret_cast<std::byte *>(buffer);
  std::byte *next = first;
  if (*record) { // 7573: the one before, or null for the first
    CuptiKind kind{};
    std::memcpy(&kind, *record, sizeof kind);
    next = *record + sizeOf(kind);
  }
  if (next >= first + validSize)
    return CuptiResult::MaxLimitReached;
  *record = next;
  return CuptiResult::Success;
}

CuptiResult numDropped(CUcontext, uint32_t, size_t *dropped) {
  MGPU_FAKE_CUPTI("ActivityGetNumDroppedRecords");
  *dropped = std::exchange(fake.dropped, 0); // 7533: reset when asked
  return CuptiResult::Success;
}

} // namespace

FakeCupti &FakeCupti::instance() {
  if (!theCupti)
    reset();
  return *theCupti;
}

FakeCupti &FakeCupti::reset() {
  theCupti = std::make_unique<FakeCupti>();
  FakeCupti &cupti = *theCupti;
  FakeCuda &cuda = FakeCuda::instance();
  cuda.onClone = [&cupti](Node &clone, const Node &original) {
    cupti.originals[clone.id] = original.id;
    if (!cupti.tellsClones)
      return;
    device::CuptiGraphData graph{};
    graph.node = reinterpret_cast<CUgraphNode>(&clone);
    graph.originalNode =
        reinterpret_cast<CUgraphNode>(const_cast<Node *>(&original));
    // CUpti_ResourceData: the graph's data are its descriptor.
    struct {
      CUcontext context;
      void *handle;
      void *descriptor;
    } resource{nullptr, nullptr, &graph};
    cupti.callback(cupti.callbackData, device::cuptiResourceDomain,
                   device::cuptiGraphNodeCloned, &resource);
  };
  cuda.onNode = [&cupti](const Node &node, double start, double end) {
    CuptiKind kind = kindOf(node);
    if (!cupti.enabled.count(kind) || cupti.unrecorded.count(node.params.type))
      return;
    const uint64_t number =
        cupti.namesOriginals ? cupti.originals[node.id] : node.id;
    cupti.put(kind, number, start, end);
    if (cupti.twice > 0) {
      --cupti.twice;
      cupti.put(kind, number, start, end);
      cupti.flush();
      cupti.late = 1;
    }
  };
  return cupti;
}

void FakeCupti::meanwhile(std::function<void()> callBack) {
  if (!hasWorker)
    return;
  hasWorker = false; // once is enough, and it may get here itself
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  threads.emplace_back(
      [callBack = std::move(callBack), promise = std::move(promise)]() mutable {
        callBack();
        promise.set_value();
      });
  if (done.wait_for(std::chrono::seconds(2)) != std::future_status::ready)
    violations.push_back("CUPTI is called with a lock that its callbacks want");
}

FakeCupti::~FakeCupti() {
  for (std::thread &thread : threads)
    thread.join();
  std::free(buffer);
}

CuptiResult FakeCupti::enter(const char *name) {
  auto at = refused.find(name);
  return at == refused.end() ? CuptiResult::Success : at->second;
}

void FakeCupti::put(CuptiKind kind, uint64_t node, double startMs,
                    double endMs) {
  if (drops > 0) {
    --drops;
    ++dropped;
    return;
  }
  const size_t bytes = sizeOf(kind);
  if (buffer && used + bytes > size)
    flush();
  if (!buffer) {
    size_t most = 0;
    requested(&buffer, &size, &most);
    used = 0;
    if (!buffer) { // 7597: a buffer may be declined, and records are lost
      ++dropped;
      return;
    }
    ++buffersOut;
    if (uintptr_t(buffer) % 8)
      violations.push_back("a buffer that is not aligned to 8 bytes");
    std::memset(buffer, 0xee, size); // what is not written means nothing
  }
  const CuptiLayout &layout = layoutOf(kind);
  uint8_t *record = buffer + used;
  auto write = [&](size_t offset, auto value) {
    std::memcpy(record + offset, &value, sizeof value);
  };
  write(0, kind);
  write(layout.start, knowsNoTimes ? uint64_t(0) : toNs(startMs));
  write(layout.start + 8, knowsNoTimes ? uint64_t(0) : toNs(endMs));
  write(layout.device, uint32_t(0));
  write(layout.stream, uint32_t(13));
  write(layout.node, node);
  used += bytes;
}

void FakeCupti::flush() {
  if (!buffer)
    return;
  --buffersOut;
  completed(nullptr, 0, std::exchange(buffer, nullptr), size, used);
}

std::shared_ptr<const device::CuptiApi> FakeCupti::api() {
  auto api = std::make_shared<device::CuptiApi>();
  api->GetVersion = getVersion;
  api->GetResultString = resultString;
  api->GetTimestamp = timestamp;
  api->Subscribe = subscribe;
  api->EnableCallback = enableCallback;
  api->GetGraphNodeId = graphNodeId;
  api->ActivityRegisterCallbacks = registerCallbacks;
  api->ActivityEnable = enable;
  api->ActivityDisable = disable;
  api->ActivityFlushAll = flushAll;
  api->ActivityGetNextRecord = nextRecord;
  api->ActivityGetNumDroppedRecords = numDropped;
  api->version = 130001;
  return api;
}

} // namespace mgpu::fake
