// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostDriver.h"

#include "device/host/HostGraph.h"
#include "support/Affinity.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

namespace mgpu::device {

namespace {

constexpr uint32_t maxDevices = 1024, maxThreads = 256;

class HostDriver final : public Driver {
public:
  explicit HostDriver(std::shared_ptr<HostState> state)
      : state(std::move(state)) {}

  uint32_t numDevices() const override { return state->numDevices; }

  std::string description() const override {
    uint32_t devices = state->numDevices, threads = state->pool.numQueues();
    return fmt::format("host: {} virtual device{} on {} thread{}", devices,
                       devices == 1 ? "" : "s", threads,
                       threads == 1 ? "" : "s");
  }

  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes) override {
    if (device.value >= int32_t(state->numDevices))
      return fail(ErrorKind::Invalid,
                  fmt::format("memory is asked of device {}, but the devices "
                              "are 0 to {}",
                              device.value, state->numDevices - 1));
    return state->memory.allocate(device, sizeBytes);
  }

  Result<KernelHandle> loadKernel(std::string_view name,
                                  std::span<const std::byte> object) override {
    MGPU_TRY_ASSIGN(KernelObject kernel, KernelObject::load(name, object));
    state->kernels.push_back(std::move(kernel));
    return KernelHandle{uint32_t(state->kernels.size() - 1)};
  }

  std::unique_ptr<GraphDriver> createGraph() override {
    return std::make_unique<HostGraph>(state);
  }

private:
  std::shared_ptr<HostState> state;
};

} // namespace

Result<std::unique_ptr<Driver>>
createHostDriver(uint32_t numDevices, uint32_t numThreads,
                 std::span<const int> workerCpus) {
  if (numDevices == 0 || numDevices > maxDevices)
    return fail(ErrorKind::Usage,
                fmt::format("the host target cannot have {} devices: choose 1 "
                            "to {}",
                            numDevices, maxDevices));
  if (numThreads > maxThreads)
    return fail(ErrorKind::Usage,
                fmt::format("the host target cannot use {} threads: choose at "
                            "most {}",
                            numThreads, maxThreads));
  if (numThreads == 0)
    numThreads = std::min({numDevices, usableCores(), maxThreads});
  try {
    return std::make_unique<HostDriver>(
        std::make_shared<HostState>(numDevices, numThreads, workerCpus));
  } catch (const std::system_error &error) {
    return fail(ErrorKind::Absent,
                fmt::format("the system refuses {} threads ({}): use fewer",
                            numThreads, error.what()));
  }
}

} // namespace mgpu::device
