// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_DAG_H
#define MGPU_PLANNER_DAG_DAG_H

// The dependency DAG of one specialised program: what runs, on which device,
// on which bytes, and what must come before what. Every importer makes one,
// every scheduler reads one; nothing here knows of streams or of time.

#include "planner/dag/KernelSpec.h"
#include "support/Collective.h"
#include "support/Result.h"
#include "support/SharedItems.h"

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace mgpu::planner {

/// The most devices of any DAG that is read: each costs the planner memory.
inline constexpr uint32_t maxDevices = 1 << 16;

struct NodeId {
  uint32_t value = 0;
  auto operator<=>(const NodeId &) const = default;
};
struct BufferId {
  uint32_t value = 0;
  auto operator<=>(const BufferId &) const = default;
};
struct KernelId {
  uint32_t value = 0;
  auto operator<=>(const KernelId &) const = default;
};

/// Who owns a buffer's bytes and for how long.
enum class BufferRole : uint8_t {
  Temporary, ///< device memory inside a replay; the arena may reuse its bytes
  Resident,  ///< device memory that lives across replays
  Argument,  ///< memory of function argument `index`, on the host or a device
  Result,    ///< host memory of function result `index`
  HostLocal, ///< host memory the program allocates itself
  Constant,  ///< host memory with the bytes of `contents`
};

/// One root allocation. Sub-views are boxes of it, never buffers of their own.
struct Buffer {
  std::string name; ///< the program's name for it; unique within the DAG
  DeviceId device;
  BufferRole role = BufferRole::Temporary;
  uint32_t index = 0; ///< argument or result number
  uint64_t sizeBytes = 0;
  ElementType elementType = ElementType::I8;
  std::vector<int64_t> shape;
  std::vector<std::byte> contents; ///< a Constant's bytes; else empty
  bool operator==(const Buffer &) const = default;
};

/// Whether a buffer lies in its device's arena, where a plan places it. Memory
/// of the caller's on a device has an address of its own.
inline bool isInArena(const Buffer &buffer) {
  return !buffer.device.isHost() && buffer.role != BufferRole::Argument;
}

/// Bytes a node touches.
struct BufferUse {
  BufferId buffer;
  Box box;
  bool reads = false;
  bool writes = false;
  /// By how many bytes a kernel's accesses move from one block to the next
  /// along x, y and z. 0 where any block may touch all of the buffer.
  std::array<int64_t, 3> blockSteps{0, 0, 0};
  bool operator==(const BufferUse &) const = default;
};

/// A pointer into a buffer, or the bits of a scalar (zero-extended).
struct KernelArgument {
  std::variant<BufferId, uint64_t> value;
  int64_t offsetBytes = 0; ///< added to a buffer's address
  bool operator==(const KernelArgument &) const = default;
};

struct KernelCall {
  KernelId kernel;
  Dim3 grid; ///< as the kernel's blocks see it
  std::vector<KernelArgument> arguments;
  /// The blocks that run; none: all of them.
  std::optional<GridPart> part = std::nullopt;
  bool operator==(const KernelCall &) const = default;
};

/// Copies box to box; both have the same number of elements of the same width,
/// visited in row-major order.
struct CopyCall {
  BufferId source, destination;
  Box sourceBox, destinationBox;
  bool operator==(const CopyCall &) const = default;
};

/// One rank's part of a collective; its rank is its position.
struct CollectiveMember {
  DeviceId device;
  BufferId send, recv;
  Box sendBox, recvBox;
  bool operator==(const CollectiveMember &) const = default;
};

/// Ranks are summed in rank order, so results are bitwise reproducible.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReductionKind reduction = ReductionKind::Sum;
  ElementType elementType = ElementType::F32;
  uint32_t root = 0; ///< broadcast
  uint32_t communicator = 0;
  std::vector<RankPair> pairs; ///< permute; ascending
  std::vector<CollectiveMember> members;
  bool operator==(const CollectiveCall &) const = default;
};

/// Work known only by its cost (mgpu-dag/2 files); plannable, not runnable.
struct OpaqueCall {
  bool isCollective = false;
  CollectiveKind kind = CollectiveKind::AllReduce;
  uint64_t bytes = 0;
  uint32_t group = 0; ///< members of a collective
  /// A kernel that does nothing but copy a part of what it reads, from an
  /// offset that it reads as well.
  bool isSlice = false;
  /// The length of the outermost axis of a kernel's output, if the kernel can
  /// be cut along it; else 0.
  uint64_t splittable = 0;
  /// The part of its device's multiprocessors that a kernel takes, in (0, 1].
  double smShare = 1;
  bool operator==(const OpaqueCall &) const = default;
};

/// Load runs once before the replays, Fetch once after them. A replay is the
/// Prologue once, Replay as often as `Dag::loop` says, and the Epilogue once;
/// without a rolled loop all of it is Replay.
enum class Phase : uint8_t { Load, Prologue, Replay, Epilogue, Fetch };
inline constexpr std::array allPhases = {
    Phase::Load, Phase::Prologue, Phase::Replay, Phase::Epilogue, Phase::Fetch};
std::string_view toString(Phase phase);

/// The part of a pipeline that a node belongs to: what is done with one
/// microbatch at one stage.
struct PipelinePart {
  /// Weights is the part of backward work that no other stage waits for.
  enum class Kind : uint8_t { Forward, Backward, Weights };
  Kind kind = Kind::Forward;
  uint32_t microbatch = 0, stage = 0; ///< the stage among those of its mesh
  bool operator==(const PipelinePart &) const = default;
};
std::string_view toString(PipelinePart::Kind kind);

/// The work that a launch asks of a GPU, as the configuration of its kernel
/// shapes it: in a DAG the default one.
struct LaunchWork {
  double instructions = 0;  ///< of threads
  double lines = 0;         ///< of 128 bytes, for each access of each subgroup
  double movedBytes = 0;    ///< in sectors of 32 bytes, each once for a block
  uint32_t flightBytes = 0; ///< that a thread of the source awaits at once
  double blocks = 0;        ///< that run; 0: as many as the source has
  LaunchWork &operator*=(double share) {
    instructions *= share, lines *= share, movedBytes *= share;
    blocks *= share;
    return *this;
  }
  bool operator==(const LaunchWork &) const = default;
};

struct DagNode {
  std::string name;
  std::string location; ///< "file:line:column" in the source, or empty
  std::optional<PipelinePart> part = std::nullopt;
  Phase phase = Phase::Replay;
  std::vector<DeviceId> devices; ///< ascending; several only for collectives;
                                 ///< a copy lists its device ends
  std::variant<KernelCall, CopyCall, CollectiveCall, OpaqueCall> work;
  std::vector<BufferUse> uses;
  double flops = 0;
  uint64_t bytesRead = 0, bytesWritten = 0;
  uint64_t outBytes = 0;                         ///< mgpu-dag/2 memory model
  std::optional<LaunchWork> asks = std::nullopt; ///< none where not known
  bool isMatmul = false;                         ///< a product on tensor cores
  std::optional<double> durationUs; ///< frozen: the cost model is not asked
  double timeFactor = 1; ///< a what-if: times what the cost model says
  bool operator==(const DagNode &) const = default;
};

/// Visits each buffer that a node names, with the bytes that are added to its
/// address there; both may be changed.
void forEachBuffer(DagNode &node,
                   const std::function<void(BufferId &, int64_t &)> &visit);
/// Whether `box` is all of the buffer.
bool isWhole(const Box &box, const Buffer &buffer);

/// Why `to` must follow `from`.
enum class DepKind : uint8_t {
  Data,       ///< to reads what from wrote
  Anti,       ///< to overwrites what from read
  Output,     ///< to overwrites what from wrote
  Collective, ///< same communicator: every rank issues them in this order
};
std::string_view toString(DepKind kind);

struct DepEdge {
  NodeId from, to;
  DepKind kind = DepKind::Data;
  bool operator==(const DepEdge &) const = default;
};

/// A host buffer that holds first + trip * step, modulo 2^64 and cut to its
/// element type, while a trip of the loop runs.
struct Induction {
  BufferId buffer;
  int64_t first = 0, step = 0;
  uint64_t at(uint64_t trip) const {
    return uint64_t(first) + trip * uint64_t(step);
  }
  bool operator==(const Induction &) const = default;
};

/// The program's outermost loop, where it stayed rolled: nodes and edges of
/// Phase::Replay are those of one trip, and trips follow each other whole. A
/// Temporary buffer carries nothing from trip to trip.
struct Loop {
  uint64_t trips = 1;
  std::string location; ///< "file:line:column", or empty
  std::vector<Induction> inductions;
  bool operator==(const Loop &) const = default;
};

/// Node order is a topological order: every edge has from < to.
struct Dag {
  std::string name;
  uint32_t numDevices = 0;
  bool spmd = false; ///< one device's nodes stand for all (mgpu-dag/2)
  uint64_t residentBytes = 0;
  Loop loop;
  std::vector<Buffer> buffers;
  std::vector<KernelSpec> kernels;
  /// Copies of a DAG share the nodes that are alike.
  SharedItems<DagNode> nodes;
  std::vector<DepEdge> edges; ///< sorted by (to, from), one per pair
  bool operator==(const Dag &) const = default;

  const DagNode &node(NodeId id) const { return nodes[id.value]; }
  const Buffer &buffer(BufferId id) const { return buffers[id.value]; }

  /// Sorts `edges`, keeps the strongest kind (Data first) of each pair.
  void normalize();
  /// Index, size, range and order errors; the first found. A DAG that passes
  /// can be planned, and executed without leaving a buffer, whoever wrote it,
  /// as far as its kernels keep to their arguments.
  Result<void> check() const;
};

/// The largest grid each kernel is called with along each axis, by KernelId; 1
/// for one that is not called.
std::vector<Dim3> largestGrids(const Dag &dag);

/// The devices whose streams a node takes: `devices`, or the host alone for a
/// host-to-host copy, which lists none.
std::span<const DeviceId> streamDevices(const DagNode &node);

/// The engine that a node occupies on each of its devices; the planning model
/// runs one node of each class per device at a time
/// (planner/schedule/list/Schedulers.h).
enum class WorkClass : uint8_t { Kernel, Copy, Collective };
std::string_view toString(WorkClass work);
WorkClass workClass(const DagNode &node);

/// OpaqueCall::smShare; 1 of all other work.
double smShare(const DagNode &node);

/// Incoming edges of each node, a view of a normalized dag.edges.
class Predecessors {
public:
  explicit Predecessors(const Dag &dag);
  std::span<const DepEdge> of(NodeId id) const {
    return {edges + begin[id.value], begin[id.value + 1] - begin[id.value]};
  }

private:
  const DepEdge *edges;
  std::vector<uint32_t> begin;
};

/// Outgoing neighbours of each node, in ascending order.
class Successors {
public:
  explicit Successors(const Dag &dag);
  std::span<const NodeId> of(NodeId id) const {
    return {targets.data() + begin[id.value],
            begin[id.value + 1] - begin[id.value]};
  }

private:
  std::vector<NodeId> targets;
  std::vector<uint32_t> begin;
};

/// Whether some node writes a buffer, by buffer.
std::vector<bool> writtenBuffers(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_DAG_H
