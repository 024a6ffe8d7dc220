// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_DRIVERFACTORY_H
#define MGPU_DEVICE_API_DRIVERFACTORY_H

#include "device/api/GraphDriver.h"

namespace mgpu::device {

/// Opens a target with so many devices and so many threads that replay. The
/// workers beside the calling thread are pinned to `workerCpus`, unless that is
/// empty.
using DriverFactory = std::function<Result<std::unique_ptr<Driver>>(
    uint32_t numDevices, uint32_t threads, std::span<const int> workerCpus)>;

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_DRIVERFACTORY_H
