// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_HOSTGRAPH_H
#define MGPU_DEVICE_HOST_HOSTGRAPH_H

// Graphs of the host target. A node runs on one queue: queue = device modulo
// the number of threads; a collective runs on its first member's queue, a copy
// from host to host on queue 0. Messages to and from other processes have a
// queue and so a thread of their own, behind the others: kernels go on while
// messages are waited for.

#include "device/api/AddressMap.h"
#include "device/host/HostDriver.h"
#include "device/host/KernelObject.h"
#include "device/host/WorkerPool.h"

#include <functional>
#include <memory>
#include <vector>

namespace mgpu::device {

/// The memories of the devices and the host: zeroed allocations, 256-aligned,
/// freed together.
class HostMemory {
public:
  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes);
  /// An error if `base` lies in one of our allocations but `box` leaves it.
  /// Memory of others cannot be checked.
  Result<void> check(const std::byte *base, const Box &box) const {
    return addresses.check(base, box);
  }

private:
  struct Free {
    void operator()(std::byte *memory) const;
  };
  std::vector<std::unique_ptr<std::byte, Free>> blocks;
  AddressMap addresses;
  uint64_t totalBytes = 0;
};

/// The state that a driver, its graphs and their executables share.
struct HostState {
  HostState(uint32_t numDevices, uint32_t numThreads,
            std::span<const int> workerCpus, std::optional<HostPart> part)
      : numDevices(numDevices), numThreads(numThreads), part(std::move(part)),
        pool(numThreads + (this->part ? 1 : 0), 0, workerCpus) {}
  const uint32_t numDevices;
  const uint32_t numThreads;          ///< without that of messages
  const std::optional<HostPart> part; ///< none: all devices are here
  /// Why no message goes to other processes any more. Communication with them
  /// is one chain in every graph, so one thread at a time looks.
  std::optional<Error> fault;
  HostMemory memory;
  std::vector<KernelObject> kernels;
  WorkerPool pool;
};

class HostGraph final : public GraphDriver {
public:
  explicit HostGraph(std::shared_ptr<HostState> state)
      : state(std::move(state)) {}

  Result<GraphNodeId>
  addKernel(const KernelNodeParams &params,
            std::span<const GraphNodeId> dependencies) override;
  Result<GraphNodeId>
  addCopy(const CopyNodeParams &params,
          std::span<const GraphNodeId> dependencies) override;
  Result<GraphNodeId>
  addCollective(const CollectiveNodeParams &params,
                std::span<const GraphNodeId> dependencies) override;
  /// A plain call, for tests and benchmarks of the replay engine itself.
  /// `context` must outlive the executable graph.
  Result<GraphNodeId> addCall(DeviceId device, void (*function)(void *),
                              void *context,
                              std::span<const GraphNodeId> dependencies);
  /// Once per graph: the executable takes the nodes with it.
  Result<std::unique_ptr<GraphExec>> instantiate() override;

private:
  Result<void> checkNode(std::string_view name, DeviceId device,
                         bool hostAllowed,
                         std::span<const GraphNodeId> dependencies) const;
  Result<GraphNodeId> addPtx(const KernelNodeParams &params,
                             std::span<const GraphNodeId> dependencies);
  Result<GraphNodeId> addFunction(const KernelNodeParams &params,
                                  const HostCall &call,
                                  std::span<const GraphNodeId> dependencies);
  GraphNodeId addFallible(const KernelNodeParams &params,
                          std::function<Result<void>()> execute,
                          std::span<const GraphNodeId> dependencies);
  Result<GraphNodeId> addTeam(const KernelNodeParams &params,
                              const kernels::HostLaunch &launch,
                              std::span<const GraphNodeId> dependencies);
  Result<GraphNodeId> addRemote(const CollectiveNodeParams &params,
                                std::span<const GraphNodeId> dependencies);
  Result<void> checkMemory(const std::byte *base, const Box &box) const;
  uint32_t queueOf(DeviceId device) const;
  GraphNodeId append(uint32_t queue, Op op,
                     std::span<const GraphNodeId> dependencies);

  std::shared_ptr<HostState> state;
  std::vector<ProgramNode> nodes;
  std::vector<std::shared_ptr<void>> works; ///< contexts of the nodes
  std::shared_ptr<KernelFault> fault = std::make_shared<KernelFault>();
  bool spent = false;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_HOSTGRAPH_H
