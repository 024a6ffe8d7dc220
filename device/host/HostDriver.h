// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTDRIVER_H
#define MGPU_DEVICE_HOST_HOSTDRIVER_H

// The host target: N virtual devices with memories of their own on this
// machine. It runs the same plans as the CUDA target, and is its oracle.

#include "device/api/GraphDriver.h"

namespace mgpu::device {

/// `numThreads` threads replay, the caller's among them; 0 means as many as
/// devices, but no more than the cores this process may use. Graphs of one
/// driver may replay at once; the one that comes second runs on its calling
/// thread alone. `workerCpus`: as WorkerPool has it. createGraph() returns a
/// HostGraph (HostGraph.h).
Result<std::unique_ptr<Driver>>
createHostDriver(uint32_t numDevices, uint32_t numThreads = 0,
                 std::span<const int> workerCpus = {});

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTDRIVER_H
