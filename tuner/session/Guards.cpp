// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/session/Guards.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::tuner {

using namespace planner;

static constexpr uint64_t zoneBytes = 4096;

/// No run of equal or zero bytes, which a stray write might restore.
static std::byte patternAt(uint64_t k) {
  return std::byte((k * 0x9e3779b97f4a7c15) >> 56 | 1);
}

Plan spreadBuffers(Plan plan, const Dag &dag, uint64_t guardBytes) {
  auto align = [](uint64_t bytes) {
    return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment;
  };
  std::fill(plan.arenaBytes.begin(), plan.arenaBytes.end(), align(guardBytes));
  for (Placement &placement : plan.placements) {
    const Buffer &buffer = dag.buffer(placement.buffer);
    uint64_t &end = plan.arenaBytes[size_t(buffer.device.value)];
    placement.offset = end;
    end += align(buffer.sizeBytes) + align(guardBytes);
  }
  return plan;
}

Result<std::byte *> GuardedDriver::allocate(DeviceId device,
                                            uint64_t sizeBytes) {
  MGPU_TRY_ASSIGN(std::byte * memory,
                  inner->allocate(device, sizeBytes + 2 * zoneBytes));
  blocks.push_back({device, memory + zoneBytes, sizeBytes});
  return memory + zoneBytes;
}

void GuardedDriver::guard(std::byte *memory, uint64_t sizeBytes,
                          std::string after) {
  if (sizeBytes == 0)
    return;
  for (uint64_t k = 0; k < sizeBytes; ++k)
    memory[k] = patternAt(k);
  zones.push_back({memory, sizeBytes, std::move(after)});
}

void GuardedDriver::arm(const Plan &plan, const Dag &dag) {
  zones.clear();
  for (const Block &block : blocks) {
    std::string owner =
        block.device.isHost()
            ? "a host buffer"
            : fmt::format("the memory of device {}", block.device.value);
    guard(block.memory - zoneBytes, zoneBytes, "before " + owner);
    guard(block.memory + block.sizeBytes, zoneBytes, "after " + owner);
    if (block.device.isHost())
      continue;
    std::memset(block.memory, 0xff, block.sizeBytes);
    std::vector<const Placement *> here;
    for (const Placement &placement : plan.placements)
      if (dag.buffer(placement.buffer).device == block.device)
        here.push_back(&placement);
    std::sort(here.begin(), here.end(), [](const auto *a, const auto *b) {
      return a->offset < b->offset;
    });
    uint64_t end = 0; // of the buffers so far
    std::string last = "before the first buffer";
    for (const Placement *placement : here) {
      if (placement->offset > end)
        guard(block.memory + end, placement->offset - end, last);
      const Buffer &buffer = dag.buffer(placement->buffer);
      if (placement->offset + buffer.sizeBytes >= end) {
        end = placement->offset + buffer.sizeBytes;
        last = fmt::format("after buffer '{}'", buffer.name);
      }
    }
    if (end < block.sizeBytes)
      guard(block.memory + end, block.sizeBytes - end, last);
  }
}

Outcome<void> GuardedDriver::check() const {
  for (const Zone &zone : zones)
    for (uint64_t k = 0; k < zone.sizeBytes; ++k)
      if (zone.memory[k] != patternAt(k))
        return fault(FaultKind::OutOfBounds,
                     fmt::format("wrote outside of its buffers, {} bytes {}", k,
                                 zone.after));
  return {};
}

} // namespace mgpu::tuner
