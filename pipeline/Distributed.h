// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_DISTRIBUTED_H
#define MGPU_PIPELINE_DISTRIBUTED_H

// One program in several processes, which MPI or whoever sets torchrun's
// variables has started (docs/distributed.md). A process is a rank of one such
// group at most.

#include "device/api/MessageRendezvous.h"
#include "device/tcp/TcpChannel.h"
#include "pipeline/Run.h"

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

/// Meets the other processes. Errors: Usage where nothing started this process
/// as one of several, Absent where MPI or a rank is not there.
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

/// Runs a part of a program's devices here: blocks of them by rank. Rank 0
/// prepares the program; the others take its plan and kernels, and prove the
/// plan. Errors, the same on all ranks: Invalid where one has another program,
/// plan or version of mgpu; Absent where its processor cannot run the kernels.
/// `others`, `dag` and `prepared`, which is set, must outlive the runner.
Result<std::unique_ptr<Runner>>
shareDevices(planner::Dag &dag,
             const std::function<Result<Prepared>()> &prepareFirst,
             device::MessageRendezvous &others, Prepared &prepared);
/// The same like openTargetRunner(). The target is the host.
Result<std::unique_ptr<Runner>>
openDistributed(LoadedProgram &program, const PrepareOptions &prepare,
                device::MessageRendezvous &others, Prepared &prepared,
                const std::function<void()> &opened);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_DISTRIBUTED_H
