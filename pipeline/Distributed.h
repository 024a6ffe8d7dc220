// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_DISTRIBUTED_H
#define MGPU_PIPELINE_DISTRIBUTED_H

// One program in several processes, which MPI or whoever sets torchrun's
// variables has started (docs/distributed.md). A process is a rank of one such
// group at most.

#include "device/api/MessageRendezvous.h"
#include "pipeline/Run.h"

namespace mgpu::pipeline {

/// Meets the other processes. `how` is "openmpi", "mpich", "tcp" or "auto",
/// which is what the environment says. `deadline` is the longest wait for
/// another rank, now and later; 0: none. Errors: Usage where nothing started
/// this process as one of several, Absent where MPI or a rank is not there.
Result<void> joinRanks(const std::string &how,
                       std::chrono::milliseconds deadline);
/// The ranks of joinRanks(); null where it was not called.
device::MessageRendezvous *theRanks();
/// Whether this process prints and writes: rank 0, or it is alone.
bool isFirstRank();
/// Tells the others why this rank fails. Nothing where it is alone.
void failRanks(const std::string &reason);
/// At the end of the process, once it has said what it has to say.
void leaveRanks();

/// Like openTargetRunner(), for a part of the devices: blocks of them by rank.
/// Rank 0 prepares the program; the others take its plan and kernels, and prove
/// the plan. Errors, the same on all ranks: Invalid where one has another
/// program, plan or version of mgpu; Absent where its processor cannot run the
/// kernels. The target is the host.
Result<std::unique_ptr<Runner>>
openDistributed(LoadedProgram &program, const PrepareOptions &prepare,
                device::MessageRendezvous &others, Prepared &prepared,
                const std::function<void()> &opened);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_DISTRIBUTED_H
