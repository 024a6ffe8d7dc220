// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_GRAPHDRIVER_H
#define MGPU_DEVICE_API_GRAPHDRIVER_H

// A backend offers the rest of the runtime memory of its devices, loaded
// kernels, and executable graphs built node by node. device/host implements it
// with threads, device/cuda with CUDA Graphs.

#include "support/Collective.h"
#include "support/Result.h"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mgpu::device {

/// A node of the graph under construction; valid for its GraphDriver only.
struct GraphNodeId {
  uint32_t value = 0;
};

/// A loaded kernel; valid while its Driver lives.
struct KernelHandle {
  uint32_t value = 0;
};

/// A buffer that a launch is given.
struct KernelMemory {
  std::byte *base = nullptr;
  uint64_t bytes = 0;
  bool isWritten = false; ///< the launch is declared to write it
  std::string name;
};

struct KernelNodeParams {
  std::string name; ///< for error texts and traces
  DeviceId device;
  KernelHandle kernel;
  Dim3 grid;
  std::vector<uint64_t> arguments; ///< device addresses and scalar bits
  /// The blocks to run; none: all of them.
  std::optional<GridPart> part = std::nullopt;
  /// Before its one dependency, a kernel, has ended: the launch waits itself
  /// (Driver::awaits). A backend may make it begin after nonetheless.
  bool mayBeginEarly = false;
  /// The buffers of a kernel that a user wrote for GPUs, whose accesses a
  /// backend may check.
  std::vector<KernelMemory> memory{};
  /// "file:line:column" of the launch, for error texts; may be empty.
  std::string place{};
};

struct CopyNodeParams {
  std::string name;
  DeviceId device; ///< whose queue does the copy; host() for host to host
  std::byte *destination = nullptr;
  const std::byte *source = nullptr; ///< bases the boxes are relative to
  Box destinationBox, sourceBox;
  /// Whether it may begin early, like a kernel (Driver::earlyCopyBytes).
  bool mayBeginEarly = false;
};

struct CollectiveMemberParams {
  DeviceId device;
  const std::byte *send = nullptr;
  std::byte *recv = nullptr;
  Box sendBox, recvBox;
  /// Where `send` and `recv` are in the arena of their device, be it here or
  /// not; none: not in it, or the member has no such end.
  std::optional<uint64_t> sendInArena = std::nullopt,
                          recvInArena = std::nullopt;
  /// CollectiveSteps writes its recv. False for a member of another process,
  /// whose send may have no address where nobody here reads it.
  bool isHere = true;
};

struct CollectiveNodeParams {
  std::string name;
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  ElementType elementType = ElementType::F32;
  uint32_t root = 0;                           ///< broadcast
  std::vector<RankPair> pairs;                 ///< permute
  std::vector<CollectiveMemberParams> members; ///< by rank
};

/// When a node of a timed replay ran, from the replay's start.
struct NodeTiming {
  GraphNodeId node;
  uint32_t queue = 0; ///< the backend's queue or thread
  double startUs = 0, endUs = 0;
};

/// The calling thread's part in a timed replay, from the replay's start.
enum class HostActivity : uint8_t { Launch, Wait };
struct HostSpan {
  HostActivity activity = HostActivity::Launch;
  double startUs = 0, endUs = 0;
};

/// A value that a queued launch is to find in memory of allocate(host()).
struct HostValue {
  std::byte *at;    ///< aligned to its bytes
  uint64_t value;   ///< of which the low bytes count
  size_t bytes = 8; ///< 4 or 8
};

/// Told of each node of a replay by the thread that runs it, on the host.
class NodeObserver {
public:
  virtual ~NodeObserver() = default;
  /// Before the node; false leaves it out, and end() is not called.
  virtual bool begin(GraphNodeId node, uint32_t queue) = 0;
  virtual void end(GraphNodeId node, uint32_t queue) = 0;
};

/// An instantiated graph. launch() replays it and returns when it is done.
/// One launch at a time.
class GraphExec {
public:
  virtual ~GraphExec();
  virtual Result<void> launch() = 0;
  /// Queues a replay behind the work of a stream of the caller's, which the
  /// backend knows by `stream`, and returns; what the stream is given later
  /// follows it. It follows what was enqueued before of the same driver, in
  /// whatever stream, and `values` are written in between. Until
  /// Driver::finish(), nothing else may be launched. Unsupported unless the
  /// backend overrides it.
  virtual Result<void> enqueue(void *stream, std::span<const HostValue> values);
  /// Adds the graph as it is now to what a stream of the caller's is being
  /// captured into, behind what the stream has captured; what it captures later
  /// follows. Usage where it is not captured; Unsupported unless the backend
  /// overrides it.
  virtual Result<void> captureInto(void *stream);
  /// enqueue() in a stream of the driver's own. It returns once the launch
  /// before the last one has ended, so that one is always queued while another
  /// runs. Unsupported unless Driver::queuesLaunches().
  virtual Result<void> launchNext(std::span<const HostValue> values);
  /// From here on launches tell `observer` of each node; null tells nobody,
  /// and costs nothing. Unsupported unless the backend overrides it.
  virtual Result<void> observe(NodeObserver *observer);
  /// Like launch(), slower, and says when each node ran, by node id.
  /// Unsupported unless the backend overrides it.
  virtual Result<void> launchTimed(std::vector<NodeTiming> &timings);
  /// The spans of the last launchTimed(), in order; empty where the calling
  /// thread is one of those that do the work.
  virtual std::vector<HostSpan> hostSpans() const { return {}; }
  /// Like launch(), and says how many microseconds the device took from the
  /// first node's start to the last one's end; none: the backend has no clock
  /// but the caller's. Before any launchTimed(), which may slow what follows.
  virtual Result<std::optional<double>> launchSpan();
};

/// Builds one executable graph. Nodes are created in the plan's order; an
/// edge's source must exist before its target.
class GraphDriver {
public:
  virtual ~GraphDriver();
  virtual Result<GraphNodeId>
  addKernel(const KernelNodeParams &params,
            std::span<const GraphNodeId> dependencies) = 0;
  virtual Result<GraphNodeId>
  addCopy(const CopyNodeParams &params,
          std::span<const GraphNodeId> dependencies) = 0;
  virtual Result<GraphNodeId>
  addCollective(const CollectiveNodeParams &params,
                std::span<const GraphNodeId> dependencies) = 0;
  virtual Result<std::unique_ptr<GraphExec>> instantiate() = 0;
  /// Like instantiate(), in the place of an executable of the same driver that
  /// is not running. Where the two differ in parameters and pointers alone, a
  /// backend may change it instead, which costs less than a new one. After an
  /// error `exec` is what it was, or null.
  virtual Result<void> instantiateOver(std::unique_ptr<GraphExec> &exec);
};

/// The name by which the ranks of one group find each other.
using GroupId = std::array<std::byte, 128>;

/// Devices that communicate, by rank. The first group of a driver is all of the
/// program's devices in order.
struct DeviceGroup {
  std::vector<DeviceId> members;
  GroupId id{};
};

/// The devices of a program that one process or thread has; others have the
/// rest.
struct DevicePart {
  uint32_t first = 0, count = 1;
  bool hasHost = true; ///< it does what is the host's alone; one does
  /// All see the same memory of the host. Else each has its own: what the
  /// program writes of it is in the process that hasHost, and sent from there
  /// and to there; of what the program only reads each has a copy.
  bool sharesHost = true;
  bool holds(DeviceId device) const {
    return device.isHost() ? hasHost
                           : uint32_t(device.value) >= first &&
                                 uint32_t(device.value) - first < count;
  }
};

/// One machine's devices under one backend.
class Driver {
public:
  virtual ~Driver();
  virtual uint32_t numDevices() const = 0;
  /// One line for `devices` and reports.
  virtual std::string description() const = 0;
  /// The form of kernel that loadKernel takes: "sm_90" is a KernelImage for
  /// that GPU; empty is a shared object for this processor.
  virtual std::string architecture() const { return ""; }
  /// The clock that the last launchTimed() used, and why a better one was not
  /// available.
  virtual std::string timedBy() const {
    return "the clock, read before and after each node";
  }
  /// Memory of the device, or pinned host memory for host(); aligned to 256
  /// bytes, zeroed, freed with the Driver.
  virtual Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes) = 0;
  /// allocate() of what holds a device's buffers, once for each. `mostBytes` is
  /// the largest such size of all devices of the program: where several
  /// processes run it, all say the same.
  virtual Result<std::byte *> allocateArena(DeviceId device, uint64_t sizeBytes,
                                            uint64_t /*mostBytes*/) {
    return allocate(device, sizeBytes);
  }
  /// Lets memory of the caller's, which is `device`'s, be used like
  /// allocate()'s of that device, until it is forgotten. Usage where it is not
  /// the device's.
  virtual Result<void> adopt(DeviceId /*device*/,
                             std::span<std::byte> /*memory*/) {
    return {};
  }
  virtual void forget(std::byte * /*memory*/) {}
  /// Copies between memory of the caller's on the host and a device's, and
  /// returns when it is done. Here the devices' memory is the host's.
  virtual Result<void> transfer(std::byte *to, const std::byte *from,
                                uint64_t bytes);
  /// Loads the entry "entry" of a compiled kernel for threads of `block`.
  virtual Result<KernelHandle>
  loadKernel(std::string_view name, std::span<const std::byte> object) = 0;
  /// Whether a launch of the kernel waits for the kernel it follows before it
  /// does anything, and so may begin before that has ended.
  virtual bool awaits(KernelHandle) const { return false; }
  /// A copy of at most so many bytes within a device is a launch that waits in
  /// the same way; 0: none is.
  virtual uint64_t earlyCopyBytes() const { return 0; }
  virtual std::unique_ptr<GraphDriver> createGraph() = 0;

  /// Whether GraphExec::launchNext() is there.
  virtual bool queuesLaunches() const { return false; }
  /// Returns once everything that GraphExec::enqueue() and launchNext() queued
  /// has ended.
  virtual Result<void> finish() { return {}; }

  // The calls below are for several drivers, one in each process or thread,
  // that run one program together.

  /// The devices that are here; none: all are. Memory and nodes are of them
  /// alone, and of a collective the members of others have no addresses.
  virtual std::optional<DevicePart> part() const { return std::nullopt; }
  /// For a group that this process tells the others of.
  virtual Result<GroupId> makeGroupId();
  /// Once, before the first graph, by all processes with the same groups;
  /// returns when all of them did. Collectives then work among these members.
  virtual Result<void> join(std::span<const DeviceGroup> groups);
  /// Lets the devices reach memory of the caller's as if allocate(host()) had
  /// given it; until the driver is gone. Whole pages. `isPinned`: another
  /// driver of this process has adopted the memory, and stays until this one
  /// uses it no more.
  virtual Result<void> adoptHost(std::span<std::byte> memory,
                                 bool isPinned = false);

  /// An error once it is lost: work may go on that nothing can stop, so every
  /// call is an error, and nothing is freed.
  virtual Result<void> checkAlive() const { return {}; }
  /// Marks this driver lost because another rank failed.
  virtual void abandon(const std::string & /*reason*/) {}
};

/// Opens a target with so many devices and so many threads that replay. The
/// workers beside the calling thread are pinned to `workerCpus`, unless that is
/// empty.
using DriverFactory = std::function<Result<std::unique_ptr<Driver>>(
    uint32_t numDevices, uint32_t threads, std::span<const int> workerCpus)>;

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_GRAPHDRIVER_H
