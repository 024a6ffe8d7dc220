// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_NCCL_COMMUNICATORS_H
#define MGPU_DEVICE_CUDA_NCCL_COMMUNICATORS_H

// The NCCL communicators of one rank, one GPU. All of them are non-blocking:
// a call that waits for other ranks is waited for here, where a failure of
// theirs or a deadline ends the wait.

#include "device/api/GraphDriver.h"
#include "device/cuda/api/NcclOptions.h"
#include "device/cuda/nccl/NcclApi.h"

#include <chrono>
#include <deque>
#include <functional>

namespace mgpu::device {

// The calls that one rank makes of NCCL.
//   all_reduce, reduce_scatter   the calls of these names, for the types and
//                                reductions NCCL has
//   all_gather, broadcast        the calls of these names, on bytes
//   all_to_all                   one group of a send and a recv for each rank
//   send_recv                    a send on one rank, a recv on the other
//   permute                      one group of at most a send and a recv; ranks
//                                that have neither make no call
// Floats are added in an order that NCCL chooses: the last bits may differ from
// those of the host target, where that order decides them.

struct NcclCall {
  CollectiveKind kind = CollectiveKind::AllReduce;
  NcclReduction reduction = NcclReduction::Sum;
  NcclType type = NcclType::Int8;
  /// Contiguous. send_recv and permute have only the sides of this rank.
  const std::byte *send = nullptr;
  std::byte *recv = nullptr;
  /// Elements of `type`; only a slice's, where the kind has slices.
  uint64_t count = 0;
  uint32_t root = 0;           ///< for broadcast
  std::vector<RankPair> pairs; ///< send_recv and permute: ranks in the group
  size_t group = 0;            ///< which one of the driver's groups
  uint32_t rank = 0, numRanks = 1;

  /// The bytes that this rank writes from `recv` on and reads from `send` on; 0
  /// of a side that it has not.
  uint64_t bytesWritten() const;
  uint64_t bytesRead() const;
  /// Whether the bytes written and those read may share no byte, or only in
  /// the way that NCCL calls in place (nccl.h).
  bool isOverlapLegal() const;
};

/// The type NCCL reduces; Unsupported for one it has none for. `major` is the
/// GPU's compute capability.
Result<NcclType> reductionTypeOf(ElementType type, int major);
NcclReduction reductionOf(ReductionKind kind);

/// Makes the calls. InProgress is success that is not complete yet.
/// `call` is the name of the first that fails.
NcclResult issue(const NcclApi &api, const NcclCall &call, NcclComm comm,
                 CUstream stream, const char *&name);

class Communicators {
public:
  using Watch = std::function<Result<void>()>;

  /// `watch` is asked while waiting; its error ends the wait. `where` is for
  /// error texts: "on cuda:0".
  Communicators(std::shared_ptr<const NcclApi> api, Watch watch,
                std::chrono::milliseconds deadline, std::string where,
                NcclOptions options = {})
      : api(std::move(api)), watch(std::move(watch)), deadline(deadline),
        where(std::move(where)), options(options) {}
  /// Nothing is destroyed: that is close()'s.
  ~Communicators() = default;
  Communicators(const Communicators &) = delete;
  Communicators &operator=(const Communicators &) = delete;

  static Result<NcclId> makeId(const NcclApi &api);
  /// Whether two groups share two ranks: their calls are then never at once.
  bool shareTwoRanks(size_t a, size_t b) const;
  bool overlaps() const { return options.overlaps; }

  /// Joins group number `groups.size()`; the GPU's context is current. A rank
  /// that is not a member calls skip() instead, so that numbers agree.
  Result<void> join(const NcclId &id, uint32_t rank,
                    const std::vector<DeviceId> &members);
  void skip(const std::vector<DeviceId> &members) {
    groups.push_back({nullptr, members});
  }
  size_t size() const { return groups.size(); }
  const std::vector<DeviceId> &members(size_t group) const {
    return groups[group].members;
  }

  bool hasWindows() const { return options.windows; }
  /// Memory of NCCL's, `bytes` on every rank, registered as a window of the
  /// first group: a call that all its ranks make in the same order. `memory` is
  /// set as soon as it is there, and then the caller's to free, by
  /// freeWindow(), after close(). False: NCCL registers none on this machine.
  Result<bool> makeWindow(uint64_t bytes, std::byte *&memory);
  void freeWindow(std::byte *memory) { api->MemFree(memory); }

  /// Enqueues a call on `stream`, capturing or not; `name` is the node's.
  Result<void> issue(const NcclCall &call, CUstream stream,
                     std::string_view name);
  /// An error of any communicator, or of the watch.
  Result<void> check();
  /// Stops what runs on the GPU, and makes every communicator useless. Waits
  /// a second at most: NCCL's own abort may wait for graphs that hold its
  /// calls.
  void abort();
  /// Ends them in order; after the last graph that holds a call of theirs.
  void close();

private:
  struct Group {
    NcclComm comm = nullptr; ///< null where this rank is not a member
    std::vector<DeviceId> members;
  };
  tl::unexpected<Error> failed(NcclResult code, std::string_view call,
                               std::string_view place, NcclComm comm);
  /// Waits while `code` is InProgress.
  Result<void> settle(NcclComm comm, NcclResult code, std::string_view call,
                      std::string_view what);

  std::shared_ptr<const NcclApi> api;
  Watch watch;
  std::chrono::milliseconds deadline;
  std::string where;
  NcclOptions options;
  std::vector<Group> groups;
  /// Windows of the first group. NCCL may write them after the call that makes
  /// them.
  std::deque<NcclWindow> windows;
  bool isAborted = false;
  bool isBroken = false; ///< a call failed: the others may never answer
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_NCCL_COMMUNICATORS_H
