// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTTARGET_H
#define MGPU_DEVICE_HOST_HOSTTARGET_H

// The host target by the name a user gives it.

#include "device/api/GraphDriver.h"

#include <memory>
#include <string>

namespace mgpu::device {

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

#endif // MGPU_DEVICE_HOST_HOSTTARGET_H
