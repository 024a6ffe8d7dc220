// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_RANKS_REMOTERUNNER_H
#define MGPU_CAPTURE_RANKS_REMOTERUNNER_H

#include "capture/ranks/Runner.h"
#include "device/api/Rendezvous.h"

namespace mgpu::capture {

/// A part of a program as one of several processes runs it, each with memory of
/// the host of its own. All processes make the same calls in the same order;
/// hostBuffer() is empty where another process has the buffer, and bind() of it
/// does nothing. Times are those of the slowest process; replayTimed() gives
/// the spans of all. `others` must outlive it.
std::unique_ptr<Runner> runWithOthers(std::unique_ptr<Runner> here,
                                      device::Rendezvous &others);

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_RANKS_REMOTERUNNER_H
