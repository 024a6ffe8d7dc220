// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/Replayer.h"

#include "capture/graph/Communication.h"
#include "support/Assert.h"
#include "support/Clock.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::capture {

using namespace planner;

/// Whether it is memory of the caller's on a device.
static bool isOnDevice(const Buffer &buffer) {
  return buffer.role == BufferRole::Argument && !buffer.device.isHost();
}

HostLayout hostLayout(const Dag &dag) {
  constexpr uint64_t alignment = 256, page = 4096;
  HostLayout layout;
  for (const Buffer &buffer : dag.buffers) {
    layout.offsets.push_back(buffer.device.isHost() ? layout.bytes : 0);
    if (buffer.device.isHost())
      layout.bytes +=
          (buffer.sizeBytes + alignment - 1) / alignment * alignment;
  }
  layout.bytes = (layout.bytes + page - 1) / page * page;
  return layout;
}

static Result<void> checkConstant(const Buffer &buffer) {
  if (buffer.role == BufferRole::Constant &&
      buffer.contents.size() != buffer.sizeBytes)
    return fail(ErrorKind::Invalid,
                fmt::format("constant '{}' has {} bytes, but {} are given",
                            buffer.name, buffer.sizeBytes,
                            buffer.contents.size()));
  return {};
}

Result<void> writeConstants(const Dag &dag, const HostLayout &layout,
                            std::span<std::byte> memory) {
  for (size_t k = 0; k < dag.buffers.size(); ++k) {
    const Buffer &buffer = dag.buffers[k];
    MGPU_TRY(checkConstant(buffer));
    if (buffer.device.isHost())
      std::copy_n(buffer.contents.begin(),
                  std::min<uint64_t>(buffer.contents.size(), buffer.sizeBytes),
                  memory.begin() + ptrdiff_t(layout.offsets[k]));
  }
  return {};
}

/// The arenas of the devices that are here, and host buffers with what is in
/// them: memory of the driver's, or, where it is shared, where `layout` has
/// them in that of `part`. Arguments on devices have none yet.
static Result<BufferAddresses>
allocateBuffers(const Dag &dag, const Plan &plan, const HostLayout &layout,
                const Part &part, device::Driver &driver,
                std::vector<std::span<std::byte>> &own) {
  const GraphPart here(dag, driver.part());
  const bool isShared = !here.isAll() && !here.hasOwnHost();
  BufferAddresses addresses;
  uint64_t mostBytes = 0;
  for (uint32_t k = 0; k < dag.numDevices; ++k)
    mostBytes = std::max(mostBytes, plan.arenaBytes[k]);
  for (uint32_t k = 0; k < dag.numDevices; ++k) {
    if (!here.holds(DeviceId{int32_t(k)})) {
      addresses.arenas.push_back(nullptr);
      continue;
    }
    MGPU_TRY_ASSIGN(
        std::byte * arena,
        driver.allocateArena({int32_t(k)}, plan.arenaBytes[k], mostBytes));
    addresses.arenas.push_back(arena);
  }
  for (const Buffer &buffer : dag.buffers) {
    std::span<std::byte> bytes;
    const BufferId id{uint32_t(own.size())};
    if (buffer.device.isHost() && isShared) {
      MGPU_CHECK(layout.offsets[own.size()] + buffer.sizeBytes <=
                     part.hostMemory.size(),
                 "a host buffer lies within what its layout takes");
      bytes = part.hostMemory.subspan(layout.offsets[own.size()],
                                      size_t(buffer.sizeBytes));
    } else if (buffer.device.isHost() && here.holds(id)) {
      MGPU_TRY(checkConstant(buffer));
      MGPU_TRY_ASSIGN(std::byte * memory,
                      driver.allocate(DeviceId::host(), buffer.sizeBytes));
      bytes = {memory, size_t(buffer.sizeBytes)};
      std::copy_n(buffer.contents.begin(),
                  std::min(buffer.contents.size(), bytes.size()),
                  bytes.begin());
    }
    own.push_back(bytes);
    addresses.own.push_back(bytes.data());
  }
  MGPU_CHECK(addresses.arenas.size() == dag.numDevices &&
                 addresses.own.size() == dag.buffers.size(),
             "every device and every buffer has an address, if a null one");
  return addresses;
}

Result<Replayer>
Replayer::create(const Dag &dag, const Plan &plan,
                 std::span<const std::vector<std::byte>> kernelObjects,
                 device::Driver &driver, Part part, Arguments arguments) {
  const std::optional<device::DevicePart> only = driver.part();
  if (!only && dag.numDevices > driver.numDevices())
    return fail(ErrorKind::Absent,
                fmt::format("the program needs {} devices, but the target has "
                            "{}: choose a larger target",
                            dag.numDevices, driver.numDevices()));
  if (plan.arenaBytes.size() < dag.numDevices)
    return fail(ErrorKind::Invalid,
                fmt::format("the plan is for {} devices, the program for {}: "
                            "plan it again",
                            plan.arenaBytes.size(), dag.numDevices));
  if (kernelObjects.size() != dag.kernels.size())
    return fail(ErrorKind::Invalid,
                fmt::format("the program has {} kernels, but {} were compiled: "
                            "compile it again",
                            dag.kernels.size(), kernelObjects.size()));
  Replayer replayer;
  replayer.loop = dag.loop;
  replayer.setsInductions =
      !only || only->hasHost || !only->sharesHost || part.hasOwnMemory;
  HostLayout layout;
  if (only && !only->sharesHost)
    MGPU_TRY(checkAcrossHosts(dag));
  if (only && only->sharesHost) {
    MGPU_TRY(checkAcrossRanks(dag));
    layout = hostLayout(dag);
    if (part.hostMemory.size() != layout.bytes)
      return fail(ErrorKind::Internal,
                  fmt::format("{} bytes of host memory for {}",
                              part.hostMemory.size(), layout.bytes));
  }
  MGPU_TRY_ASSIGN(
      BufferAddresses addresses,
      allocateBuffers(dag, plan, layout, part, driver, replayer.own));
  std::vector<device::KernelHandle> kernels;
  for (size_t k = 0; k < kernelObjects.size(); ++k) {
    MGPU_TRY_ASSIGN(device::KernelHandle handle,
                    driver.loadKernel(dag.kernels[k].name, kernelObjects[k]));
    kernels.push_back(handle);
  }
  for (const Buffer &buffer : dag.buffers)
    replayer.devices.push_back(buffer.device);
  replayer.isExposed.resize(dag.buffers.size());
  replayer.part = std::move(part);
  replayer.driver = &driver;
  replayer.addresses = std::move(addresses);
  replayer.kernels = std::move(kernels);
  const bool hasOnDevice = std::ranges::any_of(dag.buffers, isOnDevice);
  if (!hasOnDevice || arguments == Arguments::Own)
    MGPU_TRY(replayer.complete(dag, plan));
  return replayer;
}

Result<void> Replayer::complete(const Dag &dag, const Plan &plan) {
  if (isComplete)
    return {};
  for (uint32_t k = 0; k < dag.buffers.size(); ++k)
    if (isOnDevice(dag.buffers[k]))
      MGPU_TRY(ensureMemory(dag, {k}));
  for (Phase phase : allPhases) {
    MGPU_TRY_ASSIGN(
        graphs[size_t(phase)],
        buildGraph(plan, dag, phase, addressesIn(phase), kernels, *driver));
    MGPU_TRY(observePhase(phase));
  }
  isComplete = true;
  return {};
}

Result<void> Replayer::ensureMemory(const Dag &dag, BufferId id) {
  const Buffer &buffer = dag.buffer(id);
  const bool isHere = GraphPart(dag, driver->part()).holds(buffer.device);
  if (!isOnDevice(buffer) || addresses.own[id.value] || !isHere)
    return {};
  MGPU_TRY_ASSIGN(std::byte * memory,
                  driver->allocate(buffer.device, buffer.sizeBytes));
  addresses.own[id.value] = memory;
  own[id.value] = {memory, size_t(buffer.sizeBytes)};
  return {};
}

Result<void> checkRebind(const Dag &dag, std::span<const Rebinding> moved) {
  for (const auto &[id, memory] : moved)
    if (id.value >= dag.buffers.size() || isInArena(dag.buffer(id)) ||
        memory.size() != dag.buffer(id).sizeBytes)
      return fail(ErrorKind::Usage,
                  fmt::format("{} bytes of the caller's cannot be a buffer of "
                              "the program: give as many as it has",
                              memory.size()));
  return {};
}

static bool isWritten(const Dag &dag, BufferId id) {
  return std::ranges::any_of(dag.nodes, [&](const DagNode &node) {
    return std::ranges::any_of(node.uses, [&](const BufferUse &use) {
      return use.buffer == id && use.writes;
    });
  });
}

/// Usage where the memory of one is then another buffer's, or a part of it, and
/// one of them is written: what uses the two is in no order.
Result<void> Replayer::checkApart(const Dag &dag,
                                  std::span<const Rebinding> moved) const {
  std::vector<std::span<std::byte>> then = own;
  for (const auto &[id, memory] : moved)
    then[id.value] = memory;
  for (const auto &[id, memory] : moved) {
    const auto first = uintptr_t(memory.data()), last = first + memory.size();
    for (uint32_t k = 0; k < then.size(); ++k) {
      const auto otherFirst = uintptr_t(then[k].data()),
                 otherLast = otherFirst + then[k].size();
      if (k != id.value && first < otherLast && otherFirst < last &&
          (isWritten(dag, id) || isWritten(dag, {k})))
        return fail(ErrorKind::Usage,
                    fmt::format("the {} bytes overlap those of '{}': what the "
                                "program writes is no other argument's",
                                memory.size(), dag.buffer({k}).name));
    }
  }
  return {};
}

/// Lets the driver use memory of the caller's on a device that is here.
Result<void> Replayer::adopt(const Dag &dag, BufferId id,
                             std::span<std::byte> memory) {
  const Buffer &buffer = dag.buffer(id);
  if (buffer.device.isHost() ||
      !GraphPart(dag, driver->part()).holds(buffer.device))
    return {};
  return driver->adopt(buffer.device, memory);
}

Result<void> Replayer::rebind(const Dag &dag, const Plan &plan,
                              std::span<const Rebinding> moved) {
  MGPU_TRY(checkRebind(dag, moved));
  MGPU_TRY(checkApart(dag, moved));
  for (const auto &[id, memory] : moved)
    MGPU_TRY(adopt(dag, id, memory));
  const std::vector<std::byte *> before = addresses.own;
  std::vector<BufferId> ids;
  for (const auto &[id, memory] : moved) {
    addresses.own[id.value] = memory.data();
    ids.push_back(id);
  }
  if (isComplete)
    if (Result<void> ok = rebuild(dag, plan, ids); !ok) {
      addresses.own = before;
      return ok;
    }
  for (const auto &[id, memory] : moved) {
    own[id.value] = memory;
    borrowed.erase(id.value);
    isExposed[id.value] = true;
  }
  for (const auto &[id, memory] : moved)
    if (std::byte *old = before[id.value];
        old && !devices[id.value].isHost() &&
        std::ranges::find(addresses.own, old) == addresses.own.end())
      driver->forget(old);
  return {};
}

/// Loading fills the arenas, wherever replays then find the same bytes.
BufferAddresses Replayer::addressesIn(Phase phase) const {
  BufferAddresses out = addresses;
  if (phase == Phase::Load)
    for (const auto &[id, from] : borrowed)
      if (!devices[id].isHost())
        out.own[id] = nullptr;
  return out;
}

/// The graphs that use buffers, with their addresses as they are now.
Result<void> Replayer::rebuild(const Dag &dag, const Plan &plan,
                               std::span<const BufferId> moved) {
  std::vector<bool> isMoved(dag.buffers.size());
  for (BufferId id : moved)
    isMoved[id.value] = true;
  // In no matter whose part: what ranks do with each other's, NCCL captures on
  // all of them or on none.
  auto isUsed = [&](Phase phase) {
    return std::any_of(dag.nodes.begin(), dag.nodes.end(),
                       [&](const DagNode &node) {
                         return node.phase == phase &&
                                std::any_of(node.uses.begin(), node.uses.end(),
                                            [&](const BufferUse &use) {
                                              return isMoved[use.buffer.value];
                                            });
                       });
  };
  for (Phase phase : allPhases) {
    ExecutableGraph &graph = graphs[size_t(phase)];
    if (!isUsed(phase))
      continue;
    if (driver->part()) // or one would be changed and another made anew
      graph.exec.reset();
    Result<void> ok = rebuildGraph(plan, dag, phase, addressesIn(phase),
                                   kernels, *driver, graph);
    if (!ok) {
      graph.exec.reset(); // others may have the new address already
      lost = "the program was lost when a buffer was replaced";
      return ok;
    }
    MGPU_TRY(observePhase(phase));
  }
  return {};
}

void Replayer::findPlaces(const Dag &dag, const Plan &plan,
                          std::vector<std::byte *> &places, Phase phase) const {
  places = addressesIn(phase).own;
  for (const Placement &placement : plan.placements) {
    const auto device = size_t(dag.buffer(placement.buffer).device.value);
    if (addresses.arenas[device] && !places[placement.buffer.value])
      places[placement.buffer.value] =
          addresses.arenas[device] + placement.offset;
  }
}

Result<OutputHashes> Replayer::hashOutputs(const Dag &dag,
                                           const Plan &plan) const {
  std::vector<std::byte *> places;
  findPlaces(dag, plan, places);
  const GraphPart here(dag, driver->part());
  std::vector<std::byte> copy;
  return OutputHashes::of(
      dag, [&](BufferId id) -> Result<std::span<const std::byte>> {
        const Buffer &buffer = dag.buffer(id);
        const std::byte *place = places[id.value];
        if (!place || !here.holds(buffer.device))
          return std::span<const std::byte>();
        if (isHosts(id))
          return std::span(place, size_t(buffer.sizeBytes));
        copy.resize(buffer.sizeBytes);
        MGPU_TRY(driver->transfer(copy.data(), place, copy.size()));
        return std::span<const std::byte>(copy);
      });
}

Result<void> Replayer::observe(ReplayObserver *to) {
  observer = to;
  for (Phase phase : allPhases)
    MGPU_TRY(observePhase(phase));
  return {};
}

/// Gives the graph of a phase, where it is built, the observer as it is now.
Result<void> Replayer::observePhase(Phase phase) {
  const ExecutableGraph &graph = graphs[size_t(phase)];
  std::unique_ptr<PhaseObserver> &own = observers[size_t(phase)];
  if (!graph.exec || (!observer && !own))
    return {};
  if (!observer) // `own` may be given again
    return graph.exec->observe(nullptr);
  if (own && own->to == observer && own->nodes == graph.dagNodes)
    return graph.exec->observe(own.get());
  auto next = std::make_unique<PhaseObserver>();
  next->nodes = graph.dagNodes;
  next->to = observer;
  MGPU_TRY(graph.exec->observe(next.get()));
  own = std::move(next);
  return {};
}

Result<device::GraphExec *> Replayer::exec(Phase phase) const {
  MGPU_TRY(checkAlive());
  MGPU_CHECK(graphs[size_t(phase)].exec,
             "a program that is not lost was completed before it runs");
  return graphs[size_t(phase)].exec.get();
}

Result<void> Replayer::checkAlive() const {
  MGPU_TRY(driver->checkAlive());
  if (!lost.empty())
    return fail(ErrorKind::Invalid, lost + ": open it again");
  return {};
}

/// Whether the host reaches it.
bool Replayer::isHosts(BufferId id) const {
  return devices[id.value].isHost() || driver->architecture().empty();
}

std::span<std::byte> Replayer::hostBuffer(BufferId id) {
  return id.value < own.size() && isHosts(id) ? own[id.value]
                                              : std::span<std::byte>();
}

Result<std::span<std::byte>> Replayer::memory(const Dag &dag, BufferId id) {
  MGPU_TRY(ensureMemory(dag, id));
  return own[id.value];
}

/// `host` is copied to or from as many bytes of the buffer, where they are
/// here.
Result<void> Replayer::transfer(const Dag &dag, BufferId id,
                                std::span<std::byte> host, bool isWrite) {
  MGPU_TRY_ASSIGN(const std::span<std::byte> memory, this->memory(dag, id));
  if (memory.empty())
    return {};
  MGPU_CHECK(memory.size() == host.size(), "all bytes of a buffer are copied");
  std::byte *to = isWrite ? memory.data() : host.data();
  const std::byte *from = isWrite ? host.data() : memory.data();
  if (!isHosts(id))
    return driver->transfer(to, from, memory.size());
  std::memcpy(to, from, memory.size());
  return {};
}

Result<void> Replayer::run(Phase phase) {
  MGPU_TRY(checkAlive()); // also where there is nothing to do
  MGPU_TRY(meet(phase));
  if (graphs[size_t(phase)].dagNodes.empty())
    return {};
  MGPU_TRY_ASSIGN(device::GraphExec * graph, exec(phase));
  return graph->launch();
}

Result<void> Replayer::setInductions(uint64_t trip) {
  if (loop.inductions.empty())
    return {};
  MGPU_TRY(meet(std::nullopt)); // the trip before has ended everywhere
  if (!setsInductions)
    return {};
  static_assert(std::endian::native == std::endian::little);
  for (const Induction &induction : loop.inductions) {
    std::span<std::byte> bytes = hostBuffer(induction.buffer);
    uint64_t value = induction.at(trip);
    std::memcpy(bytes.data(), &value, std::min(bytes.size(), sizeof(value)));
  }
  return {};
}

bool Replayer::findTripValues(uint64_t trip) {
  tripValues.clear();
  for (const Induction &induction : loop.inductions) {
    const std::span<std::byte> bytes = hostBuffer(induction.buffer);
    if (bytes.size() != 4 && bytes.size() != 8)
      return false;
    tripValues.push_back({bytes.data(), induction.at(trip), bytes.size()});
  }
  return true;
}

Result<void> Replayer::queueAll(
    const std::function<Result<void>(device::GraphExec &,
                                     std::span<const device::HostValue>)> &add,
    bool &isPartial) {
  bool isBegun = false;
  auto addPhase =
      [&](Phase phase,
          std::span<const device::HostValue> values) -> Result<void> {
    if (graphs[size_t(phase)].dagNodes.empty())
      return {};
    MGPU_TRY_ASSIGN(device::GraphExec * graph, exec(phase));
    const Result<void> added = add(*graph, values);
    isPartial = !added && isBegun;
    isBegun = true;
    return added;
  };
  MGPU_TRY(addPhase(Phase::Prologue, {}));
  for (uint64_t trip = 0; trip < loop.trips; ++trip) {
    findTripValues(trip);
    MGPU_TRY(addPhase(Phase::Replay, tripValues));
  }
  return addPhase(Phase::Epilogue, {});
}

Result<void> Replayer::queueRun(
    const std::function<Result<void>(
        device::GraphExec &, std::span<const device::HostValue>)> &add) {
  bool isPartial = false;
  Result<void> queued = queueAll(add, isPartial);
  if (isPartial)
    lost = "a part of a replay was queued, and not the rest (" +
           queued.error().message + ")";
  return queued;
}

Result<void> Replayer::replay() {
  if (loop.trips > 1 && !part.meet && driver->queuesLaunches() &&
      findTripValues(0)) {
    MGPU_TRY(checkAlive());
    const Result<void> queued =
        queueRun([](device::GraphExec &graph,
                    std::span<const device::HostValue> values) {
          return graph.launchNext(values);
        });
    const Result<void> finished = driver->finish();
    return queued ? finished : queued;
  }
  MGPU_TRY(run(Phase::Prologue));
  for (uint64_t trip = 0; trip < loop.trips; ++trip) {
    MGPU_TRY(setInductions(trip));
    MGPU_TRY(run(Phase::Replay));
  }
  return run(Phase::Epilogue);
}

bool Replayer::canEnqueue() {
  return !part.meet && driver->queuesLaunches() && findTripValues(0);
}

Result<void> hasNoStream() {
  return fail(ErrorKind::Unsupported,
              "a program on several GPUs has no single stream: use mgt_replay");
}

Result<void> isInNoGraph() {
  return fail(ErrorKind::Unsupported,
              "a program on several GPUs is in no single graph: replay it "
              "beside the capture");
}

Result<void> Replayer::enqueue(void *stream) {
  if (part.meet)
    return hasNoStream();
  if (!findTripValues(0))
    return fail(ErrorKind::Unsupported,
                "the number of each trip of the program's rolled loop has less "
                "than 32 bits, which cannot be queued: use mgt_replay, or "
                "unroll it (--roll-from 0)");
  MGPU_TRY(checkAlive());
  return queueRun(
      [&](device::GraphExec &graph, std::span<const device::HostValue> values) {
        return graph.enqueue(stream, values);
      });
}

Result<void> Replayer::captureInto(void *stream) {
  if (part.meet)
    return isInNoGraph();
  if (!loop.inductions.empty())
    return fail(ErrorKind::Unsupported,
                "the number of each trip of the program's rolled loop is "
                "written by the host: replay it beside the capture, or unroll "
                "it (--roll-from 0)");
  MGPU_TRY(checkAlive());
  bool isPartial = false;
  Result<void> captured = queueAll(
      [&](device::GraphExec &graph, std::span<const device::HostValue>) {
        return graph.captureInto(stream);
      },
      isPartial);
  if (isPartial)
    captured.error().message += "; a part of the replay is in the graph that "
                                "is captured: throw that graph away";
  return captured;
}

Result<std::optional<double>> Replayer::replaySpan() {
  std::optional<double> all = 0.0;
  auto add = [&](Phase phase) -> Result<void> {
    MGPU_TRY(meet(phase));
    if (graphs[size_t(phase)].dagNodes.empty())
      return {};
    MGPU_TRY_ASSIGN(device::GraphExec * graph, exec(phase));
    MGPU_TRY_ASSIGN(std::optional<double> us, graph->launchSpan());
    all = all && us ? std::optional<double>(*all + *us) : std::nullopt;
    return {};
  };
  MGPU_TRY(add(Phase::Prologue));
  for (uint64_t trip = 0; trip < loop.trips; ++trip) {
    MGPU_TRY(setInductions(trip));
    MGPU_TRY(add(Phase::Replay));
  }
  MGPU_TRY(add(Phase::Epilogue));
  return all;
}

Result<void> Replayer::runTimed(Phase phase, double offsetUs,
                                TimedReplay &into) {
  MGPU_TRY(meet(phase));
  const ExecutableGraph &graph = graphs[size_t(phase)];
  if (graph.dagNodes.empty())
    return {};
  MGPU_TRY_ASSIGN(device::GraphExec * launched, exec(phase));
  std::vector<device::NodeTiming> timings;
  MGPU_TRY(launched->launchTimed(timings));
  for (const device::NodeTiming &timing : timings)
    into.nodes.push_back({graph.dagNodes[timing.node.value], timing.queue,
                          offsetUs + timing.startUs, offsetUs + timing.endUs});
  for (device::HostSpan span : launched->hostSpans())
    into.host.push_back(
        {span.activity, offsetUs + span.startUs, offsetUs + span.endUs});
  return {};
}

Result<TimedReplay> Replayer::replayTimed() {
  TimedReplay timed;
  Clock::time_point start = Clock::now();
  MGPU_TRY(runTimed(Phase::Prologue, microsecondsSince(start), timed));
  for (uint64_t trip = 0; trip < loop.trips; ++trip) {
    MGPU_TRY(setInductions(trip));
    MGPU_TRY(trip == 0
                 ? runTimed(Phase::Replay, microsecondsSince(start), timed)
                 : run(Phase::Replay));
  }
  MGPU_TRY(runTimed(Phase::Epilogue, microsecondsSince(start), timed));
  return timed;
}

} // namespace mgpu::capture
