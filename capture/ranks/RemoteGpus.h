// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_REMOTEGPUS_H
#define MGPU_CAPTURE_RANKS_REMOTEGPUS_H

#include "capture/ranks/Ranks.h"

namespace mgpu::capture {

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

#endif // MGPU_CAPTURE_RANKS_REMOTEGPUS_H
