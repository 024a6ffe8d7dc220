// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_CUDAEXEC_H
#define MGPU_DEVICE_CUDA_CUDAEXEC_H

#include "device/cuda/CudaState.h"
#include "device/cuda/GraphSpec.h"

#include <atomic>
#include <functional>
#include <set>

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
  /// uploads it. With `timed`, an event before and after every range.
  Result<void> build(const GraphSpec &spec, bool timed);
  /// Launches once and waits. An error says which collective has not ended.
  Result<void> run(const GraphSpec &spec);
  /// When each range ran, from the start of the last run().
  Result<std::vector<NodeTiming>> timings(const GraphSpec &spec) const;

private:
  Result<CUgraphNode> addNode(CUgraphNodeParams &params,
                              const std::vector<CUgraphNode> &dependencies,
                              const std::string &name);
  Result<CUgraphNode> addSpec(const NodeSpec &node,
                              const std::vector<CUgraphNode> &dependencies,
                              const std::string &name);
  /// Captures what `issue` enqueues on a stream, a call of a library's, after
  /// `dependencies` (LibraryCapture.cpp); gives the node that ends it.
  struct Capture {
    const char *library; ///< for error texts
    CUstreamCaptureMode mode;
    std::function<Result<void>(CUstream)> issue;
  };
  Result<CUgraphNode> addCapture(const Capture &call,
                                 const std::vector<CUgraphNode> &dependencies,
                                 const std::string &name);
  Result<void> collectCaptured(const char *library,
                               const std::vector<CUgraphNode> &frontier,
                               const std::vector<CUgraphNode> &dependencies,
                               const std::string &name);
  Result<CUgraphNode> addEvent(const std::vector<CUgraphNode> &dependencies,
                               const std::string &name);
  Result<void> makeEvent();
  Result<void> readBack();
  Result<void> instantiate();

  std::shared_ptr<CudaState> state;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUstream stream = nullptr, captureStream = nullptr;
  /// The start of the run, then two for each range.
  std::vector<CUevent> events;
  std::vector<CUgraphNode> nodes; ///< all that were made, in order
  std::vector<std::pair<CUgraphNode, CUgraphNode>> edges;
  /// Those of `nodes` that a library added: edges between them may be of any
  /// kind.
  std::set<CUgraphNode> captured;
  std::vector<std::string> names; ///< of `nodes`
};

class CudaExec final : public GraphExec {
public:
  static Result<std::unique_ptr<GraphExec>>
  create(std::shared_ptr<CudaState> state,
         std::shared_ptr<const GraphSpec> spec);

  Result<void> launch() override;
  Result<void> launchTimed(std::vector<NodeTiming> &timings) override;

private:
  CudaExec(std::shared_ptr<CudaState> state,
           std::shared_ptr<const GraphSpec> spec)
      : state(state), spec(std::move(spec)), plain(std::move(state)) {}

  std::shared_ptr<CudaState> state;
  std::shared_ptr<const GraphSpec> spec;
  GraphInstance plain;
  std::unique_ptr<GraphInstance> timed; ///< made when first asked for
  std::atomic<bool> running{false};
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_CUDAEXEC_H
