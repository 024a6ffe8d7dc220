// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/cupti/CuptiSession.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

/// Whom CUPTI's callbacks are for.
static std::atomic<CuptiSession *> current{nullptr};

Result<std::shared_ptr<CuptiSession>>
CuptiSession::open(std::shared_ptr<const CuptiApi> api) {
  static std::mutex mutex;
  static std::shared_ptr<const CuptiApi> of;
  static Result<std::shared_ptr<CuptiSession>> opened;
  std::lock_guard<std::mutex> lock(mutex);
  if (of == api)
    return opened;
  of = api;
  std::shared_ptr<CuptiSession> session(new CuptiSession(std::move(api)));
  current = session.get();
  if (Result<void> ok = session->begin(); !ok) {
    current = nullptr;
    opened = fail(ok.error());
  } else {
    opened = std::move(session);
  }
  return opened;
}

Result<void> CuptiSession::check(CuptiResult code, const char *call) const {
  const char *advice = "";
  switch (code) {
  case CuptiResult::Success:
    return {};
  case CuptiResult::InsufficientPrivileges:
    advice = "; start it as root, in a container with --cap-add=SYS_ADMIN, or "
             "load the driver with NVreg_RestrictProfilingToAdminUsers=0";
    break;
  case CuptiResult::MultipleSubscribers:
    advice = "; it runs under another profiler or debugger, which has CUPTI "
             "to itself";
    break;
  default:
    break;
  }
  const char *text = nullptr;
  api->GetResultString(code, &text);
  return fail(ErrorKind::Absent,
              fmt::format("{}: {} (CUPTI's code {}){}", call,
                          text ? text : "no words", uint32_t(code), advice));
}

Result<void> CuptiSession::begin() {
  MGPU_TRY(check(api->Subscribe(&subscriber, onResource, nullptr),
                 "cuptiSubscribe"));
  MGPU_TRY(check(api->EnableCallback(1, subscriber, cuptiResourceDomain,
                                     cuptiGraphNodeCloned),
                 "cuptiEnableCallback"));
  return check(api->ActivityRegisterCallbacks(onRequest, onComplete),
               "cuptiActivityRegisterCallbacks");
}

uint64_t CuptiSession::now() const {
  uint64_t ns = 0;
  return api->GetTimestamp(&ns) == CuptiResult::Success ? ns : 0;
}

Result<void> CuptiSession::traceNodes() {
  if (tracesNodes)
    return {};
  for (CuptiKind kind : {CuptiKind::ConcurrentKernel, CuptiKind::Memcpy,
                         CuptiKind::MemcpyPtoP, CuptiKind::Memset})
    MGPU_TRY(check(api->ActivityEnable(kind),
                   kind == CuptiKind::ConcurrentKernel
                       ? "cuptiActivityEnable of kernels"
                       : "cuptiActivityEnable of copies"));
  tracesNodes = true;
  return {};
}

void CuptiSession::watchClones() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    clones.clear();
  }
  watches = true;
}

std::map<uint64_t, CUgraphNode> CuptiSession::takeClones() {
  watches = false;
  std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(clones, {});
}

uint64_t CuptiSession::numberOf(CUgraphNode node) const {
  uint64_t id = 0;
  return api->GetGraphNodeId(node, &id) == CuptiResult::Success ? id : 0;
}

Result<CuptiSession::Collected> CuptiSession::collect(bool isForced) {
  MGPU_TRY(check(api->ActivityFlushAll(isForced ? cuptiFlushForced : 0),
                 "cuptiActivityFlushAll"));
  Collected out;
  MGPU_TRY(check(api->ActivityGetNumDroppedRecords(nullptr, 0, &out.dropped),
                 "cuptiActivityGetNumDroppedRecords"));
  std::lock_guard<std::mutex> lock(mutex);
  out.records = std::exchange(records, {});
  return out;
}

void CuptiSession::onResource(void *, uint32_t domain, uint32_t id,
                              const void *about) {
  CuptiSession *session = current;
  if (!session || domain != cuptiResourceDomain || id != cuptiGraphNodeCloned)
    return;
  // CUpti_ResourceData: the graph's data is its resourceDescriptor.
  struct Resource {
    CUcontext context;
    void *handle;
    const CuptiGraphData *graph;
  };
  const CuptiGraphData *data = static_cast<const Resource *>(about)->graph;
  if (!data)
    return;
  if (!session->watches)
    return;
  // CUPTI is called without our lock: it may hold one of its own around this
  // callback and around the one that another thread is in.
  const uint64_t number = session->numberOf(data->node);
  std::lock_guard<std::mutex> lock(session->mutex);
  if (number != 0)
    session->clones[number] = data->originalNode;
}

void CuptiSession::onRequest(uint8_t **buffer, size_t *size,
                             size_t *mostRecords) {
  // Some ten thousand records, which is some replays of the largest plans.
  constexpr size_t bytes = size_t(4) << 20, alignment = 8;
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(alignment, bytes));
  *size = *buffer ? bytes : 0;
  *mostRecords = 0; // as many as there is room for
}

void CuptiSession::onComplete(CUcontext, uint32_t, uint8_t *buffer, size_t,
                              size_t validSize) {
  if (CuptiSession *session = current)
    session->parse(buffer, validSize);
  std::free(buffer);
}

void CuptiSession::parse(uint8_t *buffer, size_t validSize) {
  auto read = [](const std::byte *record, size_t offset, auto &into) {
    std::memcpy(&into, record + offset, sizeof into);
  };
  std::byte *record = nullptr;
  std::vector<Record> found; // the lock is taken for them alone: onResource()
  while (validSize > 0 &&
         api->ActivityGetNextRecord(buffer, validSize, &record) ==
             CuptiResult::Success) {
    Record out;
    read(record, 0, out.kind);
    const CuptiLayout *layout = nullptr;
    switch (out.kind) {
    case CuptiKind::ConcurrentKernel:
      layout = &cuptiKernel;
      break;
    case CuptiKind::Memcpy:
      layout = &cuptiMemcpy;
      break;
    case CuptiKind::MemcpyPtoP:
      layout = &cuptiMemcpyPtoP;
      break;
    case CuptiKind::Memset:
      layout = &cuptiMemset;
      break;
    }
    if (!layout) // nobody asked for this kind
      continue;
    read(record, layout->start, out.startNs);
    read(record, layout->start + 8, out.endNs);
    read(record, layout->device, out.device);
    read(record, layout->stream, out.stream);
    read(record, layout->node, out.node);
    found.push_back(out);
  }
  std::lock_guard<std::mutex> lock(mutex);
  records.insert(records.end(), found.begin(), found.end());
}

} // namespace mgpu::device
