// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKECUDA_H
#define MGPU_TESTS_UNIT_CUDA_FAKECUDA_H

// A driver that is not there: the entry points of CudaApi over host memory. It
// keeps CUDA's own rules, each with the line of cuda.h (CUDA 13.0) it is from,
// runs copies, and runs kernels that were registered as functions of the
// processor. It knows nothing of plans. A graph's nodes run in a random order
// that its edges allow, so that an edge too few shows; behind a programmatic
// edge a kernel may begin, and even end, before the one it follows has done
// anything, unless it waits. Every handle is new: one that was destroyed is
// never valid again.

#include "FakeOrder.h"

#include "device/cuda/api/CudaApi.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace mgpu::fake {

struct FakeKernel {
  /// `parameters` as in a launch. blockIdx and so on are the caller's affair.
  /// One that calls FakeCuda::awaitGrids() executes griddepcontrol.wait.
  std::function<void(void **parameters, const unsigned grid[3],
                     const unsigned block[3])>
      run;
  std::vector<size_t> parameterSizes;
  int maxThreads = 1024;
  int sharedBytes = 0; ///< static
  /// After a run: an error of the launch; null: there is none.
  CUresult (*fault)() = nullptr;
  unsigned cluster[3] = {1, 1, 1}; ///< blocks of one, as it was compiled
};

struct Context {
  int gpu;
  CUresult sticky = CUDA_SUCCESS; ///< what it is lost by
};
struct Memory {
  size_t bytes;
  const Context *of; ///< null: of all
};
struct Graph;
struct Node;
struct Run;
struct Stream;
/// A capture under way. All streams that take part in it have it.
struct Capture {
  const Stream *origin;
  std::thread::id by;
  CUstreamCaptureMode mode;
  bool isSpoiled = false; ///< by a call that it forbids, until it is ended
};
struct Stream {
  Context *context;
  int busyQueries = 0;    ///< answers of "not ready" left
  bool isCallers = false; ///< not the target's: launches may wait in it
  bool isOrdered = false; ///< it waited for an event since the last launch
  // While it is captured.
  Graph *capturing = nullptr;
  std::shared_ptr<Capture> capture = nullptr;
  std::vector<Node *> frontier = {};
  /// What was launched and has not ended, in order.
  std::deque<std::shared_ptr<Run>> runs = {};
  int priority = 0;        ///< kernels captured in it have it, too
  bool isBlocking = false; ///< in step with the legacy stream
};
struct Event {
  Context *context;
  unsigned flags;
  bool recorded = false;
  double ms = 0;
  int busyQueries = 0; ///< of the stream, when it was recorded
  /// What the last record was part of, where that was captured.
  std::shared_ptr<Capture> capture = nullptr;
  Graph *capturing = nullptr;
  std::vector<Node *> frontier = {};
};
struct Kernel;
struct Library {
  std::set<std::string> entries;
  std::map<std::string, FakeKernel> own; ///< FakeCuda::kernelsOf
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};
struct Kernel {
  Library *library;
  const FakeKernel *code;
  std::string name;
  /// 985: what a block has without asking, less the static bytes.
  int dynamicSharedBytes = std::max(48 * 1024 - code->sharedBytes, 0);
};
/// Work that may have to wait for another process.
class Operation {
public:
  virtual ~Operation() = default;
  /// Does what can be done now; true once all is.
  virtual bool step() = 0;
  /// How long it takes once all who take part are there.
  virtual double ms() const { return 0.125; }
};
struct Node {
  Graph *graph;
  CUgraphNodeParams params;
  std::vector<std::vector<std::byte>> values; ///< a kernel's, copied
  std::vector<Node *> dependencies;
  std::vector<CUgraphEdgeData> edgeData = {}; ///< by dependency, or empty
  int priority = 0;
  /// Starts a node that a library captured, in place of `params`; `owner` is
  /// what the node belongs to.
  std::function<std::unique_ptr<Operation>()> start = {};
  const void *owner = nullptr;
  uint64_t id = 0; ///< unique, of clones too
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};
/// The nodes as they were when it was made.
struct Exec {
  struct Step {
    Node node;
    std::vector<size_t> dependencies;
    const Node *original = nullptr;
    std::vector<size_t> early = {}; ///< which `dependencies` are programmatic
  };
  std::vector<Step> steps;
  uint64_t flags;
};
/// A launch under way.
struct Run {
  Context *context;
  std::vector<Exec::Step> steps;
  std::vector<size_t> waits, ready;
  /// Steps that follow the end of one, or that it may begin.
  std::vector<std::vector<size_t>> after, afterBegin;
  std::vector<bool> isDone;
  /// None yet of those that wait for a kernel they follow.
  std::map<size_t, std::unique_ptr<Operation>> waiting;
  std::function<void()> behind; ///< no launch, but what follows those before
  OrderWatch order;
};

/// Live objects of one kind, and the bodies of those that were.
template <typename T>
class Objects {
public:
  T *add(T value) {
    bodies.push_back(std::make_unique<T>(std::move(value)));
    live.insert(bodies.back().get());
    return bodies.back().get();
  }
  T *find(void *handle) const {
    auto *object = static_cast<T *>(handle);
    return live.count(object) ? object : nullptr;
  }
  bool remove(void *handle) { return live.erase(static_cast<T *>(handle)); }
  size_t size() const { return live.size(); }
  template <typename Is>
  bool any(Is is) const {
    return std::any_of(live.begin(), live.end(),
                       [&](const T *each) { return is(*each); });
  }
  template <typename Do>
  void each(Do act) {
    for (T *object : live)
      act(*object);
  }
  const T *youngest() const { return bodies.back().get(); }

private:
  std::set<T *> live;
  std::vector<std::unique_ptr<T>> bodies;
};

class FakeCuda {
public:
  /// The one instance, fresh.
  static FakeCuda &reset(uint64_t seed = 0);
  static FakeCuda &instance();
  /// The table of this driver.
  static std::shared_ptr<const device::CudaApi> api();

  // What the machine is.
  int gpus = 1;
  bool areApart = false; ///< none reaches another's memory
  int major = 9, minor = 0;
  size_t gpuBytes = 64 << 20;
  std::map<std::string, FakeKernel> kernels; ///< what cubins may name
  /// The entries of code that is not a fakeCubin(); none: it is not a cubin
  /// either.
  std::function<std::vector<std::string>(const void *code)> entriesOf;
  /// Asked first: kernels of that code alone, whatever others are called.
  std::function<std::map<std::string, FakeKernel>(const void *code)> kernelsOf;
  std::string gpuName = "Fake GPU";
  int multiprocessors = 3, clockKhz = 1'980'000, // 738: in kilohertz
      memoryClockKhz = 2'619'000, busBits = 5120;
  int cudaVersion = 13000;
  bool remembersCalls = true; ///< in `called`
  bool watchesOrder = false;  ///< looks for edges too few, by what is touched
  /// How long a node takes that is not a library's; null: an eighth of a
  /// millisecond each.
  std::function<double(const Node &)> nodeMs;

  // What goes wrong.
  uint64_t failAt = 0; ///< the n-th call from 1 on fails; 0: none
  CUresult failCode = CUDA_ERROR_OUT_OF_MEMORY;
  int busyQueries = 1;                 ///< for a stream after a launch
  bool neverEnds = false;              ///< launches stay busy
  CUresult launchFault = CUDA_SUCCESS; ///< what waiting for any launch gives
  int wrongGpu = -1; ///< neverEnds and launchFault are of it; -1: of all
  std::function<void(uint64_t)> onLaunch; ///< with the number of the launch
  uint64_t launches = 0;
  bool losesANode = false; ///< graphs are read back without their last node
  int losesEdge = -1; ///< executables lack this edge of their graph, from 0 on
  /// The n-th kernel of wrongGpu's executables, from 1 on, does nothing, or has
  /// its first pointer moved on by 4 bytes.
  int dropsKernel = 0, movesKernel = 0;
  int kernelsMade = 0;          ///< of wrongGpu
  bool losesEarlyEdges = false; ///< programmatic edges are read back as others
  std::string logMessage;       ///< said to the log callback at a failure

  // Who watches: a profiler's library (FakeCupti.h).
  std::function<void(Node &clone, const Node &original)> onClone;
  /// Milliseconds of clockMs.
  std::function<void(const Node &node, double start, double end)> onNode;

  // What happened.
  uint64_t calls = 0;
  std::string failedCall;
  std::vector<std::string> called;
  /// Undefined behaviour, which a real driver need not notice.
  std::vector<std::string> violations;
  CUDA_MEMCPY3D lastCopy{}; ///< what the last copy node asked for
  /// The types of the youngest graph's nodes, in the order they were made.
  std::vector<CUgraphNodeType> builtTypes() const;
  /// What is still there, one line for each kind.
  std::vector<std::string> leaks() const;

  // The state, for the entry points.
  /// What the thread was told by cuThreadExchangeStreamCaptureMode.
  static thread_local CUstreamCaptureMode captureMode;
  CUresult enter(const char *name);
  CUresult refuse(CUresult code);
  Context *current() const; ///< this thread's
  /// With `of`, as that context reaches it: GPUs meet in communications alone.
  bool isDeviceRange(uint64_t address, uint64_t bytes,
                     const Context *of = nullptr) const;
  bool isHostRange(const void *address, uint64_t bytes,
                   const Context *of = nullptr) const;
  size_t bytesTaken(const Context *of) const;
  bool isWrong(const Context &context) const {
    return wrongGpu < 0 || context.gpu == wrongGpu;
  }
  bool hasLostContext() const {
    return contexts.any(
        [](const Context &each) { return each.sticky != CUDA_SUCCESS; });
  }
  CUresult launch(const std::vector<Exec::Step> &steps, Stream &stream);
  /// Null: no such stream. The default one is of the current context (17494).
  Stream *streamOf(CUstream stream);
  /// Does what is possible of what was launched; true once all is done.
  bool progress(Stream &stream);
  /// The running kernel's griddepcontrol.wait: what the kernel follows ends
  /// first.
  void awaitGrids();
  /// The running node reads or writes these bytes.
  void touched(uint64_t address, uint64_t bytes, bool writes) {
    if (!running.empty() && watchesOrder)
      running.back().first->order.touch(running.back().second, address, bytes,
                                        writes);
  }
  /// Whether a capture forbids this thread the calls that none can see.
  bool isCapturingHere() const;
  /// Such a call: an error, which spoils the captures that forbid it.
  CUresult refuseUnsafe();
  /// Why nothing can be put into a stream: its capture is spoiled, or it is the
  /// legacy stream and one in step with it is captured, or it would have to
  /// capture the `work`, which it cannot.
  CUresult refusalOf(CUstream handle, const char *work = nullptr);
  /// What kernels print is kept until the driver is waited for, the last MiB.
  void print(std::string_view text);
  void showPrinted();

  bool initialized = false;
  pid_t initializedBy = 0;
  std::mt19937_64 random;
  std::map<int, std::pair<Context *, int>> primary; ///< by GPU, with count
  std::map<std::thread::id, std::vector<Context *>> stacks;
  std::map<uint64_t, Memory> deviceMemory;
  std::map<uintptr_t, Memory> hostMemory;
  std::map<uintptr_t, Memory> registered; ///< host memory of the caller's
  Objects<Context> contexts;
  Objects<Stream> streams;
  std::map<Context *, Stream> defaultStreams;
  Objects<Event> events;
  Objects<Library> libraries;
  Objects<Graph> graphs;
  Objects<Exec> execs;
  std::map<void *, CUlogsCallback> logs; ///< by user data
  double clockMs = 0;
  uint64_t nodesMade = 0;
  uint64_t unsynchronized = 0; ///< launches since a cuStreamSynchronize
  std::string printed;         ///< and not shown
  uint64_t earlyBegins = 0; ///< kernels that began before the one they follow
  /// What the node of the kernel that runs asked for.
  uint32_t dynamicSharedBytes = 0;

  FakeCuda() = default;
  ~FakeCuda();

private:
  bool progress(Run &run);
  void checkOrder(Run &run);
  /// Runs a step that is ready, and what it waits for.
  void runStep(Run &run, size_t k);
  CUresult runNode(const Node &node);
  CUresult runCopy(const CUDA_MEMCPY_NODE_PARAMS &params);
  /// The kernels that run, each begun while the one before it waits.
  std::vector<std::pair<Run *, size_t>> running;
};

/// A CUdevice is a handle: here 100 + ordinal, so that neither passes for the
/// other.
inline bool isDevice(const FakeCuda &fake, CUdevice device) {
  return device >= 100 && device < 100 + fake.gpus;
}

/// The entries of FakeMemory.cpp, FakeLibrary.cpp, FakeGraph.cpp and
/// FakeExec.cpp.
void addMemoryEntries(device::CudaApi &api);
void addLibraryEntries(device::CudaApi &api);
void addGraphEntries(device::CudaApi &api);
void addExecEntries(device::CudaApi &api);
void addCaptureEntries(device::CudaApi &api);   ///< those in FakeCapture.cpp
void addTensorMapEntries(device::CudaApi &api); ///< those in FakeTensorMap.cpp

/// Calls that the target does not make, but programs beside it: launches and
/// copies on streams (FakeStreamWork.cpp).
struct StreamWork {
  PFN_cuLaunchKernel_v4000 cuLaunchKernel;
  PFN_cuMemcpyDtoDAsync_v3020 cuMemcpyDtoDAsync;
};
StreamWork streamWork();

/// A "cubin" with these entries.
std::vector<std::byte> fakeCubin(const std::vector<std::string> &entries);

} // namespace mgpu::fake

#define MGPU_FAKE_ENTER(name)                                                  \
  ::mgpu::fake::FakeCuda &fake = ::mgpu::fake::FakeCuda::instance();           \
  if (CUresult code = fake.enter(name); code != CUDA_SUCCESS)                  \
    return code;

#endif // MGPU_TESTS_UNIT_CUDA_FAKECUDA_H
