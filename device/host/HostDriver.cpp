// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostDriver.h"

#include "device/host/HostGraph.h"
#include "support/Affinity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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
    uint32_t devices = state->numDevices, threads = state->numThreads;
    return fmt::format("host: {} virtual device{} on {} thread{}", devices,
                       devices == 1 ? "" : "s", threads,
                       threads == 1 ? "" : "s");
  }

  std::optional<DevicePart> part() const override {
    return state->part ? std::optional(state->part->here) : std::nullopt;
  }

  Result<void> checkAlive() const override {
    return state->fault ? fail(*state->fault) : Result<void>();
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

static Result<std::unique_ptr<Driver>>
createDriver(uint32_t numDevices, uint32_t numThreads,
             std::span<const int> workerCpus, std::optional<HostPart> part) {
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
    numThreads = std::min({part ? std::max(part->here.count, 1u) : numDevices,
                           usableCores(), maxThreads});
  try {
    return std::make_unique<HostDriver>(std::make_shared<HostState>(
        numDevices, numThreads, workerCpus, std::move(part)));
  } catch (const std::system_error &error) {
    return fail(ErrorKind::Absent,
                fmt::format("the system refuses {} threads ({}): use fewer",
                            numThreads, error.what()));
  }
}

Result<std::unique_ptr<Driver>>
createHostDriver(uint32_t numDevices, uint32_t numThreads,
                 std::span<const int> workerCpus) {
  return createDriver(numDevices, numThreads, workerCpus, std::nullopt);
}

Result<std::unique_ptr<Driver>> createHostDriver(HostPart part,
                                                 uint32_t numThreads) {
  const auto numDevices = std::max(uint32_t(part.ranks.size()), 1u);
  return createDriver(numDevices, numThreads, {}, std::move(part));
}

HostPart hostPart(uint32_t numDevices, MessageRendezvous &others) {
  const uint64_t ranks = others.count();
  std::vector<uint32_t> shares(ranks);
  uint32_t place = 0;
  for (uint32_t rank : others.ranksByNode()) {
    shares[rank] = uint32_t((numDevices + ranks - 1 - place) / ranks);
    ++place;
  }
  return hostPart(shares, others);
}

HostPart hostPart(std::span<const uint32_t> shares, MessageRendezvous &others) {
  HostPart out;
  const uint32_t own = others.rank();
  for (uint32_t rank : others.ranksByNode()) {
    const auto first = uint32_t(out.ranks.size());
    out.ranks.resize(first + shares[rank], rank);
    if (rank == own)
      out.here = {first, shares[rank], own == 0, false};
  }
  out.others = &others;
  return out;
}

Result<uint32_t> hostTargetDevices(const std::string &target,
                                   uint32_t numDevices) {
  if (std::string kind = target.substr(0, target.find(':'));
      !kind.empty() && kind != "host")
    return fail(ErrorKind::Usage,
                fmt::format("unknown target '{}'; use host or host:N", target));
  uint32_t count = numDevices;
  if (size_t colon = target.find(':'); colon != std::string::npos) {
    const char *first = target.data() + colon + 1;
    const char *last = target.data() + target.size();
    auto [end, error] = std::from_chars(first, last, count);
    if (error != std::errc() || end != last || count == 0)
      return fail(
          ErrorKind::Usage,
          fmt::format("target '{}': N in host:N is a number of devices, "
                      "at least 1",
                      target));
  }
  if (count < numDevices)
    return fail(ErrorKind::Absent,
                fmt::format("the program is of {} devices, target '{}' has {}",
                            numDevices, target, count));
  return std::max(count, 1u);
}

Result<std::unique_ptr<Driver>> openHostTarget(const std::string &target,
                                               uint32_t numDevices,
                                               uint32_t numThreads) {
  MGPU_TRY_ASSIGN(uint32_t devices, hostTargetDevices(target, numDevices));
  return createHostDriver(devices, numThreads);
}

} // namespace mgpu::device
