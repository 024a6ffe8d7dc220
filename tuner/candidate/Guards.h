// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_CANDIDATE_GUARDS_H
#define MGPU_TUNER_CANDIDATE_GUARDS_H

// Writes outside of buffers, caught: memory around and between the buffers of
// a program is filled with a pattern that must still be there afterwards.

#include "device/api/GraphDriver.h"
#include "planner/plan/Plan.h"
#include "support/Fault.h"

namespace mgpu::tuner {

/// The plan with every device buffer in a place of its own, `guardBytes` apart
/// at least: a write past a buffer meets no other one.
planner::Plan spreadBuffers(planner::Plan plan, const planner::Dag &dag,
                            uint64_t guardBytes = 4096);

/// spreadBuffers() for a reference: on each device one node follows the other.
planner::Plan spreadSerially(planner::Plan plan, const planner::Dag &dag);

/// A driver whose allocations have guard zones on both sides. Memory that this
/// process cannot address, as a GPU's, is written and read through as much
/// host memory of the driver's.
class GuardedDriver final : public device::Driver {
public:
  explicit GuardedDriver(std::unique_ptr<device::Driver> inner)
      : inner(std::move(inner)) {}

  uint32_t numDevices() const override { return inner->numDevices(); }
  std::string description() const override { return inner->description(); }
  std::string architecture() const override { return inner->architecture(); }
  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes) override {
    return allocate(device, sizeBytes, false);
  }
  Result<std::byte *> allocateArena(DeviceId device, uint64_t sizeBytes,
                                    uint64_t) override {
    return allocate(device, sizeBytes, true);
  }
  Result<void> transfer(std::byte *to, const std::byte *from,
                        uint64_t bytes) override {
    return inner->transfer(to, from, bytes);
  }
  Result<device::KernelHandle>
  loadKernel(std::string_view name,
             std::span<const std::byte> object) override {
    return inner->loadKernel(name, object);
  }
  std::optional<device::DevicePart> part() const override {
    return inner->part();
  }
  std::unique_ptr<device::GraphDriver> createGraph() override {
    return inner->createGraph();
  }
  std::string timedBy() const override { return inner->timedBy(); }
  Result<device::GroupId> makeGroupId() override {
    return inner->makeGroupId();
  }
  Result<void> join(std::span<const device::DeviceGroup> groups) override {
    return inner->join(groups);
  }
  Result<void> adoptHost(std::span<std::byte> memory, bool isPinned) override {
    return inner->adoptHost(memory, isPinned);
  }
  Result<void> checkAlive() const override { return inner->checkAlive(); }
  void abandon(const std::string &reason) override { inner->abandon(reason); }

  /// Fills the devices' memory with poison (all bits set: NaN, -1), and all
  /// that belongs to no buffer of the plan with the pattern. Once a Replayer
  /// has been made of plan and DAG with this driver, and no other. Errors: of
  /// the driver.
  Result<void> arm(const planner::Plan &plan, const planner::Dag &dag);
  /// OutOfBounds, with the nearest buffer, where the pattern is gone.
  Outcome<void> check();

private:
  struct Block {
    DeviceId device;
    std::byte *memory; ///< what was asked for, between the zones
    uint64_t sizeBytes;
    bool isArena; ///< the plan says what lies where
    /// The place of these bytes in this process: `memory` itself, or a copy
    /// that put() sends and get() fetches.
    std::byte *view = nullptr;
    std::unique_ptr<device::GraphExec> put, get;
  };
  struct Zone {
    std::byte *memory;
    uint64_t sizeBytes;
    std::string after; ///< the buffer it follows, or what else lies there
  };
  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes,
                               bool isArena);
  void guard(std::byte *memory, uint64_t sizeBytes, std::string after);
  Result<void> openView(Block &block);

  std::unique_ptr<device::Driver> inner;
  std::vector<Block> blocks;
  std::vector<Zone> zones;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_CANDIDATE_GUARDS_H
