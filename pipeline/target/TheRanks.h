// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TARGET_THERANKS_H
#define MGPU_PIPELINE_TARGET_THERANKS_H

// The processes that run one program together, which MPI or whoever sets
// torchrun's variables has started (docs/distributed.md). A process is a rank
// of one such group at most.

#include "capture/ranks/Ranks.h"
#include "device/api/MessageRendezvous.h"
#include "device/tcp/TcpChannel.h"

namespace mgpu::pipeline {

/// How processes meet.
struct Meeting {
  std::string how = "auto"; ///< "openmpi", "mpich", "tcp", or what the
                            ///< environment says
  /// The longest wait for another rank, now and later; 0: none.
  std::chrono::milliseconds deadline{120'000};
  const void *communicator = nullptr; ///< as device::joinByMpi()
  std::optional<device::TcpPlace> place =
      std::nullopt; ///< else the environment's
};

/// Meets the other processes, and learns which of them are on one machine:
/// those with the same host name, or MGPU_NODE where that is set. Errors: Usage
/// where nothing started this process as one of several, Absent where MPI or a
/// rank is not there.
Result<std::unique_ptr<device::MessageRendezvous>>
meetRanks(const Meeting &meeting);

/// Meets them for the rest of the process.
Result<void> joinRanks(const Meeting &meeting);
/// The ranks of joinRanks(); null where it was not called.
device::MessageRendezvous *theRanks();
/// Whether this process prints and writes: rank 0, or it is alone.
bool isFirstRank();
/// Tells the others why this rank fails. Nothing where it is alone.
void failRanks(const std::string &reason);
/// At the end of the process, once it has said what it has to say.
void leaveRanks();

/// How many of them are on this machine, this one among them; 1: it is alone.
uint32_t numRanksHere();
/// On how many machines all of them are.
uint32_t numRankNodes();
/// The most of so many devices that one of them has.
uint32_t mostDevicesOfRank(uint32_t devices);
/// "4 on 2 nodes by openmpi"; empty where this process is alone.
std::string ranksText();

/// The GPUs of this rank, one for each of its devices.
struct RankGpus {
  std::vector<int> gpus; ///< as CUDA numbers those of this machine
  capture::RemotePart part;
};
/// Deals devices to ranks as device::hostPart() does, and finds the GPUs in
/// `target`, "cuda" or "cuda:K,L": those of each machine, in the order of the
/// devices there. Errors: Unsupported for more ranks than devices, or for
/// devices that share a GPU; Absent for more devices on a machine than GPUs.
Result<RankGpus> gpusOfRank(const std::string &target, uint32_t numDevices,
                            device::MessageRendezvous &others);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_TARGET_THERANKS_H
