// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_REPLAY_REPLAYER_H
#define MGPU_CAPTURE_REPLAY_REPLAYER_H

// A planned program ready to run: memory allocated, kernels loaded, one graph
// per phase. Bind arguments, load() once, replay() as often as wanted,
// fetch(), read results.

#include "capture/graph/GraphBuilder.h"
#include "capture/replay/OutputHashes.h"
#include "capture/replay/SharedBytes.h"

#include <array>
#include <functional>
#include <map>
#include <memory>

namespace mgpu::capture {

/// When a node of a timed phase ran, from the phase's start.
struct NodeSpan {
  planner::NodeId node;
  uint32_t queue = 0; ///< the backend's queue or thread
  double startUs = 0, endUs = 0;
};

/// A timed replay, as one process saw it.
struct TimedReplay {
  std::vector<NodeSpan> nodes;
  /// Empty where threads of the process itself do the work.
  std::vector<device::HostSpan> host;
};

/// Where each host buffer lies in one block of memory, which ranks of several
/// GPUs on one machine share.
struct HostLayout {
  std::vector<uint64_t> offsets; ///< by BufferId; of device buffers 0
  uint64_t bytes = 0;            ///< whole pages
};
HostLayout hostLayout(const planner::Dag &dag);
/// Writes the program's constants where the layout has them.
Result<void> writeConstants(const planner::Dag &dag, const HostLayout &layout,
                            std::span<std::byte> memory);

/// The surroundings of a rank that runs a part of a program
/// (capture/graph/Communication.h) beside others, in a process or a thread of
/// its own. Ranks with memory of the host of their own need none of it.
struct Part {
  /// By hostLayout(), with its constants; the driver has adopted it.
  std::span<std::byte> hostMemory;
  /// Returns once all ranks called it as often as this one; the launches
  /// of a phase, and of each trip of a loop, come after all have ended those
  /// before. `next` is the phase that is launched then, if one is.
  std::function<Result<void>(std::optional<planner::Phase> next)> meet;
  /// The memory is of this rank alone: meet() brings what others wrote.
  bool hasOwnMemory = false;
};

/// When arguments on devices have memory.
enum class Arguments : uint8_t {
  Own,   ///< at once, the target's own
  Later, ///< when it is bound or asked for, or else when complete() is called
};

/// Told of each node of the program that runs, by the thread that runs it; as
/// device::NodeObserver.
class ReplayObserver {
public:
  virtual ~ReplayObserver() = default;
  virtual bool begin(planner::NodeId node, uint32_t queue) = 0;
  virtual void end(planner::NodeId node, uint32_t queue) = 0;
};

/// Unsupported: of a program on several GPUs, where Replayer::enqueue() and
/// captureInto() are asked for.
Result<void> hasNoStream();
Result<void> isInNoGraph();

/// Memory of the caller's that a buffer is to have.
struct Rebinding {
  planner::BufferId buffer;
  std::span<std::byte> memory;
};
/// Usage where memory of the caller's cannot be these buffers.
Result<void> checkRebind(const planner::Dag &dag,
                         std::span<const Rebinding> moved);

/// `driver` owns the memory and must outlive it.
/// One call at a time.
class Replayer {
public:
  /// `kernelObjects` are the compiled kernels, by KernelId. The DAG and the
  /// plan are not needed after this returns.
  static Result<Replayer>
  create(const planner::Dag &dag, const planner::Plan &plan,
         std::span<const std::vector<std::byte>> kernelObjects,
         device::Driver &driver, Part part = {},
         Arguments arguments = Arguments::Own);
  /// After Arguments::Later, before the first run: what was not bound has
  /// memory of the target's from here on. `dag` and `plan` are those of
  /// create().
  Result<void> complete(const planner::Dag &dag, const planner::Plan &plan);

  /// The bytes of a host buffer (argument, result, local or constant), and of
  /// an argument on a device whose memory the host reaches, for binding and
  /// reading; empty for other buffers, and for one that another process has
  /// (GraphPart::holds). Zero until written, except constants.
  std::span<std::byte> hostBuffer(planner::BufferId id);
  /// The memory of any argument or result that is here: a GPU's addresses of
  /// one on a GPU. `dag` is that of create().
  Result<std::span<std::byte>> memory(const planner::Dag &dag,
                                      planner::BufferId id);
  /// Copies all its bytes in or out; nothing of one that is not here.
  Result<void> write(const planner::Dag &dag, planner::BufferId id,
                     std::span<const std::byte> bytes) {
    return transfer(
        dag, id, {const_cast<std::byte *>(bytes.data()), bytes.size()}, true);
  }
  Result<void> read(const planner::Dag &dag, planner::BufferId id,
                    std::span<std::byte> bytes) {
    return transfer(dag, id, bytes, false);
  }

  /// From here on the host buffers, or arguments on devices, have this memory
  /// in place of their own: as many bytes, which the target reaches and no
  /// other argument has, as long as this lives. Graphs are changed where the
  /// target can, else made anew. `dag` and `plan` are those of create(). If
  /// there are several ranks, all call it, and make the same graphs anew.
  /// Errors: Usage for memory that does not fit, and nothing is changed; after
  /// one of the target the program may be lost.
  Result<void> rebind(const planner::Dag &dag, const planner::Plan &plan,
                      std::span<const Rebinding> moved);

  // Weights that other programs of this process have as well
  // (SharedResidents.cpp): `dag` and `plan` are those of create().

  /// After load(), on the host: what the program only reads, unless it is
  /// small, moves to memory that all programs of this process have in common.
  /// Elsewhere nothing happens.
  Result<void> shareReads(const planner::Dag &dag, const planner::Plan &plan);
  /// `memory` has the bytes of a host buffer, is not written by anyone and
  /// outlives this. On the host it is read where it is if no replay writes or
  /// copies the buffer, else copied at once.
  Result<void> lend(const planner::Dag &dag, const planner::Plan &plan,
                    planner::BufferId id, std::span<const std::byte> memory);
  /// The buffer has memory of its own again; `exposes`: from here on, for a
  /// caller who may write there at any time.
  Result<void> makeOwn(const planner::Dag &dag, const planner::Plan &plan,
                       planner::BufferId id, bool exposes);

  Result<void> load() { return run(planner::Phase::Load); }
  /// All trips of a rolled loop, with what comes before and after it.
  Result<void> replay();
  /// Whether enqueue() takes the program.
  bool canEnqueue();
  /// Queues what replay() does into a stream of the caller's on the GPU and
  /// returns (GraphExec::enqueue()); until finish(), enqueue() alone may be
  /// called. Unsupported on the host, on several GPUs, and of a rolled loop
  /// whose number has less than 32 bits.
  Result<void> enqueue(void *stream);
  /// Makes a replay a part of the graph that a stream of the caller's is being
  /// captured into (GraphExec::captureInto()), with the addresses as they are
  /// now. Unsupported where enqueue() is, and of a rolled loop with a number.
  Result<void> captureInto(void *stream);
  /// Returns once everything that was enqueued has ended.
  Result<void> finish() { return driver->finish(); }
  Result<void> fetch() { return run(planner::Phase::Fetch); }
  /// Like replay(), slower, and says when each node ran, in plan order; of a
  /// rolled loop, in its first trip.
  Result<TimedReplay> replayTimed();
  /// Like replay(), by the device's clock: GraphExec::launchSpan() of all
  /// launches together.
  Result<std::optional<double>> replaySpan();

  /// From here on `observer`, which outlives this, is told of every node that
  /// runs; null: nobody. Unsupported but on the host.
  Result<void> observe(ReplayObserver *observer);

  /// Sets where each buffer lies in a phase, by BufferId, in arenas too; null
  /// for what is not here. `dag` and `plan` are those of create().
  void findPlaces(const planner::Dag &dag, const planner::Plan &plan,
                  std::vector<std::byte *> &places,
                  planner::Phase phase = planner::Phase::Replay) const;

  /// Hashes what the last replay left of its outputs in memory that is here.
  /// `dag` and `plan` are those of create().
  Result<OutputHashes> hashOutputs(const planner::Dag &dag,
                                   const planner::Plan &plan) const;

  /// An error once it is lost: no run may follow.
  Result<void> checkAlive() const;

  const ExecutableGraph &graph(planner::Phase phase) const {
    return graphs[size_t(phase)];
  }

private:
  /// Knows the DAG's nodes of a phase's graph.
  struct PhaseObserver final : device::NodeObserver {
    std::vector<planner::NodeId> nodes; ///< by graph node
    ReplayObserver *to = nullptr;
    bool begin(device::GraphNodeId node, uint32_t queue) override {
      return to->begin(nodes[node.value], queue);
    }
    void end(device::GraphNodeId node, uint32_t queue) override {
      to->end(nodes[node.value], queue);
    }
  };
  Result<void> observePhase(planner::Phase phase);
  Result<void> ensureMemory(const planner::Dag &dag, planner::BufferId id);
  Result<void> checkApart(const planner::Dag &dag,
                          std::span<const Rebinding> moved) const;
  Result<void> adopt(const planner::Dag &dag, planner::BufferId id,
                     std::span<std::byte> memory);
  Result<void> rebuild(const planner::Dag &dag, const planner::Plan &plan,
                       std::span<const planner::BufferId> moved);
  BufferAddresses addressesIn(planner::Phase phase) const;
  bool mayShare() const;
  bool moveTo(planner::BufferId id, std::span<const std::byte> memory,
              std::shared_ptr<const SharedBytes> keeps);
  bool isHosts(planner::BufferId id) const;
  Result<void> transfer(const planner::Dag &dag, planner::BufferId id,
                        std::span<std::byte> host, bool isWrite);
  Result<void> run(planner::Phase phase);
  Result<void> runTimed(planner::Phase phase, double offsetUs,
                        TimedReplay &into);
  /// Before each launch of a phase.
  Result<void> meet(std::optional<planner::Phase> next) {
    return part.meet ? part.meet(next) : Result<void>();
  }
  Result<void> setInductions(uint64_t trip);
  /// Sets `tripValues`; false where one is no word that can be queued.
  bool findTripValues(uint64_t trip);
  /// Gives each phase and trip of a replay to `add`, in order. If one is
  /// refused after another was taken, `isPartial` is set.
  Result<void>
  queueAll(const std::function<Result<void>(
               device::GraphExec &, std::span<const device::HostValue>)> &add,
           bool &isPartial);
  /// queueAll() for an `add` that runs them: a part of a replay costs the
  /// program.
  Result<void>
  queueRun(const std::function<Result<void>(
               device::GraphExec &, std::span<const device::HostValue>)> &add);

  /// The graph of a phase with nodes; Invalid once it is lost.
  Result<device::GraphExec *> exec(planner::Phase phase) const;

  /// Memory of others' that a buffer has.
  struct Borrowed {
    std::span<std::byte> before;              ///< a host buffer's own
    std::shared_ptr<const SharedBytes> keeps; ///< null: the caller's
  };

  device::Driver *driver = nullptr;
  /// A device's buffer has one outside its arena where it is borrowed.
  BufferAddresses addresses;
  std::map<uint32_t, Borrowed> borrowed; ///< by BufferId
  std::vector<bool> isExposed;           ///< by BufferId: it stays where it is
  std::vector<device::KernelHandle> kernels; ///< by KernelId
  std::vector<DeviceId> devices;             ///< by BufferId
  /// The bytes of `addresses.own`, by BufferId.
  std::vector<std::span<std::byte>> own;
  std::array<ExecutableGraph, planner::allPhases.size()> graphs; ///< by Phase
  ReplayObserver *observer = nullptr;
  std::array<std::unique_ptr<PhaseObserver>, planner::allPhases.size()>
      observers; ///< by Phase, where there is an observer
  planner::Loop loop;
  /// The inductions of a trip, for a queued launch; kept, so that a replay
  /// allocates nothing.
  std::vector<device::HostValue> tripValues;
  Part part;
  bool setsInductions = true; ///< for itself, or for all ranks
  bool isComplete = false;
  std::string lost; ///< why no run may follow; "": one may
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_REPLAY_REPLAYER_H
