// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTMEMORY_H
#define MGPU_DEVICE_HOST_HOSTMEMORY_H

#include "device/api/AddressMap.h"

#include <memory>
#include <vector>

namespace mgpu::device {

/// The memories of the devices and the host: zeroed allocations, 256-aligned,
/// freed together.
class HostMemory {
public:
  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes);
  /// An error if `base` lies in one of our allocations but `box` leaves it.
  /// Memory of others cannot be checked.
  Result<void> check(const std::byte *base, const Box &box) const {
    return addresses.check(base, box);
  }

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  std::vector<std::unique_ptr<std::byte, Free>> blocks;
  AddressMap addresses;
  uint64_t totalBytes = 0;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTMEMORY_H
