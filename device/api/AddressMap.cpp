// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/AddressMap.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

Result<void> AddressMap::check(const std::byte *base, const Box &box) const {
  auto next = blocks.upper_bound(uintptr_t(base));
  if (!base || next == blocks.begin())
    return {};
  const auto &[start, block] = *std::prev(next);
  uint64_t inside = uintptr_t(base) - start;
  // The address behind a block may be the first of a caller's memory.
  if (inside >= block.sizeBytes)
    return {};
  auto [low, high] = box.byteRange();
  if (low == high ||
      (low >= -int64_t(inside) && high <= int64_t(block.sizeBytes - inside)))
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("a view of bytes {} to {} leaves its allocation of "
                          "{} bytes",
                          low + int64_t(inside), high + int64_t(inside),
                          block.sizeBytes));
}

const DeviceId *AddressMap::ownerOf(const std::byte *address) const {
  auto next = blocks.upper_bound(uintptr_t(address));
  if (next == blocks.begin())
    return nullptr;
  const auto &[start, block] = *std::prev(next);
  return uintptr_t(address) - start < std::max<uint64_t>(block.sizeBytes, 1)
             ? &block.owner
             : nullptr;
}

} // namespace mgpu::device
