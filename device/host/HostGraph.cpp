// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/HostGraph.h"

#include "device/api/CopyNest.h"
#include "device/api/HostFunctions.h"
#include "device/host/BlockTeam.h"
#include "device/host/HostCollective.h"
#include "device/host/RemoteCollective.h"
#include "support/Clock.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <functional>
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

namespace {

struct KernelWork {
  kernels::HostKernelEntry entry;
  std::vector<uint64_t> arguments;
  kernels::HostLaunch launch;
  static void run(void *self) {
    auto *work = static_cast<KernelWork *>(self);
    work->entry(work->arguments.data(), &work->launch);
  }
};

template <typename T>
void runWork(void *self) {
  static_cast<T *>(self)->run();
}

void runNothing(void *) {}

/// Nothing is sent once a message failed: the replay is over all the sooner.
struct RemoteWork {
  std::unique_ptr<RemoteCollective> collective;
  std::shared_ptr<HostState> state;
  void run() {
    if (state->fault)
      return;
    if (Result<void> ok = collective->run(); !ok)
      state->fault = std::move(ok.error());
  }
};

/// A kernel that may fail. Nothing is executed once another kernel of the
/// replay found a fault.
struct FallibleWork {
  std::function<Result<void>()> execute;
  std::string name, place;
  std::shared_ptr<KernelFault> fault;
  void run() {
    if (fault->isThere())
      return;
    if (Result<void> ok = execute(); !ok)
      fault->set(
          {ok.error().kind, fmt::format("node '{}'{}: {}", name,
                                        place.empty() ? "" : " (" + place + ")",
                                        ok.error().message)});
  }
};

/// Stands in for a node whose begin and end an observer is told.
struct ObservedOp {
  Op op;
  NodeObserver *observer;
  GraphNodeId node;
  uint32_t queue;
  static void run(void *self) {
    auto *observed = static_cast<ObservedOp *>(self);
    if (!observed->observer->begin(observed->node, observed->queue))
      return;
    observed->op.function(observed->op.context);
    observed->observer->end(observed->node, observed->queue);
  }
};

/// Reads the clock before and after each node, and tells another observer.
class NodeClock final : public NodeObserver {
public:
  NodeClock(NodeObserver *other, std::vector<NodeTiming> &timings)
      : other(other), timings(timings) {}
  bool begin(GraphNodeId node, uint32_t queue) override {
    timings[node.value] = {node, queue, microsecondsSince(start), 0};
    return !other || other->begin(node, queue);
  }
  void end(GraphNodeId node, uint32_t queue) override {
    timings[node.value].endUs = microsecondsSince(start);
    if (other)
      other->end(node, queue);
  }

private:
  const Clock::time_point start = Clock::now();
  NodeObserver *other;
  std::vector<NodeTiming> &timings;
};

class HostExec final : public GraphExec {
public:
  HostExec(std::shared_ptr<HostState> state,
           std::vector<std::shared_ptr<void>> works,
           std::span<const ProgramNode> nodes,
           std::shared_ptr<KernelFault> kernelFault)
      : state(std::move(state)), works(std::move(works)),
        kernelFault(std::move(kernelFault)),
        program(buildProgram(nodes, this->state->pool.numQueues())) {
    setJob(nullptr);
  }

  Result<void> launch() override {
    if (running.exchange(true, std::memory_order_acquire))
      return fail(ErrorKind::Usage,
                  "this graph is being replayed already: one replay of a "
                  "graph at a time");
    state->pool.run(*job);
    std::optional<Error> found = kernelFault->take();
    running.store(false, std::memory_order_release);
    if (found)
      return fail(std::move(*found));
    return state->fault ? fail(*state->fault) : Result<void>();
  }

  Result<void> observe(NodeObserver *to) override {
    setJob(to);
    return {};
  }

  Result<void> launchTimed(std::vector<NodeTiming> &timings) override {
    timings.assign(program.serial.size(), {});
    NodeObserver *before = observer;
    NodeClock clock(before, timings);
    setJob(&clock);
    Result<void> done = launch();
    toldLast = nullptr; // the clock is gone, and another may have its address
    setJob(before);
    return done;
  }

private:
  /// Calls of the nodes, or of what tells an observer of each.
  struct Calls {
    std::vector<ObservedOp> observed; ///< by node, where there is an observer
    std::vector<Op> serial;
    std::vector<std::vector<Op>> queues;
    ReplayJob job;
  };

  /// Sets what launch() calls. Nothing is made anew for an observer that was
  /// the last one, nor for none.
  void setJob(NodeObserver *to) {
    if (to && to != toldLast)
      make(watched, to);
    else if (!to && !plain.job.program)
      make(plain, nullptr);
    toldLast = to ? to : toldLast;
    observer = to;
    job = to ? &watched.job : &plain.job;
  }

  void make(Calls &calls, NodeObserver *to) {
    calls = {};
    calls.serial = program.serial;
    if (to) // in one piece, as the ops have addresses of it
      calls.observed.resize(calls.serial.size());
    for (uint32_t queue = 0; queue < program.queues.size(); ++queue) {
      calls.queues.emplace_back();
      for (uint32_t id : program.queues[queue].nodes) {
        Op &op = calls.serial[id];
        if (to) {
          calls.observed[id] = {op, to, {id}, queue};
          op = {ObservedOp::run, &calls.observed[id]};
        }
        calls.queues.back().push_back(op);
      }
    }
    calls.job = {&program, calls.serial.data(), {}};
    for (const std::vector<Op> &ops : calls.queues)
      calls.job.queues.push_back(ops.data());
  }

  std::shared_ptr<HostState> state;
  std::vector<std::shared_ptr<void>> works;
  std::shared_ptr<KernelFault> kernelFault;
  WorkerProgram program;
  NodeObserver *observer = nullptr;
  const NodeObserver *toldLast = nullptr; ///< whom `watched` is for
  Calls plain, watched;
  const ReplayJob *job = nullptr;
  std::atomic<bool> running{false};
};

tl::unexpected<Error> inNode(std::string_view name, const Error &error) {
  return fail(error.kind, fmt::format("node '{}': {}", name, error.message));
}

} // namespace

Result<void>
HostGraph::checkNode(std::string_view name, DeviceId device, bool hostAllowed,
                     std::span<const GraphNodeId> dependencies) const {
  if (spent)
    return fail(ErrorKind::Usage,
                fmt::format("node '{}' comes after the graph was instantiated: "
                            "start a new graph",
                            name));
  if (nodes.size() >= (size_t(1) << 30))
    return fail(ErrorKind::Unsupported,
                "a graph of more than 2^30 nodes is not supported");
  if (device.value >= int32_t(state->numDevices) ||
      (device.isHost() && !hostAllowed))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' is on device {}, but the devices are 0 "
                            "to {}",
                            name, device.value, state->numDevices - 1));
  for (GraphNodeId dependency : dependencies)
    if (dependency.value >= nodes.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("node '{}' depends on node {}, which does not "
                              "exist yet: create it first",
                              name, dependency.value));
  return {};
}

Result<void> HostGraph::checkMemory(const std::byte *base,
                                    const Box &box) const {
  MGPU_TRY(checkBox(box));
  return state->memory.check(base, box);
}

uint32_t HostGraph::queueOf(DeviceId device) const {
  const uint32_t first = state->part ? state->part->here.first : 0;
  return device.isHost() ? 0
                         : (uint32_t(device.value) - first) % state->numThreads;
}

GraphNodeId HostGraph::append(uint32_t queue, Op op,
                              std::span<const GraphNodeId> dependencies) {
  ProgramNode node;
  node.queue = queue;
  node.op = op;
  for (GraphNodeId dependency : dependencies)
    node.dependencies.push_back(dependency.value);
  nodes.push_back(std::move(node));
  return {uint32_t(nodes.size() - 1)};
}

Result<GraphNodeId>
HostGraph::addKernel(const KernelNodeParams &params,
                     std::span<const GraphNodeId> dependencies) {
  MGPU_TRY(checkNode(params.name, params.device, false, dependencies));
  if (params.kernel.value >= state->kernels.size())
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' calls kernel {}, but {} are loaded",
                            params.name, params.kernel.value,
                            state->kernels.size()));
  const KernelObject &kernel = state->kernels[params.kernel.value];
  if (kernel.ptx())
    return addPtx(params, dependencies);
  if (kernel.call())
    return addFunction(params, *kernel.call(), dependencies);
  Dim3 grid = params.grid;
  GridPart part = params.part.value_or(GridPart::whole(grid));
  if (!part.fits(grid))
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' runs blocks outside its grid of {} x {} "
                            "x {}",
                            params.name, grid.x, grid.y, grid.z));
  if (part != GridPart::whole(grid) && !kernel.takesParts())
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' runs a part of a grid, which its kernel "
                            "was built too long ago for: compile it again",
                            params.name));
  unsigned __int128 blocks =
      kernels::blocksAlong(kernel.shape(), 0, part.count.x);
  blocks *= kernels::blocksAlong(kernel.shape(), 1, part.count.y);
  blocks *=
      kernels::blocksAlong(kernel.shape(), 2, part.count.z); // each below 2^42
  if (blocks > UINT64_MAX)
    return fail(ErrorKind::Invalid,
                fmt::format("node '{}' has a grid of {} x {} x {} blocks, more "
                            "than 2^64",
                            params.name, grid.x, grid.y, grid.z));
  if (blocks == 0)
    return append(queueOf(params.device), {runNothing, nullptr}, dependencies);
  const kernels::HostLaunch launch{{grid.x, grid.y, grid.z},
                                   0,
                                   0,
                                   uint64_t(blocks),
                                   {part.first.x, part.first.y, part.first.z},
                                   {part.count.x, part.count.y, part.count.z}};
  if (kernel.awaitsOthers() && blocks > 1)
    return addTeam(params, launch, dependencies);
  auto work = std::make_shared<KernelWork>(
      KernelWork{kernel.entry(), params.arguments, launch});
  works.push_back(work);
  return append(queueOf(params.device), {KernelWork::run, work.get()},
                dependencies);
}

Result<GraphNodeId>
HostGraph::addPtx(const KernelNodeParams &params,
                  std::span<const GraphNodeId> dependencies) {
  const std::shared_ptr<PtxKernel> &kernel =
      state->kernels[params.kernel.value].ptx();
  MGPU_TRY_ASSIGN(kernels::ptx::LaunchOptions options,
                  kernel->launchOf(params));
  if (options.grid.volume() == 0)
    return append(queueOf(params.device), {runNothing, nullptr}, dependencies);
  return addFallible(
      params,
      [kernel, options = std::move(options), device = params.device] {
        return kernel->run(device, options);
      },
      dependencies);
}

Result<GraphNodeId>
HostGraph::addFunction(const KernelNodeParams &params, const HostCall &call,
                       std::span<const GraphNodeId> dependencies) {
  auto bound = BoundCall::bind(call, params.arguments);
  if (!bound)
    return inNode(params.name, bound.error());
  for (const FunctionTensor &tensor : bound->all()) {
    const auto *first = static_cast<const std::byte *>(tensor.data);
    if (std::ranges::none_of(params.memory, [&](const KernelMemory &memory) {
          return first >= memory.base &&
                 first + tensor.bytes <= memory.base + memory.bytes;
        }))
      return fail(ErrorKind::Invalid,
                  fmt::format("node '{}' gives '{}' a tensor that reaches "
                              "beyond its buffer",
                              params.name, call.name));
  }
  return addFallible(
      params, [call = std::move(*bound)] { return call.run(); }, dependencies);
}

GraphNodeId HostGraph::addFallible(const KernelNodeParams &params,
                                   std::function<Result<void>()> execute,
                                   std::span<const GraphNodeId> dependencies) {
  auto work = std::make_shared<FallibleWork>(
      FallibleWork{std::move(execute), params.name, params.place, fault});
  works.push_back(work);
  return append(queueOf(params.device), {runWork<FallibleWork>, work.get()},
                dependencies);
}

Result<GraphNodeId>
HostGraph::addTeam(const KernelNodeParams &params,
                   const kernels::HostLaunch &launch,
                   std::span<const GraphNodeId> dependencies) {
  if (launch.lastBlock > BlockTeam::mostBlocks)
    return fail(ErrorKind::Unsupported,
                fmt::format("node '{}' has {} blocks that may wait for each "
                            "other; the host target runs at most {} at the "
                            "same time",
                            params.name, launch.lastBlock,
                            BlockTeam::mostBlocks));
  auto team = BlockTeam::create(state->kernels[params.kernel.value].entry(),
                                params.arguments, launch);
  if (!team)
    return inNode(params.name, team.error());
  std::shared_ptr<BlockTeam> work = std::move(*team);
  works.push_back(work);
  return append(queueOf(params.device), {runWork<BlockTeam>, work.get()},
                dependencies);
}

Result<GraphNodeId>
HostGraph::addCopy(const CopyNodeParams &params,
                   std::span<const GraphNodeId> dependencies) {
  MGPU_TRY(checkNode(params.name, params.device, true, dependencies));
  for (auto [base, box] : {std::pair{(const std::byte *)params.destination,
                                     &params.destinationBox},
                           std::pair{params.source, &params.sourceBox}})
    if (Result<void> ok = checkMemory(base, *box); !ok)
      return inNode(params.name, ok.error());
  Result<StridedCopy> copy =
      StridedCopy::create(params.destination, params.destinationBox,
                          params.source, params.sourceBox);
  if (!copy)
    return inNode(params.name, copy.error());
  auto work = std::make_shared<StridedCopy>(std::move(*copy));
  works.push_back(work);
  return append(queueOf(params.device), {runWork<StridedCopy>, work.get()},
                dependencies);
}

Result<GraphNodeId>
HostGraph::addCollective(const CollectiveNodeParams &params,
                         std::span<const GraphNodeId> dependencies) {
  for (const CollectiveMemberParams &member : params.members) {
    MGPU_TRY(checkNode(params.name, member.device, state->part.has_value(),
                       dependencies));
    // A side the kind does not use may be left empty, so only what has an
    // address is checked here.
    if (member.send)
      if (Result<void> ok = checkMemory(member.send, member.sendBox); !ok)
        return inNode(params.name, ok.error());
    if (member.recv)
      if (Result<void> ok = checkMemory(member.recv, member.recvBox); !ok)
        return inNode(params.name, ok.error());
  }
  if (state->part && RemoteCollective::isRemote(params, *state->part))
    return addRemote(params, dependencies);
  Result<std::unique_ptr<Collective>> collective = Collective::create(params);
  if (!collective)
    return inNode(params.name, collective.error());
  std::shared_ptr<Collective> work = std::move(*collective);
  works.push_back(work);
  return append(queueOf(params.members[0].device),
                {runWork<Collective>, work.get()}, dependencies);
}

Result<GraphNodeId>
HostGraph::addRemote(const CollectiveNodeParams &params,
                     std::span<const GraphNodeId> dependencies) {
  auto collective = RemoteCollective::create(params, *state->part);
  if (!collective)
    return inNode(params.name, collective.error());
  auto work =
      std::make_shared<RemoteWork>(RemoteWork{std::move(*collective), state});
  works.push_back(work);
  return append(state->numThreads, {runWork<RemoteWork>, work.get()},
                dependencies);
}

Result<GraphNodeId>
HostGraph::addCall(DeviceId device, void (*function)(void *), void *context,
                   std::span<const GraphNodeId> dependencies) {
  MGPU_TRY(checkNode("call", device, true, dependencies));
  if (!function)
    return fail(ErrorKind::Invalid, "a call node has no function");
  return append(queueOf(device), {function, context}, dependencies);
}

Result<std::unique_ptr<GraphExec>> HostGraph::instantiate() {
  if (spent)
    return fail(ErrorKind::Usage, "this graph was instantiated already: "
                                  "start a new graph");
  spent = true;
  auto exec = std::make_unique<HostExec>(state, std::move(works), nodes, fault);
  nodes.clear();
  return exec;
}

} // namespace mgpu::device
