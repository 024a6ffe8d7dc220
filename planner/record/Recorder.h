// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_RECORD_RECORDER_H
#define MGPU_PLANNER_RECORD_RECORDER_H

// Makes a Program from calls in program order: declare buffers, issue launches,
// copies and collectives on streams, then finish(). The recorder finds what
// each call must follow from the bytes it touches, and judges the program's own
// streams, waits and syncs on the way: races, deadlocks, use after free
// (docs/semantics.md).
//
//   Recorder recorder({.name = "main", .numDevices = 2});
//   BufferId x = recorder.addArgument({.name = "x", .shape = {64}});
//   BufferId a = recorder.addBuffer("a", {0}, BufferRole::Temporary,
//                                   ElementType::F32, {64});
//   MGPU_TRY(recorder.copy({recorder.whole(a), recorder.whole(x)},
//                          {recorder.place("model.py:3")}));
//   MGPU_TRY_ASSIGN(Program program, recorder.finish());
//
// A call that fails has named its fault; the recorder is then of no more use.

#include "planner/dag/Dag.h"
#include "planner/dag/Program.h"
#include "planner/record/CollectiveMatcher.h"
#include "planner/record/Findings.h"
#include "planner/record/RolledTrips.h"
#include "planner/record/SourceOrder.h"

#include <map>
#include <unordered_map>

namespace mgpu::planner {

// The buffers of a program while it is recorded: their names, and how long they
// live in the program's own order.

class BufferTable {
public:
  BufferTable(Dag &dag, const SourceOrder &order, Findings &findings)
      : dag(dag), order(order), findings(findings) {}

  /// Appends the buffer, with its size from its type and shape, and with a
  /// number after its name where another has that name.
  BufferId add(Buffer buffer);
  /// Fails where the buffer has been freed.
  Result<void> checkLive(BufferId buffer, Place place) const;
  void noteUse(BufferId buffer, SourcePoint point) {
    lives[buffer.value].lastUses.raise(point);
  }
  /// Fails where the program may not free it, or work on it may still run.
  /// `named` is the device that the call names, if it names one.
  Result<void> free(BufferId buffer, std::optional<DeviceId> named,
                    Place place);

private:
  /// Whether a number made it the name of a buffer.
  bool isMade(const std::string &name) const;
  struct Life {
    std::optional<Place> freedAt;
    VectorClock lastUses;
  };
  Dag &dag;
  const SourceOrder &order;
  Findings &findings;
  /// By name, the number that the next buffer of that name gets. Names with a
  /// number are not kept: a program that is unrolled has very many.
  std::unordered_map<std::string, uint32_t> numbers;
  std::vector<Life> lives;
};

struct RecorderOptions {
  std::string name = "main"; ///< of the program
  uint32_t numDevices = 0;
  /// Whether a proven race is an error. If not, it is a warning and program
  /// order is kept.
  bool racesAreErrors = true;
  /// Hears of every error and warning, with all its places.
  Findings::Sink sink = nullptr;
  /// Without it, uses that are not exact meet where their boxes do.
  MeetSets meetSets = nullptr;
};

/// An in-order queue of one device, as the program has it.
struct SourceStream {
  uint32_t chain = 0; ///< a chain of SourceOrder
};

/// Where a call stands, and the stream it goes on. Without a stream it goes on
/// the device's default queue, and the host waits for it.
struct CallSite {
  Place place = {};
  std::optional<SourceStream> stream = std::nullopt;
};

/// An argument that is an array, or a scalar that each replay reads anew.
struct ArgumentSpec {
  std::string name;
  std::optional<ArgumentRole> role = std::nullopt; ///< none: from its uses
  bool isRoleOfUser = false; ///< a wrong role is then an error of usage
  ElementType elementType = ElementType::F32;
  std::vector<int64_t> shape = {};
  Place place = {};
  DeviceId device = DeviceId::host(); ///< where the caller's memory is
};

/// A buffer that a launch touches.
struct LaunchUse {
  BufferUse use;
  bool isExact = true; ///< else it may touch less, and may reach outside
  /// All that it touches, if it is not exact and that is known.
  std::shared_ptr<const TouchedSets> sets = {};
  /// No more bytes than these are touched, whatever the box is.
  uint64_t mostBytes = UINT64_MAX;
};

/// Two threads of a launch touch one element, in no order.
struct LaunchRaceSpec {
  BufferId buffer;
  Place first, second;  ///< of the two accesses
  std::string text;     ///< which threads, and which element
  bool isProven = true; ///< else they may
};

struct LaunchSpec {
  DeviceId device;
  KernelId kernel;
  Dim3 grid = {};
  std::vector<KernelArgument> arguments = {};
  std::vector<LaunchUse> uses = {};
  double flops = 0;
  std::optional<LaunchWork> asks = std::nullopt;
  bool onTensorCores = false;
  std::vector<LaunchRaceSpec> races = {};
  std::string name = {}; ///< begins the node's name; empty: the kernel's
  std::optional<double> durationUs = std::nullopt; ///< DagNode::durationUs
};

struct CopySpec {
  View destination, source;
  std::string name = "copy"; ///< begins the node's name
};

/// A loop that the program keeps rolled. The loop's value in trip t is
/// first + t * step.
struct LoopSpec {
  std::string name = "induction"; ///< of the buffer that holds its value
  ElementType elementType = ElementType::Index;
  uint64_t trips = 0; ///< at least 2
  int64_t first = 0, step = 1;
  Place place = {};
};

class Recorder {
public:
  explicit Recorder(RecorderOptions options);
  Recorder(const Recorder &) = delete;
  Recorder &operator=(const Recorder &) = delete;

  /// A place for calls at `text`, such as "model.py:12:3"; of a pipeline, those
  /// of one part.
  Place place(std::string text,
              std::optional<PipelinePart> part = std::nullopt) {
    return findings.place(std::move(text), part);
  }
  const Dag &dag() const { return program.dag; }
  const Program &soFar() const { return program; }
  uint32_t numRaces() const { return nodes.numRaces(); }

  // Recorder.cpp: arguments, buffers, kernels.

  BufferId addArgument(ArgumentSpec argument);
  /// A scalar argument whose value, as the user wrote it, is compiled in.
  void addSpecialised(std::string name, ElementType type, std::string value,
                      Place place);
  /// Fails where two arguments, or an argument and a result, answer to one
  /// name. finish() asks as well; this is for who knows the results before.
  Result<void> checkNames(size_t numResults);
  /// Binds the next result. Fails unless it is a whole buffer of the host;
  /// none stands for a value that is not a buffer. Without a name it is "r0",
  /// by its number.
  Result<void> addResult(const std::optional<View> &view,
                         std::string name = {});
  /// `contents` are those of a BufferRole::Constant.
  /// The views are whole buffers of the host, of one type and shape.
  Result<void> addExpectation(Expectation expectation, const View &found,
                              const View &expected);
  /// Keeps what `view`, if there is one, holds here for `output`.
  Result<void> addOutput(HostOutput output, const View *view, CallSite site);
  BufferId addBuffer(std::string name, DeviceId device, BufferRole role,
                     ElementType type, std::vector<int64_t> shape,
                     std::vector<std::byte> contents = {});
  View whole(BufferId buffer) const {
    return wholeView(buffer, program.dag.buffer(buffer).shape);
  }
  Result<void> checkLive(BufferId buffer, Place place) const {
    return buffers.checkLive(buffer, place);
  }
  /// `device`: the one the call names as the buffer's, if it names one.
  Result<void> free(BufferId buffer, std::optional<DeviceId> device,
                    Place place) {
    return buffers.free(buffer, device, place);
  }
  /// Warns where `named`, which the call gives for the buffer, is not the
  /// device that owns it. `what` says which buffer of the call it is.
  void checkOwner(BufferId buffer, DeviceId named, const std::string &what,
                  Place place);
  /// The kernel's name must be another than those before.
  KernelId addKernel(KernelSpec kernel);
  void setFacts(KernelId kernel, KernelFacts facts);

  // Recorder.cpp: streams and loops.

  SourceStream createStream(DeviceId device) {
    return {order.createChain(device)};
  }
  Result<void> destroyStream(SourceStream stream, Place place);
  /// Later calls on `waiting` follow all calls on `awaited` so far.
  Result<void> streamWait(SourceStream waiting, SourceStream awaited,
                          Place place);
  /// The host, and so every later call, waits for the stream or device.
  Result<void> syncStream(SourceStream stream, Place place);
  Result<void> syncDevice(DeviceId device, Place place);
  /// Records `body` twice, for two trips that stand for all; each time it is
  /// given the buffer of the loop's value. One loop of a program at most.
  Result<void> loop(const LoopSpec &loop,
                    const std::function<Result<void>(BufferId)> &body);
  /// A further value that changes by `step` from trip to trip.
  BufferId addInduction(std::string name, ElementType type, int64_t first,
                        int64_t step);
  const Induction *findInduction(BufferId buffer) const;
  bool isInLoop() const { return inLoop; }
  /// Set once two trips stand for a loop.
  const std::optional<RolledTrips> &rolledTrips() const { return rolled; }

  // RecordWork.cpp

  /// Fails where no device could launch a kernel in this shape.
  Result<void> checkLaunchShape(DeviceId device, Dim3 grid, Dim3 block,
                                Place place);
  Result<void> launch(LaunchSpec launch, CallSite site);
  Result<void> copy(const CopySpec &copy, CallSite site);
  /// Fills the view with copies of one element.
  Result<void> fill(const View &view, std::vector<std::byte> element,
                    CallSite site);
  /// The device's copy of a scalar that lies on the host, made at the head of
  /// the graph. Kernels read it from there.
  Result<BufferId> parameterOn(DeviceId device, BufferId scalar, Place place);

  // RecordCalls.cpp: one rank's calls. The k-th calls of all ranks on a
  // communicator are one collective; the rank is that of the buffers' device.

  /// The result is its number. Each device may be in it once.
  Result<uint32_t> createCommunicator(std::vector<DeviceId> devices,
                                      Place place,
                                      CallsOf callers = CallsOf::All);
  Result<void> allReduce(uint32_t communicator, ReductionKind reduction,
                         const View &send, const View &recv, CallSite site);
  /// Pairs are taken in any order.
  Result<void> permute(uint32_t communicator, std::vector<RankPair> pairs,
                       const View &send, const View &recv, CallSite site);
  Result<void> broadcast(uint32_t communicator, int64_t root,
                         const View &buffer, CallSite site);
  Result<void> send(uint32_t communicator, int64_t peer, const View &buffer,
                    CallSite site);
  Result<void> receive(uint32_t communicator, int64_t peer, const View &buffer,
                       CallSite site);

  // Calls that cut a buffer into a slice for each rank, along
  // an axis.

  /// `send` may have the size of `recv`: rank k then sends slice k of it.
  Result<void> allGather(uint32_t communicator, int64_t axis, const View &send,
                         const View &recv, CallSite site);
  Result<void> reduceScatter(uint32_t communicator, ReductionKind reduction,
                             int64_t axis, const View &send, const View &recv,
                             CallSite site);
  Result<void> allToAll(uint32_t communicator, int64_t splitAxis,
                        int64_t concatAxis, const View &send, const View &recv,
                        CallSite site);

  /// The program, with roles and phases; the recorder keeps nothing.
  Result<Program> finish();

private:
  struct Argument {
    bool isRoleGiven, isRoleOfUser;
    Place place;
  };
  tl::unexpected<Error> argumentError(size_t index, ErrorKind kind,
                                      std::string text);
  Result<void> checkRoles();
  bool isWholeOnHost(const View &view) const;
  Result<void> dropSecond();
  Result<uint32_t> chainOf(std::optional<SourceStream> stream, DeviceId device,
                           Place place);
  Result<void> hostWaits(uint32_t chain, Place place);
  /// Queues the node; without a stream the host waits for it.
  Result<void> enqueue(RecordedNode entry, uint32_t chain, CallSite site);
  Result<void> addUse(RecordedNode &entry, LaunchUse use, DeviceId device,
                      Place place);
  /// Copied or received elements land in one order, so no two of its elements
  /// may have one place.
  Result<void> checkDistinct(const View &written, Place place);
  /// The bytes of the view, which must lie inside its buffer.
  Result<Box> boxOfView(const View &view, Place place);
  Result<CollectiveCallSite> startCall(CollectiveKind kind,
                                       uint32_t communicator,
                                       const View &buffer, CallSite site);
  Result<void> receiveInto(CollectiveCallSite &call, const View &recv);
  /// Fails where what is sent overlaps what is received, unless it `isInPlace`
  /// as the collective allows. `advice` says what may be sent.
  Result<void> checkOverlap(const CollectiveCallSite &call, bool isInPlace,
                            std::string_view advice);
  /// The start of the calls that cut along an axis: both views have a rank, and
  /// the same one, and the axes are dimensions of theirs.
  Result<CollectiveCallSite> startSliced(CollectiveKind kind,
                                         uint32_t communicator, SliceAxes axes,
                                         const View &send, const View &recv,
                                         CallSite site);
  Result<void> pointToPoint(uint32_t communicator, int64_t peer,
                            const View &buffer, CallSite site, bool isSend);

  Program program;
  std::vector<Argument> arguments; ///< of program.arguments
  Findings findings;
  SourceOrder order;
  BufferTable buffers;
  NodeRecorder nodes;
  CollectiveMatcher matcher;
  std::map<uint32_t, Place> destroyedStreams; ///< by chain
  std::map<std::pair<DeviceId, BufferId>, BufferId> parameters;
  std::optional<RolledTrips> rolled;
  bool inLoop = false;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_RECORD_RECORDER_H
