// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_REMOTEGPU_H
#define MGPU_CAPTURE_RANKS_REMOTEGPU_H

#include "capture/ranks/RemoteRunner.h"
#include "device/api/MessageRendezvous.h"

namespace mgpu::capture {

/// The GPU of this process, of a program on as many processes as it has
/// devices.
struct RemotePart {
  DeviceId own;
  std::vector<uint32_t> rankOf;                ///< the process of each device
  device::MessageRendezvous *others = nullptr; ///< outlives the runner
};

/// Runs one GPU's part of a program whose other GPUs are in other processes, of
/// this machine or of others. The identifiers of NCCL's communicators, and what
/// the program writes to the host's memory, go by `part.others`; what is on the
/// GPUs goes by NCCL alone. hostBuffer() is empty as runWithOthers() says.
/// `open` gives the driver of the GPU; its argument goes into the driver's
/// options. Errors: Unsupported as checkAcrossRanks() and
/// checkAcrossProcesses() have it. `dag` and `plan` must outlive the runner.
Result<std::unique_ptr<Runner>>
runGpuWithOthers(const planner::Dag &dag, const planner::Plan &plan,
                 std::span<const std::vector<std::byte>> kernels,
                 RemotePart part,
                 const std::function<Result<std::unique_ptr<device::Driver>>(
                     std::function<Result<void>()> watch)> &open);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_REMOTEGPU_H
