// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_TUNER_WATCHEDDRIVER_H
#define MGPU_TESTS_UNIT_TUNER_WATCHEDDRIVER_H

// A driver that has something done before each launch of a graph.

#include "device/api/GraphDriver.h"

#include <functional>

namespace mgpu::tuner {

/// Given the number of the graph's collectives.
using BeforeLaunch = std::function<void(uint32_t)>;

class WatchedExec final : public device::GraphExec {
public:
  WatchedExec(std::unique_ptr<device::GraphExec> inner, BeforeLaunch before,
              uint32_t collectives)
      : inner(std::move(inner)), before(std::move(before)),
        collectives(collectives) {}
  Result<void> launch() override {
    before(collectives);
    return inner->launch();
  }
  Result<void> launchTimed(std::vector<device::NodeTiming> &timings) override {
    before(collectives);
    return inner->launchTimed(timings);
  }

private:
  std::unique_ptr<device::GraphExec> inner;
  BeforeLaunch before;
  uint32_t collectives;
};

class WatchedGraph final : public device::GraphDriver {
public:
  WatchedGraph(std::unique_ptr<device::GraphDriver> inner, BeforeLaunch before)
      : inner(std::move(inner)), before(std::move(before)) {}
  Result<device::GraphNodeId>
  addKernel(const device::KernelNodeParams &params,
            std::span<const device::GraphNodeId> dependencies) override {
    return inner->addKernel(params, dependencies);
  }
  Result<device::GraphNodeId>
  addCopy(const device::CopyNodeParams &params,
          std::span<const device::GraphNodeId> dependencies) override {
    return inner->addCopy(params, dependencies);
  }
  Result<device::GraphNodeId>
  addCollective(const device::CollectiveNodeParams &params,
                std::span<const device::GraphNodeId> dependencies) override {
    ++collectives;
    return inner->addCollective(params, dependencies);
  }
  Result<std::unique_ptr<device::GraphExec>> instantiate() override {
    MGPU_TRY_ASSIGN(auto exec, inner->instantiate());
    return std::unique_ptr<device::GraphExec>(
        std::make_unique<WatchedExec>(std::move(exec), before, collectives));
  }

private:
  std::unique_ptr<device::GraphDriver> inner;
  BeforeLaunch before;
  uint32_t collectives = 0;
};

class WatchedDriver final : public device::Driver {
public:
  WatchedDriver(std::unique_ptr<device::Driver> inner, BeforeLaunch before)
      : inner(std::move(inner)), before(std::move(before)) {}
  uint32_t numDevices() const override { return inner->numDevices(); }
  std::string description() const override { return inner->description(); }
  Result<std::byte *> allocate(DeviceId device, uint64_t bytes) override {
    return inner->allocate(device, bytes);
  }
  Result<device::KernelHandle>
  loadKernel(std::string_view name,
             std::span<const std::byte> object) override {
    return inner->loadKernel(name, object);
  }
  std::unique_ptr<device::GraphDriver> createGraph() override {
    return std::make_unique<WatchedGraph>(inner->createGraph(), before);
  }

private:
  std::unique_ptr<device::Driver> inner;
  BeforeLaunch before;
};

} // namespace mgpu::tuner

#endif // MGPU_TESTS_UNIT_TUNER_WATCHEDDRIVER_H
