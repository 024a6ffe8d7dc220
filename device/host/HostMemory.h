// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTMEMORY_H
#define MGPU_DEVICE_HOST_HOSTMEMORY_H

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <map>
#include <memory>

namespace mgpu::device {

/// The memories of the devices and the host: zeroed allocations, 256-aligned,
/// freed together.
class HostMemory {
public:
  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes);
  /// An error if `base` lies in one of our allocations but `box` leaves it.
  /// Memory of others cannot be checked.
  Result<void> check(const std::byte *base, const Box &box) const;

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    uint64_t sizeBytes;
  };
  std::map<uintptr_t, Block> blocks; ///< by address
  uint64_t totalBytes = 0;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTMEMORY_H
