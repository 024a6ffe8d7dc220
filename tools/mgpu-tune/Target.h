// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_MGPU_TUNE_TARGET_H
#define MGPU_TOOLS_MGPU_TUNE_TARGET_H

// The --target option.

#include "device/api/GraphDriver.h"

#include <memory>
#include <string>

namespace mgpu::tune {

/// Opens `target` for a program of `numDevices` devices. "" is "host". Errors:
/// Usage for an unknown form, Absent for a device that is not there or not
/// enough of them, Unsupported for a target this version does not run.
/// `lanes` threads replay; 0: as many as useful.
Result<std::unique_ptr<device::Driver>>
openTarget(const std::string &target, uint32_t numDevices, uint32_t lanes = 0);

/// The number of devices openTarget() would open; its errors.
Result<uint32_t> targetDevices(const std::string &target, uint32_t numDevices);

} // namespace mgpu::tune

#endif // MGPU_TOOLS_MGPU_TUNE_TARGET_H
