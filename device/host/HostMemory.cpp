// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostMemory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace mgpu::device {

namespace {

constexpr uint64_t alignment = 256;

/// The machine's memory: the kernel would promise more and kill us later.
uint64_t physicalBytes() {
  long pages = sysconf(_SC_PHYS_PAGES), pageBytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && pageBytes > 0 ? uint64_t(pages) * uint64_t(pageBytes)
                                    : uint64_t(1) << 40;
}

} // namespace

void HostMemory::Free::operator()(std::byte *memory) const {
  std::free(memory);
}

Result<std::byte *> HostMemory::allocate(DeviceId device, uint64_t sizeBytes) {
  auto refuse = [&] {
    std::string owner =
        device.isHost() ? "the host" : fmt::format("device {}", device.value);
    return fail(ErrorKind::Absent,
                fmt::format("cannot allocate {} bytes for {}: this machine has "
                            "{} bytes of memory and {} are taken; use smaller "
                            "buffers",
                            sizeBytes, owner, physicalBytes(), totalBytes));
  };
  if (sizeBytes > physicalBytes() - std::min(totalBytes, physicalBytes()))
    return refuse();
  uint64_t rounded = std::max<uint64_t>(
      (sizeBytes + alignment - 1) / alignment * alignment, alignment);
  auto *memory =
      static_cast<std::byte *>(std::aligned_alloc(alignment, rounded));
  if (!memory)
    return refuse();
  std::memset(memory, 0, rounded);
  blocks.emplace_back(memory);
  addresses.add(memory, sizeBytes, device);
  totalBytes += rounded;
  return memory;
}

} // namespace mgpu::device
