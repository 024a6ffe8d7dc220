// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTDRIVER_H
#define MGPU_DEVICE_HOST_HOSTDRIVER_H

// The host target: N virtual devices with memories of their own on this
// machine. It runs the same plans as the CUDA target, and is its oracle.

#include "device/api/GraphDriver.h"
#include "device/api/MessageRendezvous.h"

#include <memory>
#include <string>

namespace mgpu::device {

/// `numThreads` threads replay, the caller's among them; 0 means as many as
/// devices, but no more than the cores this process may use. Graphs of one
/// driver may replay at once; the one that comes second runs on its calling
/// thread alone. `workerCpus`: as WorkerPool has it. createGraph() returns a
/// HostGraph (HostGraph.h).
Result<std::unique_ptr<Driver>>
createHostDriver(uint32_t numDevices, uint32_t numThreads = 0,
                 std::span<const int> workerCpus = {});

/// The devices of a program that one process has. Other processes have the
/// rest, and drivers of their own.
struct HostPart {
  DevicePart here;
  std::vector<uint32_t> ranks; ///< the process of each device of the program
  MessageRendezvous *others = nullptr; ///< outlives the driver
  /// The process that has a device; the host's own work is rank 0's.
  uint32_t rankOf(DeviceId device) const {
    return device.isHost() ? 0 : ranks[size_t(device.value)];
  }
};

/// Blocks of devices as equal as can be, the first no smaller than any other,
/// for the ranks in the order of ranksByNode(): the devices of one machine are
/// beside each other. Some ranks have none where there are more ranks than
/// devices.
HostPart hostPart(uint32_t numDevices, MessageRendezvous &others);
/// Deals each rank as many devices as `shares` says.
HostPart hostPart(std::span<const uint32_t> shares, MessageRendezvous &others);

/// Creates a driver for part of a program's devices. Once a message fails, so
/// does every replay, and checkAlive().
Result<std::unique_ptr<Driver>> createHostDriver(HostPart part,
                                                 uint32_t numThreads = 0);

// The host target by the name a user gives it.

/// The devices of "host", "host:N" or "" for a program of `numDevices`; the
/// errors of openHostTarget() but the machine's own.
Result<uint32_t> hostTargetDevices(const std::string &target,
                                   uint32_t numDevices);

/// Opens "host", "host:N" or "" for a program of `numDevices` devices, as many
/// of them unless N says more, on `numThreads` threads (0: as many as useful).
/// Errors: Usage for another form, Absent where N is too few or the machine
/// refuses them.
Result<std::unique_ptr<Driver>> openHostTarget(const std::string &target,
                                               uint32_t numDevices,
                                               uint32_t numThreads = 0);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTDRIVER_H
