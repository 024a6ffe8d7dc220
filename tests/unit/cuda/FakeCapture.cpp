// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Capture into a graph that exists, and what may not be done meanwhile.
#include "FakeNodes.h"

#include <algorithm>
#include <cstring>

namespace mgpu::fake {

namespace {

/// Whether a stream is captured that is in step with the legacy one.
bool isBlockedByCapture(const FakeCuda &fake, const Stream &legacy) {
  return fake.streams.any([&](const Stream &each) {
    return each.capture && each.isBlocking && each.context == legacy.context;
  });
}

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
  stream->capture = std::make_shared<Capture>(
      Capture{stream, std::this_thread::get_id(), mode});
  stream->frontier = std::move(frontier);
  return CUDA_SUCCESS;
}

CUresult captureInfo(CUstream handle, CUstreamCaptureStatus *status,
                     cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                     const CUgraphEdgeData **data, size_t *count) {
  MGPU_FAKE_ENTER("cuStreamGetCaptureInfo");
  Stream *stream = fake.streamOf(handle);
  // 15565: edge data only together with the nodes.
  if (!stream || !status || (data && !nodes))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (!handle && isBlockedByCapture(fake, *stream)) // 15558: nothing is spoiled
    return fake.refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  *status = !stream->capture             ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->isSpoiled ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                         : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  // 15561: the rest is not written.
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
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

/// 904: work of a stream that joined the capture must be followed by the one
/// it began in.
bool isJoined(FakeCuda &fake, const Stream &origin) {
  std::set<const Node *> before;
  std::vector<const Node *> left(origin.frontier.begin(),
                                 origin.frontier.end());
  while (!left.empty()) {
    const Node *node = left.back();
    left.pop_back();
    if (before.insert(node).second)
      left.insert(left.end(), node->dependencies.begin(),
                  node->dependencies.end());
  }
  return !fake.streams.any([&](const Stream &each) {
    return each.capture == origin.capture &&
           std::any_of(each.frontier.begin(), each.frontier.end(),
                       [&](const Node *end) { return !before.contains(end); });
  });
}

CUresult endCapture(CUstream handle, CUgraph *graph) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuStreamEndCapture");
  Stream *stream = fake.streams.find(handle);
  if (!stream || !stream->capture)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != stream) // 3087: in another stream
    return fake.refuse(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  // 15396: from the thread that began it.
  if (capture->by != std::this_thread::get_id() &&
      capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
    return fake.refuse(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  if (entered == CUDA_SUCCESS && capture->isSpoiled)
    entered = fake.refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (entered == CUDA_SUCCESS && !isJoined(fake, *stream))
    entered = fake.refuse(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  *graph = entered == CUDA_SUCCESS
               ? reinterpret_cast<CUgraph>(stream->capturing)
               : nullptr;
  fake.streams.each([&](Stream &each) {
    if (each.capture != capture)
      return;
    each.capturing = nullptr;
    each.capture = nullptr;
    each.frontier = {};
  });
  capture->isSpoiled = true; // for events that were recorded in it
  return entered;
}

CUresult updateDependencies(CUstream handle, CUgraphNode *dependencies,
                            const CUgraphEdgeData *, size_t count,
                            unsigned flags) {
  MGPU_FAKE_ENTER("cuStreamUpdateCaptureDependencies");
  Stream *stream = fake.streamOf(handle);
  if (!stream || (count && !dependencies) ||
      flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (!stream->capture) // 15603
    return fake.refuse(CUDA_ERROR_ILLEGAL_STATE);
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    stream->frontier.clear();
  for (size_t k = 0; k < count; ++k)
    stream->frontier.push_back(reinterpret_cast<Node *>(dependencies[k]));
  return CUDA_SUCCESS;
}

CUresult exchangeMode(CUstreamCaptureMode *mode) {
  MGPU_FAKE_ENTER("cuThreadExchangeStreamCaptureMode");
  if (!mode)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  std::swap(*mode, FakeCuda::captureMode);
  return CUDA_SUCCESS;
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

// 15454: a capture that is not RELAXED forbids them to its thread, and a GLOBAL
// one to all, but to a thread that is RELAXED itself.
static bool forbids(const Capture &capture) {
  if (FakeCuda::captureMode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return false;
  return capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
         (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
          capture.by == std::this_thread::get_id());
}

bool FakeCuda::isCapturingHere() const {
  return streams.any([](const Stream &each) {
    return each.capture && forbids(*each.capture);
  });
}

CUresult FakeCuda::refuseUnsafe() {
  streams.each([](Stream &each) {
    if (each.capture && forbids(*each.capture))
      each.capture->isSpoiled = true;
  });
  return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult FakeCuda::refusalOf(CUstream handle, const char *work) {
  const Stream *stream = streamOf(handle);
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture && stream->capture->isSpoiled) // 3075
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture && work) {
    violations.push_back(std::string(work) +
                         " that this driver cannot capture");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (handle || !isBlockedByCapture(*this, *stream))
    return CUDA_SUCCESS;
  streams.each([](Stream &each) { // 3105: it would wait for the capture
    if (each.capture && each.isBlocking)
      each.capture->isSpoiled = true;
  });
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult waitCaptured(FakeCuda &fake, Stream &on, const Event &event) {
  auto spoil = [&](CUresult code) {
    for (const auto &each : {on.capture, event.capture})
      if (each)
        each->isSpoiled = true;
    return fake.refuse(code);
  };
  if (!event.capture) // 3098: on work outside of the capture
    return spoil(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (event.capture->isSpoiled)
    return spoil(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (on.capture && on.capture != event.capture) // 3081: two captures
    return spoil(CUDA_ERROR_STREAM_CAPTURE_MERGE);
  // A stream that is not captured joins; one that is follows both.
  on.capture = event.capture;
  on.capturing = event.capturing;
  for (Node *each : event.frontier)
    if (std::find(on.frontier.begin(), on.frontier.end(), each) ==
        on.frontier.end())
      on.frontier.push_back(each);
  return CUDA_SUCCESS;
}

Node &captureNode(Stream &stream, std::unique_ptr<Node> node) {
  node->graph = stream.capturing;
  node->dependencies = stream.frontier;
  stream.frontier = {node.get()};
  stream.capturing->nodes.push_back(std::move(node));
  return *stream.frontier.front();
}

void captureKernel(FakeCuda &fake, Stream &stream, const void *owner,
                   std::function<std::unique_ptr<Operation>()> start,
                   bool isSerialized) {
  auto node = std::make_unique<Node>();
  node->priority = stream.priority;
  std::memset(&node->params, 0, sizeof node->params);
  node->params.type = CU_GRAPH_NODE_TYPE_KERNEL;
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
  captureNode(stream, std::move(node));
}

void addCaptureEntries(device::CudaApi &api) {
  api.cuStreamBeginCaptureToGraph = beginCapture;
  api.cuStreamGetCaptureInfo = captureInfo;
  api.cuStreamEndCapture = endCapture;
  api.cuStreamUpdateCaptureDependencies = updateDependencies;
  api.cuThreadExchangeStreamCaptureMode = exchangeMode;
  api.cuGraphNodeGetDependencies = nodeDependencies;
}

} // namespace mgpu::fake
