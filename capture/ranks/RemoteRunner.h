// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_REMOTERUNNER_H
#define MGPU_CAPTURE_RANKS_REMOTERUNNER_H

#include "capture/ranks/Ranks.h"
#include "capture/ranks/Runner.h"
#include "device/api/MessageRendezvous.h"

namespace mgpu::capture {

/// A part of a program as one of several processes runs it, each with memory of
/// the host of its own. All processes make the same calls in the same order;
/// hostBuffer() is empty where another process has the buffer, and bind() of it
/// does nothing. Times are those of the slowest process; replayTimed() gives
/// the spans of all. `others` must outlive it.
std::unique_ptr<Runner> runWithOthers(std::unique_ptr<Runner> here,
                                      device::Rendezvous &others);

/// Runs the GPUs of this process, each in a thread, of a program whose others
/// are in other processes, of this machine or of others. The identifiers of
/// NCCL's communicators, and what the program writes to the host's memory, go
/// by `part.others`; what is on the GPUs goes by NCCL alone. hostBuffer() is
/// empty as runWithOthers() says. `open` gives the driver of each GPU here.
/// Errors: as Ranks::start().
Result<std::unique_ptr<Runner>>
runGpusWithOthers(planner::Dag dag, planner::Plan plan,
                  std::vector<Bytes> kernels, RemotePart part,
                  RankJob::Open open, Ranks::Options options);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_REMOTERUNNER_H
