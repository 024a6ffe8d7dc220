// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKECOLLECTIVE_H
#define MGPU_TESTS_UNIT_CUDA_FAKECOLLECTIVE_H

#include "FakeNccl.h"

namespace mgpu::fake {

/// A send or a recv of a group.
struct Transfer {
  bool isSend;
  int peer;
  std::byte *data;
  size_t bytes;
  bool isInWindow = false;
};

size_t bytesOf(device::NcclType type);

/// One operation of NCCL's: a collective, or the transfers of a group.
struct Work {
  const char *name = "transfers";
  device::NcclType type = device::NcclType::Int8;
  device::NcclReduction reduction = device::NcclReduction::Sum;
  size_t count = 0;
  int root = -1;
  const std::byte *send = nullptr;
  std::byte *recv = nullptr;
  std::vector<Transfer> transfers = {};
  std::string windows = {}; ///< where its ends are in windows
  uint64_t capture = 0; ///< which of the communicator's captured calls; 0: none

  /// What a connection is made for.
  std::string kind() const;
  /// What must be the same on both sides of a letter.
  std::string signature() const;
  bool isInPlace() const { return send == recv && transfers.empty(); }
  /// The in-place forms of nccl.h:399, 412, 428 and 445.
  bool isOverlapLegal(int rank, size_t sendBytes, size_t recvBytes) const;
};

std::unique_ptr<Operation> begin(FakeComm &comm, const Work &work);

/// Whether a node of a live graph or executable is of it.
bool isHeldByAGraph(const FakeComm *comm);
/// Whether a launch of such an executable has not ended.
bool isRunning(const FakeComm &comm);

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKECOLLECTIVE_H
