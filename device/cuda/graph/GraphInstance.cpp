// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/GraphInstance.h"

#include "support/Clock.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

GraphInstance::~GraphInstance() {
  // Destroying what runs waits for it: after a hang it would for ever.
  if (state->isLost())
    return;
  CudaState::Current current(*state);
  if (!current.entered) {
    // NCCL would wait for this graph before it ends its communicators.
    if (state->communicators)
      state->setLost(current.entered.error().message);
    return;
  }
  const CudaApi &api = *state->api;
  if (exec)
    api.cuGraphExecDestroy(exec);
  if (graph)
    api.cuGraphDestroy(graph);
  for (const auto *each : {&events, &borders})
    for (CUevent event : *each)
      api.cuEventDestroy(event);
  for (CUstream each : {stream, captureStreams[0], captureStreams[1]})
    if (each)
      api.cuStreamDestroy(each);
}

Result<CUgraphNode>
GraphInstance::addNode(CUgraphNodeParams &params,
                       const std::vector<CUgraphNode> &dependencies,
                       const std::string &name, bool early) {
  CUgraphNode node = nullptr;
  // cuda.h 1953 and 1942: the edge waits until all blocks of a kernel have let
  // the next begin, or have ended.
  CUgraphEdgeData edge;
  std::memset(&edge, 0, sizeof edge);
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  const std::vector<CUgraphEdgeData> data(early ? dependencies.size() : 0,
                                          edge);
  MGPU_TRY(state->check(
      state->api->cuGraphAddNode(
          &node, graph, dependencies.empty() ? nullptr : dependencies.data(),
          early ? data.data() : nullptr, dependencies.size(), &params),
      "cuGraphAddNode", fmt::format("for '{}' {}", name, state->where())));
  nodes.push_back(node);
  names.push_back(name);
  rangeOf.push_back(currentRange);
  for (CUgraphNode dependency : dependencies)
    edges.push_back({dependency, node,
                     early ? CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                           : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT});
  return node;
}

namespace {

/// The parameters of a node of CUDA's; none of a library's call, which becomes
/// nodes by capture. `values` is what the struct points to.
std::optional<CUgraphNodeParams>
paramsOf(const NodeWork &work, CUcontext context, std::vector<void *> &values) {
  // All bytes: CUDA refuses what it does not know, also in padding.
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  if (std::holds_alternative<NcclCall>(work) ||
      std::holds_alternative<ProductCall>(work) ||
      std::holds_alternative<SparseCall>(work))
    return std::nullopt;
  if (const auto *copy = std::get_if<CopyLaunch>(&work)) {
    params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params.memcpy.copyCtx = context;
    params.memcpy.copyParams = copy->copy;
  } else if (const auto *mark = std::get_if<MarkLaunch>(&work)) {
    params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params.memcpy.copyCtx = context;
    CUDA_MEMCPY3D &one = params.memcpy.copyParams;
    one.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    one.srcDevice = CUdeviceptr(uintptr_t(mark->one));
    one.dstMemoryType = CU_MEMORYTYPE_HOST;
    one.dstHost = mark->word;
    one.WidthInBytes = one.srcPitch = one.dstPitch = sizeof *mark->word;
    one.Height = one.Depth = one.srcHeight = one.dstHeight = 1;
  } else if (const auto *kernel = std::get_if<KernelLaunch>(&work)) {
    // The values are copied when the node is made.
    for (uint32_t offset : kernel->offsets)
      values.push_back(const_cast<std::byte *>(kernel->values.data()) + offset);
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.kern = kernel->kernel;
    params.kernel.ctx = context;
    params.kernel.gridDimX = kernel->grid[0];
    params.kernel.gridDimY = kernel->grid[1];
    params.kernel.gridDimZ = kernel->grid[2];
    params.kernel.blockDimX = kernel->block[0];
    params.kernel.blockDimY = kernel->block[1];
    params.kernel.blockDimZ = kernel->block[2];
    params.kernel.sharedMemBytes = kernel->sharedBytes;
    params.kernel.kernelParams = values.data();
  } else {
    params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  }
  return params;
}

/// A copy one of whose ends is not memory of the target's.
bool isOfCaller(const NodeWork &work) {
  const auto *copy = std::get_if<CopyLaunch>(&work);
  return copy && (copy->copy.srcMemoryType == CU_MEMORYTYPE_UNIFIED ||
                  copy->copy.dstMemoryType == CU_MEMORYTYPE_UNIFIED);
}

} // namespace

Result<CUgraphNode>
GraphInstance::addSpec(const NodeSpec &node,
                       const std::vector<CUgraphNode> &dependencies,
                       const std::string &name, bool early) {
  std::vector<void *> values;
  auto params = paramsOf(node.work, state->context, values);
  // Thread-local: NCCL issues non-blocking calls in a thread of its own, which
  // may then allocate.
  if (const auto *call = std::get_if<NcclCall>(&node.work))
    return addCapture({"NCCL", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true,
                       [&](CUstream stream) {
                         return state->communicators->issue(*call, stream,
                                                            name);
                       }},
                      dependencies, name);
  // Relaxed: cuBLASLt and cuSPARSE may load code, which the other modes forbid.
  if (const auto *call = std::get_if<ProductCall>(&node.work))
    return addCapture({"cuBLASLt", CU_STREAM_CAPTURE_MODE_RELAXED, false,
                       [&](CUstream stream) -> Result<void> {
                         MGPU_TRY_ASSIGN(Products * products,
                                         state->products());
                         return products->issue(*call, call->c, stream, name);
                       }},
                      dependencies, name);
  if (const auto *call = std::get_if<SparseCall>(&node.work))
    return addCapture({"cuSPARSE", CU_STREAM_CAPTURE_MODE_RELAXED, false,
                       [&](CUstream stream) -> Result<void> {
                         MGPU_TRY_ASSIGN(SparseProducts * products,
                                         state->sparseProducts());
                         return products->issue(*call, stream, name);
                       }},
                      dependencies, name);
  Result<CUgraphNode> added = addNode(*params, dependencies, name, early);
  if (!added && !state->isLost() && isOfCaller(node.work))
    return fail(ErrorKind::Invalid,
                fmt::format("{}; memory of the caller's must be pinned for "
                            "this GPU (cudaHostAlloc, or cudaHostRegister "
                            "with cudaHostRegisterPortable)",
                            added.error().message));
  MGPU_TRY_ASSIGN(CUgraphNode made, std::move(added));
  if (std::holds_alternative<MarkLaunch>(node.work))
    untimed.insert(made);
  const auto *kernel = std::get_if<KernelLaunch>(&node.work);
  if (!kernel)
    return made;
  // Every node says its own: what one without an attribute gets is not written
  // down.
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof value);
  value.priority =
      kernel->isUrgent ? state->highestPriority : state->lowestPriority;
  MGPU_TRY(state->check(state->api->cuGraphKernelNodeSetAttribute(
                            made, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
                        "cuGraphKernelNodeSetAttribute",
                        fmt::format("for '{}' {}", name, state->where())));
  return made;
}

Result<void> GraphInstance::update(const GraphSpec &old,
                                   const GraphSpec &spec) {
  CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  for (const SpecRange &range : spec.ranges)
    for (uint32_t k = range.first; k < range.last; ++k) {
      if (isSame(old.nodes[k].work, spec.nodes[k].work))
        continue;
      std::vector<void *> values;
      auto params = paramsOf(spec.nodes[k].work, state->context, values);
      MGPU_TRY(state->check(
          state->api->cuGraphExecNodeSetParams(exec, bySpec[k], &*params),
          "cuGraphExecNodeSetParams",
          fmt::format("for '{}' {}", range.name, state->where())));
    }
  return {};
}

Result<CUevent> GraphInstance::makeEvent() {
  CUevent event = nullptr;
  MGPU_TRY(state->check(state->api->cuEventCreate(&event, CU_EVENT_DEFAULT),
                        "cuEventCreate", state->where()));
  return event;
}

Result<CUgraphNode>
GraphInstance::addEvent(const std::vector<CUgraphNode> &dependencies,
                        const std::string &name) {
  MGPU_TRY_ASSIGN(CUevent event, makeEvent());
  events.push_back(event);
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  params.eventRecord.event = events.back();
  return addNode(params, dependencies, name);
}

Result<void> GraphInstance::addNodes(const GraphSpec &spec, bool timed) {
  MGPU_TRY(state->check(state->api->cuGraphCreate(&graph, 0), "cuGraphCreate",
                        state->where()));
  if (timed) {
    MGPU_TRY_ASSIGN(CUevent start, makeEvent());
    events.push_back(start);
  }
  std::vector<CUgraphNode> made(spec.nodes.size());
  bySpec.resize(spec.nodes.size());
  for (const SpecRange &range : spec.ranges) {
    currentRange = uint32_t(&range - spec.ranges.data());
    CUgraphNode begin = nullptr;
    if (timed) {
      std::vector<CUgraphNode> before;
      for (uint32_t k = range.first; k < range.last; ++k)
        for (uint32_t dependency : spec.nodes[k].dependencies)
          if (dependency < range.first)
            before.push_back(made[dependency]);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      MGPU_TRY_ASSIGN(begin, addEvent(before, range.name));
    }
    for (uint32_t k = range.first; k < range.last; ++k) {
      std::vector<CUgraphNode> before;
      for (uint32_t dependency : spec.nodes[k].dependencies)
        if (!timed || dependency >= range.first)
          before.push_back(made[dependency]);
      if (timed && before.empty())
        before.push_back(begin);
      // Between timed ranges there are events, which are not kernels.
      const bool early = spec.nodes[k].isEarly && !timed;
      MGPU_TRY_ASSIGN(made[k],
                      addSpec(spec.nodes[k], before, range.name, early));
      bySpec[k] = made[k];
    }
    if (timed) {
      // Followers wait for the event after the node, not for the node.
      MGPU_TRY_ASSIGN(made[range.end], addEvent({made[range.end]}, range.name));
    }
  }
  return {};
}

Result<void> GraphInstance::buildChild(const GraphSpec &spec) {
  CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  MGPU_TRY(addNodes(spec, false));
  return readBack();
}

Result<void> GraphInstance::build(const GraphSpec &spec, bool timed,
                                  CuptiSession *cupti) {
  CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  const CudaApi &api = *state->api;
  MGPU_TRY(addNodes(spec, timed));
  MGPU_TRY(state->check(api.cuStreamCreateWithPriority(&stream,
                                                       CU_STREAM_NON_BLOCKING,
                                                       state->lowestPriority),
                        "cuStreamCreateWithPriority", state->where()));
  if (cupti)
    cupti->watchClones();
  MGPU_TRY(instantiate());
  if (cupti)
    numberNodes(*cupti);
  return readBack();
}

Result<void> GraphInstance::instantiate() {
  CUDA_GRAPH_INSTANTIATE_PARAMS params;
  std::memset(&params, 0, sizeof params);
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  params.hUploadStream = stream;
  CUresult code =
      state->api->cuGraphInstantiateWithParams(&exec, graph, &params);
  if (code == CUDA_SUCCESS &&
      params.result_out != CUDA_GRAPH_INSTANTIATE_SUCCESS)
    code = CUDA_ERROR_INVALID_VALUE;
  if (code == CUDA_SUCCESS)
    return state->wait(stream, "uploading the graph");
  exec = nullptr;
  auto at = std::find(nodes.begin(), nodes.end(), params.hErrNode_out);
  std::string where =
      at == nodes.end()
          ? fmt::format("of {} nodes {}", nodes.size(), state->where())
          : fmt::format("at '{}' {}", names[size_t(at - nodes.begin())],
                        state->where());
  return state->check(
      code, "cuGraphInstantiateWithParams",
      fmt::format("{} (result {})", where, int(params.result_out)));
}

std::optional<int> GraphInstance::kindOf(const CUgraphEdgeData &data) {
  const int port = data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                       ? CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
                       : CU_GRAPH_KERNEL_NODE_PORT_DEFAULT;
  if (data.to_port || data.from_port != port)
    return std::nullopt;
  return data.type;
}

bool GraphInstance::isWithinACall(CUgraphNode from, CUgraphNode to) const {
  auto a = captured.find(from), b = captured.find(to);
  return a != captured.end() && b != captured.end() && a->second == b->second;
}

Result<void> GraphInstance::readBack() {
  const CudaApi &api = *state->api;
  auto differs = [&](const std::string &how) {
    return fail(ErrorKind::Internal,
                fmt::format("the graph that CUDA has {} is not the one that "
                            "was built: {}",
                            state->where(), how));
  };
  size_t count = 0;
  MGPU_TRY(state->check(api.cuGraphGetNodes(graph, nullptr, &count),
                        "cuGraphGetNodes", state->where()));
  if (count != nodes.size())
    return differs(fmt::format("{} nodes, not {}", count, nodes.size()));
  std::vector<CUgraphNode> found(count);
  if (count > 0)
    MGPU_TRY(state->check(api.cuGraphGetNodes(graph, found.data(), &count),
                          "cuGraphGetNodes", state->where()));
  std::vector<CUgraphNode> sorted = nodes;
  std::sort(sorted.begin(), sorted.end());
  std::sort(found.begin(), found.end());
  if (found != sorted)
    return differs("its nodes are others");
  // Always with edge data: without, programmatic edges would be an error.
  count = 0;
  MGPU_TRY(state->check(
      api.cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count),
      "cuGraphGetEdges", state->where()));
  if (count != edges.size())
    return differs(fmt::format("{} edges, not {}", count, edges.size()));
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (count > 0)
    MGPU_TRY(state->check(
        api.cuGraphGetEdges(graph, from.data(), to.data(), data.data(), &count),
        "cuGraphGetEdges", state->where()));
  std::vector<Edge> there;
  for (size_t k = 0; k < count; ++k) {
    // A library's own edges are its affair.
    if (isWithinACall(from[k], to[k]))
      data[k] = {};
    std::optional<int> kind = kindOf(data[k]);
    if (!kind)
      return differs("an edge waits for something else than was asked for");
    there.push_back({from[k], to[k], *kind});
  }
  std::sort(there.begin(), there.end());
  std::sort(edges.begin(), edges.end());
  if (there == edges)
    return {};
  // Where both have the same ends, they wait for it.
  for (auto *each : {&there, &edges})
    for (Edge &edge : *each)
      std::get<2>(edge) = 0;
  return differs(there == edges
                     ? "an edge waits for something else than was asked for"
                     : "its edges are others");
}

Result<void> GraphInstance::run(const GraphSpec &spec) {
  return run(spec, events.empty() ? nullptr : events[0], nullptr);
}

Result<void> GraphInstance::run(const GraphSpec &spec, CUevent before,
                                CUevent after) {
  CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  // The GPU writes them.
  for (const GraphSpec::Mark &mark : spec.marks)
    *const_cast<volatile uint32_t *>(mark.word) = 0;
  if (before)
    MGPU_TRY(state->check(state->api->cuEventRecord(before, stream),
                          "cuEventRecord", state->where()));
  const Clock::time_point start = Clock::now();
  MGPU_TRY(state->check(state->api->cuGraphLaunch(exec, stream),
                        "cuGraphLaunch", state->where()));
  const double launchedUs = microsecondsSince(start);
  if (after)
    MGPU_TRY(state->check(state->api->cuEventRecord(after, stream),
                          "cuEventRecord", state->where()));
  Result<void> done = state->wait(stream, "a replay");
  if (done) {
    spans = {{HostActivity::Launch, 0, launchedUs},
             {HostActivity::Wait, launchedUs, microsecondsSince(start)}};
    return done;
  }
  for (const GraphSpec::Mark &mark : spec.marks)
    if (*const_cast<const volatile uint32_t *>(mark.word) == 0) {
      std::string members;
      for (DeviceId member : mark.members)
        members +=
            fmt::format("{}{}", members.empty() ? "" : ", ", member.value);
      // Its cause stays: whether this rank failed, or gave up for another one.
      done.error().message +=
          fmt::format("; '{}' among devices {} has not ended",
                      spec.ranges[mark.range].name, members);
      break;
    }
  return done;
}

Result<double> GraphInstance::runSpan(const GraphSpec &spec) {
  CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  while (borders.size() < 2) {
    MGPU_TRY_ASSIGN(CUevent event, makeEvent());
    borders.push_back(event);
  }
  MGPU_TRY(run(spec, borders[0], borders[1]));
  float ms = 0;
  MGPU_TRY(
      state->check(state->api->cuEventElapsedTime(&ms, borders[0], borders[1]),
                   "cuEventElapsedTime", state->where()));
  return 1e3 * double(ms);
}

Result<std::vector<NodeTiming>>
GraphInstance::timings(const GraphSpec &spec) const {
  CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  auto us = [&](CUevent event) -> Result<double> {
    float ms = 0;
    MGPU_TRY(state->check(state->api->cuEventElapsedTime(&ms, events[0], event),
                          "cuEventElapsedTime", state->where()));
    return 1e3 * double(ms);
  };
  std::vector<NodeTiming> out;
  for (uint32_t k = 0; k < spec.ranges.size(); ++k) {
    NodeTiming timing;
    timing.node = {k};
    timing.queue = uint32_t(std::max(spec.ranges[k].device.value, 0));
    MGPU_TRY_ASSIGN(timing.startUs, us(events[1 + 2 * k]));
    MGPU_TRY_ASSIGN(timing.endUs, us(events[2 + 2 * k]));
    out.push_back(timing);
  }
  return out;
}

} // namespace mgpu::device
