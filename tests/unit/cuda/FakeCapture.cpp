// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Capture into a graph that exists.
#include "FakeNodes.h"

#include <algorithm>
#include <cstring>

namespace mgpu::fake {

namespace {

CUresult beginCapture(CUstream handle, CUgraph into,
                      const CUgraphNode *dependencies, const CUgraphEdgeData *,
                      size_t count, CUstreamCaptureMode mode) {
  MGPU_FAKE_ENTER("cuStreamBeginCaptureToGraph");
  Stream *stream = fake.streams.find(handle);
  Graph *graph = fake.graphs.find(into);
  // 15391: not on the legacy stream; 15393: not if it is captured already.
  if (!stream || !graph || stream->capturing || (count && !dependencies))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  std::vector<Node *> frontier;
  for (size_t k = 0; k < count; ++k) {
    auto *node = reinterpret_cast<Node *>(dependencies[k]);
    if (std::none_of(graph->nodes.begin(), graph->nodes.end(),
                     [&](const auto &each) { return each.get() == node; }) ||
        std::find(frontier.begin(), frontier.end(), node) != frontier.end())
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    frontier.push_back(node);
  }
  if (!stream->runs.empty() || stream->busyQueries > 0)
    fake.violations.push_back("a capture on a stream with work under way");
  if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL)
    fake.violations.push_back(
        "a global capture forbids calls to every other thread"); // 15454
  stream->capturing = graph;
  stream->capturedBy = std::this_thread::get_id();
  stream->frontier = std::move(frontier);
  return CUDA_SUCCESS;
}

CUresult captureInfo(CUstream handle, CUstreamCaptureStatus *status,
                     cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                     const CUgraphEdgeData **data, size_t *count) {
  MGPU_FAKE_ENTER("cuStreamGetCaptureInfo");
  Stream *stream = fake.streams.find(handle);
  // 15565: edge data only together with the nodes.
  if (!stream || !status || (data && !nodes))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  *status = stream->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                              : CU_STREAM_CAPTURE_STATUS_NONE;
  if (!stream->capturing) // 15562: the rest is not written
    return CUDA_SUCCESS;
  static thread_local std::vector<CUgraphEdgeData> none;
  none.assign(stream->frontier.size(), {});
  if (id)
    *id = 1;
  if (graph)
    *graph = reinterpret_cast<CUgraph>(stream->capturing);
  if (nodes) // 15582: valid until the next call on the stream
    *nodes = reinterpret_cast<const CUgraphNode *>(stream->frontier.data());
  if (data)
    *data = none.data();
  if (count)
    *count = stream->frontier.size();
  return CUDA_SUCCESS;
}

CUresult endCapture(CUstream handle, CUgraph *graph) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuStreamEndCapture");
  Stream *stream = fake.streams.find(handle);
  if (!stream || !stream->capturing)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  // 15396: from the thread that began it.
  if (stream->capturedBy != std::this_thread::get_id())
    return fake.refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  *graph = entered == CUDA_SUCCESS
               ? reinterpret_cast<CUgraph>(stream->capturing)
               : nullptr;
  stream->capturing = nullptr;
  stream->frontier = {};
  return entered;
}

CUresult nodeDependencies(CUgraphNode handle, CUgraphNode *dependencies,
                          CUgraphEdgeData *data, size_t *count) {
  MGPU_FAKE_ENTER("cuGraphNodeGetDependencies");
  auto *node = reinterpret_cast<Node *>(handle);
  if (!node || !fake.graphs.find(node->graph) || (data && !dependencies))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (dependencies)
    for (size_t k = 0; k < std::min(*count, node->dependencies.size()); ++k) {
      const CUgraphEdgeData edge = edgeDataOf(fake, *node, k);
      if (!data && !isZero(&edge, sizeof edge)) // 20186
        return fake.refuse(CUDA_ERROR_LOSSY_QUERY);
      dependencies[k] = reinterpret_cast<CUgraphNode>(node->dependencies[k]);
      if (data)
        data[k] = edge;
    }
  *count = node->dependencies.size();
  return CUDA_SUCCESS;
}

} // namespace

void captureKernel(FakeCuda &fake, Stream &stream, const void *owner,
                   std::function<std::unique_ptr<Operation>()> start,
                   bool isSerialized) {
  auto node = std::make_unique<Node>();
  node->graph = stream.capturing;
  node->priority = stream.priority;
  std::memset(&node->params, 0, sizeof node->params);
  node->params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node->dependencies = stream.frontier;
  node->owner = owner;
  node->start = std::move(start);
  for (const Node *before : stream.frontier) {
    // 1944 and CUDA C++ Programming Guide, "Programmatic Dependent Launch", use
    // in CUDA graphs: what the attribute becomes in a capture. There is none
    // before sm_90.
    CUgraphEdgeData edge{};
    if (isSerialized && fake.major >= 9 &&
        before->params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
      edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    node->edgeData.push_back(edge);
  }
  stream.capturing->nodes.push_back(std::move(node));
  stream.frontier = {stream.capturing->nodes.back().get()};
}

void addCaptureEntries(device::CudaApi &api) {
  api.cuStreamBeginCaptureToGraph = beginCapture;
  api.cuStreamGetCaptureInfo = captureInfo;
  api.cuStreamEndCapture = endCapture;
  api.cuGraphNodeGetDependencies = nodeDependencies;
}

} // namespace mgpu::fake
