// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_ADDRESSMAP_H
#define MGPU_DEVICE_API_ADDRESSMAP_H

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <map>

namespace mgpu::device {

/// The allocations of a backend, by address.
class AddressMap {
public:
  void add(const std::byte *base, uint64_t sizeBytes, DeviceId owner) {
    blocks[uintptr_t(base)] = {sizeBytes, owner};
  }
  void remove(const std::byte *base) { blocks.erase(uintptr_t(base)); }
  /// An error if `base` lies in one of the allocations but `box` leaves it.
  /// Memory of others cannot be checked.
  Result<void> check(const std::byte *base, const Box &box) const;
  /// Whose memory the address lies in, or null.
  const DeviceId *ownerOf(const std::byte *address) const;

private:
  struct Block {
    uint64_t sizeBytes;
    DeviceId owner;
  };
  std::map<uintptr_t, Block> blocks;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_ADDRESSMAP_H
