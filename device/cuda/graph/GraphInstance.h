// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GRAPH_GRAPHINSTANCE_H
#define MGPU_DEVICE_CUDA_GRAPH_GRAPHINSTANCE_H

#include "device/cuda/graph/CudaState.h"
#include "device/cuda/graph/GraphSpec.h"

#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace mgpu::device {

/// A graph of CUDA's, its executable and its stream. Destroyed in the order
/// executable, graph, events, stream; not at all once the target is lost.
class GraphInstance {
public:
  explicit GraphInstance(std::shared_ptr<CudaState> state)
      : state(std::move(state)) {}
  ~GraphInstance();
  GraphInstance(const GraphInstance &) = delete;
  GraphInstance &operator=(const GraphInstance &) = delete;

  /// Makes the graph, reads its nodes and edges back and compares them, and
  /// uploads it. With `timed`, an event before and after every range; with
  /// `cupti`, which traces nodes, it knows the numbers of the records.
  Result<void> build(const GraphSpec &spec, bool timed,
                     CuptiSession *cupti = nullptr);
  /// Gives the nodes that differ the parameters of `spec`, which is as
  /// isUpdatable() says; after an error some have them. The executable alone is
  /// changed: `spec` is from then on what it does.
  Result<void> update(const GraphSpec &old, const GraphSpec &spec);
  /// The graph alone, to be a child of another one, which has a copy of it.
  Result<void> buildChild(const GraphSpec &spec);
  CUgraph child() const { return graph; }
  CUgraphExec executable() const { return exec; }
  /// Launches once and waits. An error says which collective has not ended.
  Result<void> run(const GraphSpec &spec);
  /// Like run(), between two events: the microseconds between them.
  Result<double> runSpan(const GraphSpec &spec);
  /// When each range ran, from the start of the last run(); by its events.
  Result<std::vector<NodeTiming>> timings(const GraphSpec &spec) const;
  /// Like run(), by CUPTI's records (CuptiTimes.cpp). Absent where they are
  /// not complete: the launch was made nonetheless.
  Result<std::vector<NodeTiming>> runRecorded(const GraphSpec &spec,
                                              CuptiSession &cupti);
  /// The thread's spans of the last run().
  const std::vector<HostSpan> &hostSpans() const { return spans; }

private:
  /// With `early`, by programmatic edges.
  Result<CUgraphNode> addNode(CUgraphNodeParams &params,
                              const std::vector<CUgraphNode> &dependencies,
                              const std::string &name, bool early = false);
  Result<CUgraphNode> addSpec(const NodeSpec &node,
                              const std::vector<CUgraphNode> &dependencies,
                              const std::string &name, bool early);
  /// Captures what `issue` enqueues on a stream, a call of a library's, after
  /// `dependencies` (ProductNodes.cpp); gives the node that ends it.
  struct Capture {
    const char *library; ///< for error texts
    CUstreamCaptureMode mode;
    bool isUrgent; ///< its kernels go before others, as a collective's do
    std::function<Result<void>(CUstream)> issue;
  };
  Result<CUgraphNode> addCapture(const Capture &call,
                                 const std::vector<CUgraphNode> &dependencies,
                                 const std::string &name);
  Result<CUstream> captureStreamOf(const Capture &call,
                                   const std::string &what);
  Result<void> collectCaptured(const char *library,
                               const std::vector<CUgraphNode> &frontier,
                               const std::vector<CUgraphNode> &dependencies,
                               const std::string &name);
  Result<CUgraphNode> addEvent(const std::vector<CUgraphNode> &dependencies,
                               const std::string &name);
  Result<void> run(const GraphSpec &spec, CUevent before, CUevent after);
  /// run() between synchronizations, as CUPTI wants it (CuptiTimes.cpp).
  Result<void> runForRecords(const GraphSpec &spec, CuptiSession &cupti);
  Result<CUevent> makeEvent();
  Result<void> readBack();
  Result<void> addNodes(const GraphSpec &spec, bool timed);
  Result<void> instantiate();
  /// Which node a record is of, for all that CUPTI cloned and for the
  /// originals.
  void numberNodes(CuptiSession &cupti);

  std::shared_ptr<CudaState> state;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr;
  /// By whether what is captured on it is urgent.
  std::array<CUstream, 2> captureStreams{};
  /// The start of the run, then two for each range.
  std::vector<CUevent> events;
  std::vector<CUevent> borders;    ///< for runSpan()
  std::vector<CUgraphNode> nodes;  ///< all that were made, in order
  std::vector<CUgraphNode> bySpec; ///< those of `nodes` that a spec became
  /// From, to, and what is waited for (a CUgraphDependencyType, which says the
  /// port as well).
  using Edge = std::tuple<CUgraphNode, CUgraphNode, int>;
  std::vector<Edge> edges;
  /// The type of an edge of one of these kinds; none: it is of another.
  static std::optional<int> kindOf(const CUgraphEdgeData &data);
  bool isWithinACall(CUgraphNode from, CUgraphNode to) const;
  /// The members of `nodes` that a library added, by the number of its call:
  /// edges within a call may be of any kind.
  std::map<CUgraphNode, size_t> captured;
  std::vector<std::string> names; ///< one for each of `nodes`
  std::vector<uint32_t> rangeOf;  ///< one for each of `nodes`
  uint32_t currentRange = 0;      ///< while it is built
  /// The members of `nodes` whose time does not count for their range: marks.
  std::set<CUgraphNode> untimed;
  std::map<uint64_t, uint32_t> byNumber; ///< CUPTI's, to ranges
  std::vector<HostSpan> spans;
};

/// Makes a graph of the spec a child of the one that `on`, a stream of the
/// caller's, is being captured into; the capture goes on behind it. Usage where
/// it is not captured.
Result<void> captureAsChild(std::shared_ptr<CudaState> state, CUstream on,
                            const GraphSpec &spec);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GRAPH_GRAPHINSTANCE_H
