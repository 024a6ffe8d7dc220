// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_NCCL_NCCLCALL_H
#define MGPU_DEVICE_CUDA_NCCL_NCCLCALL_H

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

#include "device/api/GraphDriver.h"
#include "device/cuda/nccl/NcclApi.h"

namespace mgpu::device {

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

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_NCCL_NCCLCALL_H
