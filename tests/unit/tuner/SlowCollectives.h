// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_TUNER_SLOWCOLLECTIVES_H
#define MGPU_TESTS_UNIT_TUNER_SLOWCOLLECTIVES_H

// A driver on which each collective of a replay costs 100 us more, so that of
// two programs the one with fewer is surely faster.

#include "device/api/GraphDriver.h"
#include "support/Clock.h"

namespace mgpu::tuner {

class SlowExec final : public device::GraphExec {
public:
  SlowExec(std::unique_ptr<device::GraphExec> inner, uint32_t collectives)
      : inner(std::move(inner)), collectives(collectives) {}
  Result<void> launch() override {
    wait();
    return inner->launch();
  }
  Result<void> launchTimed(std::vector<device::NodeTiming> &timings) override {
    wait();
    return inner->launchTimed(timings);
  }

private:
  void wait() const {
    const Clock::time_point start = Clock::now();
    while (microsecondsSince(start) < 100.0 * collectives) {
    }
  }

  std::unique_ptr<device::GraphExec> inner;
  uint32_t collectives;
};

class SlowGraph final : public device::GraphDriver {
public:
  explicit SlowGraph(std::unique_ptr<device::GraphDriver> inner)
      : inner(std::move(inner)) {}
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
        std::make_unique<SlowExec>(std::move(exec), collectives));
  }

private:
  std::unique_ptr<device::GraphDriver> inner;
  uint32_t collectives = 0;
};

class SlowCollectives final : public device::Driver {
public:
  explicit SlowCollectives(std::unique_ptr<device::Driver> inner)
      : inner(std::move(inner)) {}
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
    return std::make_unique<SlowGraph>(inner->createGraph());
  }

private:
  std::unique_ptr<device::Driver> inner;
};

} // namespace mgpu::tuner

#endif // MGPU_TESTS_UNIT_TUNER_SLOWCOLLECTIVES_H
