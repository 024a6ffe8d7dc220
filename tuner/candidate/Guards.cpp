// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/candidate/Guards.h"

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

Plan spreadSerially(Plan plan, const Dag &dag) {
  for (PlanStep &step : plan.steps)
    for (PlanStream &stream : step.streams)
      stream.stream = {};
  return spreadBuffers(std::move(plan), dag);
}

Result<std::byte *> GuardedDriver::allocate(DeviceId device, uint64_t sizeBytes,
                                            bool isArena) {
  MGPU_TRY_ASSIGN(std::byte * memory,
                  inner->allocate(device, sizeBytes + 2 * zoneBytes));
  Block block{device, memory + zoneBytes, sizeBytes, isArena, nullptr, nullptr,
              nullptr};
  if (device.isHost() || inner->architecture().empty())
    block.view = block.memory;
  blocks.push_back(std::move(block));
  return memory + zoneBytes;
}

/// Memory for a view, and the graphs that copy there and back.
Result<void> GuardedDriver::openView(Block &block) {
  const uint64_t bytes = block.sizeBytes + 2 * zoneBytes;
  MGPU_TRY_ASSIGN(std::byte * view, inner->allocate(DeviceId::host(), bytes));
  auto copy =
      [&](std::byte *to,
          const std::byte *from) -> Result<std::unique_ptr<device::GraphExec>> {
    auto graph = inner->createGraph();
    const Box all = Box::flat(0, int64_t(bytes));
    MGPU_TRY(graph->addCopy({"guards", block.device, to, from, all, all}, {}));
    return graph->instantiate();
  };
  std::byte *memory = block.memory - zoneBytes;
  MGPU_TRY_ASSIGN(block.put, copy(memory, view));
  MGPU_TRY_ASSIGN(block.get, copy(view, memory));
  block.view = view + zoneBytes;
  return {};
}

void GuardedDriver::guard(std::byte *memory, uint64_t sizeBytes,
                          std::string after) {
  if (sizeBytes == 0)
    return;
  for (uint64_t k = 0; k < sizeBytes; ++k)
    memory[k] = patternAt(k);
  zones.push_back({memory, sizeBytes, std::move(after)});
}

Result<void> GuardedDriver::arm(const Plan &plan, const Dag &dag) {
  zones.clear();
  for (Block &block : blocks) {
    if (!block.view)
      MGPU_TRY(openView(block));
    std::string owner =
        block.device.isHost()
            ? "a host buffer"
            : fmt::format("the memory of device {}", block.device.value);
    guard(block.view - zoneBytes, zoneBytes, "before " + owner);
    guard(block.view + block.sizeBytes, zoneBytes, "after " + owner);
    if (block.device.isHost())
      continue;
    if (!block.isArena) { // an argument's, which is not poisoned
      if (block.put)
        MGPU_TRY(block.put->launch());
      continue;
    }
    std::memset(block.view, 0xff, block.sizeBytes);
    std::vector<const Placement *> here;
    for (const Placement &placement : plan.placements)
      if (dag.buffer(placement.buffer).device == block.device)
        here.push_back(&placement);
    std::sort(here.begin(), here.end(), [](const auto *a, const auto *b) {
      return a->offset < b->offset;
    });
    uint64_t end = 0; // where the buffers so far end
    std::string last = "before the first buffer";
    for (const Placement *placement : here) {
      if (placement->offset > end)
        guard(block.view + end, placement->offset - end, last);
      const Buffer &buffer = dag.buffer(placement->buffer);
      if (placement->offset + buffer.sizeBytes >= end) {
        end = placement->offset + buffer.sizeBytes;
        last = fmt::format("after buffer '{}'", buffer.name);
      }
    }
    if (end < block.sizeBytes)
      guard(block.view + end, block.sizeBytes - end, last);
    if (block.put)
      MGPU_TRY(block.put->launch());
  }
  return {};
}

Outcome<void> GuardedDriver::check() {
  for (const Block &block : blocks)
    if (block.get)
      if (auto fetched = block.get->launch(); !fetched)
        return fault(FaultKind::Crash, std::move(fetched.error().message));
  for (const Zone &zone : zones)
    for (uint64_t k = 0; k < zone.sizeBytes; ++k)
      if (zone.memory[k] != patternAt(k))
        return fault(FaultKind::OutOfBounds,
                     fmt::format("wrote outside of its buffers, {} bytes {}", k,
                                 zone.after));
  return {};
}

} // namespace mgpu::tuner
