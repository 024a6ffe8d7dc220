// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_CUPTI_CUPTISESSION_H
#define MGPU_DEVICE_CUDA_CUPTI_CUPTISESSION_H

// CUPTI's times of the nodes of graphs. CUPTI has one client in a process
// and calls it back without saying for whom, and CUDA 13.0's confuses a second
// session; so there is one, begun once and never ended.
//
// Once nodes are traced, all later launches of the process bear the cost; in
// CUDA 13.0 ending the trace of kernels may hang. Whole launches are not traced
// (GRAPH_TRACE): CUPTI 13.0 faults in the launch of a graph that was
// instantiated before that trace began.

#include "device/cuda/cupti/CuptiApi.h"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

namespace mgpu::device {

class CuptiSession {
public:
  /// The process's session, begun when first asked for; with another table a
  /// new one, for tests. Absent where CUPTI refuses, with why and what to do;
  /// it is asked once.
  static Result<std::shared_ptr<CuptiSession>>
  open(std::shared_ptr<const CuptiApi> api);

  CuptiSession(const CuptiSession &) = delete;
  CuptiSession &operator=(const CuptiSession &) = delete;

  std::string version() const { return cuptiVersionText(api->version); }
  /// Nanoseconds on the clock of the records; 0 where CUPTI does not say.
  uint64_t now() const;

  /// Records nodes from here on, in graphs instantiated from here on.
  Result<void> traceNodes();

  /// Notes, between the two calls, the nodes that CUDA makes when it
  /// instantiates a graph, by the numbers their records will have.
  void watchClones();
  std::map<uint64_t, CUgraphNode> takeClones();
  /// The number of a node itself; 0 where CUPTI does not say.
  uint64_t numberOf(CUgraphNode node) const;

  struct Record {
    CuptiKind kind = CuptiKind::ConcurrentKernel;
    uint64_t node = 0;
    uint64_t startNs = 0, endNs = 0; ///< both 0: CUPTI had no room for them
    uint32_t device = 0, stream = 0;
  };
  /// The records of work that has ended since the last call, as far as CUPTI
  /// hands them out now: buffers without an unfinished record, or with
  /// `isForced` all. `dropped` counts those that are lost.
  struct Collected {
    std::vector<Record> records;
    size_t dropped = 0;
  };
  Result<Collected> collect(bool isForced = false);

private:
  explicit CuptiSession(std::shared_ptr<const CuptiApi> api)
      : api(std::move(api)) {}
  Result<void> begin();
  Result<void> check(CuptiResult code, const char *call) const;
  void parse(uint8_t *buffer, size_t validSize);
  static void onResource(void *, uint32_t domain, uint32_t id,
                         const void *about);
  static void onRequest(uint8_t **buffer, size_t *size, size_t *mostRecords);
  static void onComplete(CUcontext, uint32_t, uint8_t *buffer, size_t size,
                         size_t validSize);

  std::shared_ptr<const CuptiApi> api;
  CuptiSubscriber *subscriber = nullptr;
  bool tracesNodes = false;
  std::mutex mutex; ///< buffers come from threads of CUPTI's own
  std::atomic<bool> watches = false;
  std::map<uint64_t, CUgraphNode> clones;
  std::vector<Record> records;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_CUPTI_CUPTISESSION_H
