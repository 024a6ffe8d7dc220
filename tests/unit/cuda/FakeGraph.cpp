// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of the driver that is not there.
#include "FakeCuda.h"

#include <algorithm>
#include <cstring>

namespace mgpu::fake {

namespace {

/// Bytes of the member of CUgraphNodeParams that a type uses.
size_t usedBytes(CUgraphNodeType type) {
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return sizeof(CUDA_KERNEL_NODE_PARAMS_v3);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return sizeof(CUDA_MEMCPY_NODE_PARAMS);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return sizeof(CUDA_MEMSET_NODE_PARAMS_v2);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return sizeof(CUDA_EVENT_RECORD_NODE_PARAMS);
  default:
    return 0;
  }
}

bool isZero(const void *data, size_t size) {
  const auto *bytes = static_cast<const unsigned char *>(data);
  return std::all_of(bytes, bytes + size, [](unsigned char b) { return !b; });
}

CUresult checkKernel(FakeCuda &fake, const CUDA_KERNEL_NODE_PARAMS_v3 &params,
                     Node &node) {
  // 1807: kern is looked at only if func is null, ctx only then.
  auto *kernel = reinterpret_cast<Kernel *>(params.kern);
  if (params.func || !kernel || !fake.libraries.find(kernel->library))
    return CUDA_ERROR_INVALID_HANDLE;
  if (params.ctx ? !fake.contexts.find(params.ctx) : !fake.current())
    return CUDA_ERROR_INVALID_CONTEXT;
  // CUDA C++ Programming Guide, Technical Specifications per Compute
  // Capability: the same on every card.
  uint64_t threads = uint64_t(params.blockDimX) * params.blockDimY *
                     uint64_t(params.blockDimZ);
  if (!params.gridDimX || !params.gridDimY || !params.gridDimZ || !threads ||
      params.gridDimX > 2147483647u || params.gridDimY > 65535 ||
      params.gridDimZ > 65535 || threads > uint64_t(kernel->code->maxThreads))
    return CUDA_ERROR_INVALID_VALUE;
  if (int(params.sharedMemBytes) > kernel->dynamicSharedBytes)
    return CUDA_ERROR_INVALID_VALUE;
  const auto &sizes = kernel->code->parameterSizes;
  if (params.extra || (!sizes.empty() && !params.kernelParams))
    return CUDA_ERROR_INVALID_VALUE;
  // 18679: the values are read now, each from where kernelParams[k] points.
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto *value = static_cast<const std::byte *>(params.kernelParams[k]);
    node.values.emplace_back(value, value + sizes[k]);
  }
  return CUDA_SUCCESS;
}

CUresult checkEnd(FakeCuda &fake, const CUDA_MEMCPY3D &copy, bool isSource) {
  CUmemorytype type = isSource ? copy.srcMemoryType : copy.dstMemoryType;
  const void *host = isSource ? copy.srcHost : copy.dstHost;
  CUdeviceptr device = isSource ? copy.srcDevice : copy.dstDevice;
  size_t pitch = isSource ? copy.srcPitch : copy.dstPitch;
  size_t height = isSource ? copy.srcHeight : copy.dstHeight;
  size_t x = isSource ? copy.srcXInBytes : copy.dstXInBytes;
  // 10392: the pitch is at least the width, and the height the rows;
  // 10399: at most MAX_PITCH.
  if (pitch < copy.WidthInBytes + x || pitch > 2147483647u ||
      (copy.Depth > 1 && height < copy.Height))
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t bytes =
      ((copy.Depth - 1) * height + copy.Height - 1) * pitch + copy.WidthInBytes;
  switch (type) {
  case CU_MEMORYTYPE_HOST:
    // Pageable memory is allowed, but not what we want in a graph.
    return fake.isHostRange(host, bytes) ? CUDA_SUCCESS
                                         : CUDA_ERROR_INVALID_VALUE;
  case CU_MEMORYTYPE_DEVICE:
    return fake.isDeviceRange(device, bytes) ? CUDA_SUCCESS
                                             : CUDA_ERROR_INVALID_VALUE;
  case CU_MEMORYTYPE_UNIFIED: // 9975: the driver finds out whose it is
    return fake.isDeviceRange(device, bytes) ||
                   fake.isHostRange(reinterpret_cast<const void *>(device),
                                    bytes)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult checkCopy(FakeCuda &fake, const CUDA_MEMCPY_NODE_PARAMS &params) {
  // 3402-3404: flags and reserved must be zero.
  if (params.flags || params.reserved)
    return CUDA_ERROR_INVALID_VALUE;
  if (!fake.contexts.find(params.copyCtx))
    return CUDA_ERROR_INVALID_CONTEXT;
  const CUDA_MEMCPY3D &copy = params.copyParams;
  if (copy.reserved0 || copy.reserved1 || copy.srcLOD || copy.dstLOD ||
      !copy.WidthInBytes || !copy.Height || !copy.Depth)
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult code = checkEnd(fake, copy, true))
    return code;
  return checkEnd(fake, copy, false);
}

CUresult checkMemset(FakeCuda &fake, const CUDA_MEMSET_NODE_PARAMS_v2 &params) {
  if (!fake.contexts.find(params.ctx))
    return CUDA_ERROR_INVALID_CONTEXT;
  // 1830: elements of 1, 2 or 4 bytes; here of one row only.
  uint64_t bytes = uint64_t(params.width) * params.elementSize;
  if ((params.elementSize != 1 && params.elementSize != 2 &&
       params.elementSize != 4) ||
      params.height != 1 || bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return fake.isDeviceRange(params.dst, bytes) ||
                 fake.isHostRange(reinterpret_cast<void *>(params.dst), bytes)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult graphCreate(CUgraph *graph, unsigned flags) {
  MGPU_FAKE_ENTER("cuGraphCreate");
  if (flags != 0) // 18613
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  *graph = reinterpret_cast<CUgraph>(fake.graphs.add({}));
  return CUDA_SUCCESS;
}

CUresult graphDestroy(CUgraph graph) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuGraphDestroy");
  if (!fake.graphs.remove(graph))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  return entered;
}

/// 21448: reserved0 and all bytes past the member used must be zero.
bool unusedIsZero(const CUgraphNodeParams &params) {
  const auto *bytes = reinterpret_cast<const std::byte *>(&params);
  size_t from = offsetof(CUgraphNodeParams, kernel) + usedBytes(params.type);
  return isZero(params.reserved0, sizeof params.reserved0) &&
         isZero(bytes + from, sizeof params - from);
}

CUresult addNode(CUgraphNode *out, CUgraph handle,
                 const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                 size_t count, CUgraphNodeParams *params) {
  MGPU_FAKE_ENTER("cuGraphAddNode");
  Graph *graph = fake.graphs.find(handle);
  if (!graph || !params || (count && !dependencies))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (!unusedIsZero(*params))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  auto node = std::make_unique<Node>();
  node->graph = graph;
  node->params = *params;
  node->id = ++fake.nodesMade;
  for (size_t k = 0; k < count; ++k) {
    auto *dependency = reinterpret_cast<Node *>(dependencies[k]);
    bool ours =
        std::any_of(graph->nodes.begin(), graph->nodes.end(),
                    [&](const auto &each) { return each.get() == dependency; });
    bool twice = std::count(node->dependencies.begin(),
                            node->dependencies.end(), dependency) > 0;
    if (!ours || twice) // 21444: no duplicates
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    // 1991: reserved bytes of edge data are zero, the ports those of a kernel.
    if (edges && !isZero(&edges[k], sizeof edges[k]) &&
        dependency->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    node->dependencies.push_back(dependency);
  }
  CUresult code = CUDA_SUCCESS;
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_EMPTY:
    break;
  case CU_GRAPH_NODE_TYPE_KERNEL:
    code = checkKernel(fake, params->kernel, *node);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    fake.lastCopy = params->memcpy.copyParams;
    code = checkCopy(fake, params->memcpy);
    break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    code = checkMemset(fake, params->memset);
    break;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    if (!fake.events.find(params->eventRecord.event))
      code = CUDA_ERROR_INVALID_HANDLE;
    break;
  default:
    code = CUDA_ERROR_NOT_SUPPORTED;
  }
  if (code != CUDA_SUCCESS)
    return fake.refuse(code);
  graph->nodes.push_back(std::move(node));
  *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

CUresult setAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                      const CUkernelNodeAttrValue *value) {
  MGPU_FAKE_ENTER("cuGraphKernelNodeSetAttribute");
  auto *node = reinterpret_cast<Node *>(handle);
  // 20369: priorities are there on kernel nodes only.
  if (!node || !fake.graphs.find(node->graph) ||
      node->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY || value->priority > 0 ||
      value->priority < -5)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  node->priority = value->priority;
  return CUDA_SUCCESS;
}

CUresult getNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
  MGPU_FAKE_ENTER("cuGraphGetNodes");
  Graph *graph = fake.graphs.find(handle);
  if (!graph)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  size_t there = graph->nodes.size();
  if (fake.losesANode && there > 0)
    --there;
  if (nodes)
    for (size_t k = 0; k < std::min(*count, there); ++k)
      nodes[k] = reinterpret_cast<CUgraphNode>(graph->nodes[k].get());
  *count = there;
  return CUDA_SUCCESS;
}

CUresult getEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                  CUgraphEdgeData *data, size_t *count) {
  MGPU_FAKE_ENTER("cuGraphGetEdges");
  Graph *graph = fake.graphs.find(handle);
  // 20149: edge data only together with both ends.
  if (!graph || (data && (!from || !to)))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  size_t k = 0;
  for (const auto &node : graph->nodes)
    for (Node *dependency : node->dependencies) {
      if (from && k < *count) {
        from[k] = reinterpret_cast<CUgraphNode>(dependency);
        to[k] = reinterpret_cast<CUgraphNode>(node.get());
        if (data)
          data[k] = {};
      }
      ++k;
    }
  *count = k;
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec *out, CUgraph handle,
                     CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  MGPU_FAKE_ENTER("cuGraphInstantiateWithParams");
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR; // 20487
  Graph *graph = fake.graphs.find(handle);
  constexpr uint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                             CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY |
                             CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  if (!graph || (params->flags & ~known))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  // 15388: not before the capture into it has ended.
  if (fake.streams.any([&](const Stream &s) { return s.capturing == graph; }))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  // 20445: the upload is into hUploadStream.
  Stream *upload = fake.streams.find(params->hUploadStream);
  if ((params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) && !upload)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  Exec exec;
  exec.flags = params->flags;
  std::map<Node *, size_t> index;
  for (size_t k = 0; k < graph->nodes.size(); ++k) {
    index[graph->nodes[k].get()] = k;
    Exec::Step step{*graph->nodes[k], {}, graph->nodes[k].get()};
    for (Node *dependency : graph->nodes[k]->dependencies)
      step.dependencies.push_back(index.at(dependency));
    step.node.id = ++fake.nodesMade;
    if (fake.onClone)
      fake.onClone(step.node, *graph->nodes[k]);
    exec.steps.push_back(std::move(step));
  }
  for (const Exec::Step &step : exec.steps)
    if (step.node.priority != 0 &&
        !(params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))
      fake.violations.push_back("priorities without the flag do nothing");
  if (upload)
    upload->busyQueries = fake.neverEnds ? 0 : fake.busyQueries;
  params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS; // 20500
  params->hErrNode_out = nullptr;
  *out = reinterpret_cast<CUgraphExec>(fake.execs.add(std::move(exec)));
  return CUDA_SUCCESS;
}

/// A copy of one dimension (20608: both the old operands and the new).
bool isLine(const CUDA_MEMCPY3D &copy) {
  return copy.Height == 1 && copy.Depth == 1;
}

CUresult setParams(CUgraphExec handle, CUgraphNode node,
                   CUgraphNodeParams *params) {
  MGPU_FAKE_ENTER("cuGraphExecNodeSetParams");
  Exec *exec = fake.execs.find(handle);
  auto *original = reinterpret_cast<Node *>(node);
  if (!exec || !params)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  // 20548: a node of the graph that it was instantiated from, still in it.
  auto step = std::find_if(
      exec->steps.begin(), exec->steps.end(),
      [&](const Exec::Step &each) { return each.original == original; });
  if (step == exec->steps.end() || !fake.graphs.find(original->graph) ||
      step->node.start || params->type != step->node.params.type)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (!unusedIsZero(*params))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  Node next = step->node;
  next.params = *params;
  next.values.clear();
  CUresult code = CUDA_SUCCESS;
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    // 20554: the owning context cannot change.
    if (params->kernel.ctx != step->node.params.kernel.ctx)
      code = CUDA_ERROR_INVALID_VALUE;
    else
      code = checkKernel(fake, params->kernel, next);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY: {
    const CUDA_MEMCPY3D &was = step->node.params.memcpy.copyParams,
                        &is = params->memcpy.copyParams;
    // 20606: memory of the same contexts, both of one dimension, not empty.
    auto isDevice = [&](CUdeviceptr address) {
      return fake.isDeviceRange(address, 1);
    };
    if (!isLine(was) || !isLine(is) || was.srcMemoryType != is.srcMemoryType ||
        was.dstMemoryType != is.dstMemoryType ||
        (was.srcMemoryType == CU_MEMORYTYPE_UNIFIED &&
         isDevice(was.srcDevice) != isDevice(is.srcDevice)) ||
        (was.dstMemoryType == CU_MEMORYTYPE_UNIFIED &&
         isDevice(was.dstDevice) != isDevice(is.dstDevice)))
      code = CUDA_ERROR_INVALID_VALUE;
    else
      code = checkCopy(fake, params->memcpy);
    break;
  }
  case CU_GRAPH_NODE_TYPE_MEMSET:
    code = checkMemset(fake, params->memset);
    break;
  default:
    code = CUDA_ERROR_NOT_SUPPORTED;
  }
  if (code != CUDA_SUCCESS)
    return fake.refuse(code);
  step->node = std::move(next);
  return CUDA_SUCCESS;
}

CUresult execDestroy(CUgraphExec exec) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuGraphExecDestroy");
  if (!fake.execs.remove(exec))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  return entered;
}

CUresult graphLaunch(CUgraphExec handle, CUstream on) {
  MGPU_FAKE_ENTER("cuGraphLaunch");
  Exec *exec = fake.execs.find(handle);
  Stream *stream = fake.streams.find(on);
  if (!exec || !stream)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (stream->busyQueries > 0 || !stream->runs.empty())
    fake.violations.push_back("a launch while the last one may run");
  if (fake.onLaunch)
    fake.onLaunch(++fake.launches);
  return fake.launch(exec->steps, *stream);
}

} // namespace

CUresult FakeCuda::launch(const std::vector<Exec::Step> &steps,
                          Stream &stream) {
  stream.busyQueries = busyQueries;
  if (launchFault != CUDA_SUCCESS) {
    sticky = launchFault; // the launch itself succeeds
    return CUDA_SUCCESS;
  }
  auto run = std::make_shared<Run>();
  run->steps = steps;
  run->waits.resize(steps.size());
  run->after.resize(steps.size());
  run->startMs = clockMs;
  for (size_t k = 0; k < steps.size(); ++k) {
    run->waits[k] = steps[k].dependencies.size();
    for (size_t dependency : steps[k].dependencies)
      run->after[dependency].push_back(k);
    if (run->waits[k] == 0)
      run->ready.push_back(k);
  }
  stream.runs.push_back(std::move(run));
  progress(stream);
  return CUDA_SUCCESS;
}

bool FakeCuda::progress(Stream &stream) {
  while (!stream.runs.empty() && sticky == CUDA_SUCCESS) {
    if (!progress(*stream.runs.front()))
      return false;
    if (onGraph)
      onGraph(stream.runs.front()->startMs, clockMs);
    stream.runs.pop_front();
  }
  return true;
}

bool FakeCuda::progress(Run &run) {
  auto finish = [&](size_t k) {
    for (size_t next : run.after[k])
      if (--run.waits[next] == 0)
        run.ready.push_back(next);
  };
  while (true) {
    for (auto at = run.waiting.begin(); at != run.waiting.end();) {
      if (!at->second->step()) {
        ++at;
        continue;
      }
      if (onNode)
        onNode(run.steps[at->first].node, clockMs, clockMs + 0.125);
      clockMs += 0.125;
      finish(at->first);
      at = run.waiting.erase(at);
    }
    if (run.ready.empty())
      return run.waiting.empty();
    size_t pick = random() % run.ready.size();
    size_t k = run.ready[pick];
    run.ready.erase(run.ready.begin() + ptrdiff_t(pick));
    const Node &node = run.steps[k].node;
    if (node.start) {
      run.waiting[k] = node.start();
      continue;
    }
    const double start = clockMs;
    if (CUresult code = runNode(node)) {
      sticky = code;
      return true;
    }
    if (onNode)
      onNode(node, start, clockMs);
    finish(k);
  }
}

CUresult FakeCuda::runNode(const Node &node) {
  clockMs += 0.125;
  switch (node.params.type) {
  case CU_GRAPH_NODE_TYPE_KERNEL: {
    const CUDA_KERNEL_NODE_PARAMS_v3 &params = node.params.kernel;
    auto *kernel = reinterpret_cast<Kernel *>(params.kern);
    if (!libraries.find(kernel->library)) {
      violations.push_back("kernel " + kernel->name +
                           " ran after its library was unloaded");
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    std::vector<std::vector<std::byte>> values = node.values;
    std::vector<void *> pointers;
    for (auto &value : values)
      pointers.push_back(value.data());
    unsigned grid[3] = {params.gridDimX, params.gridDimY, params.gridDimZ};
    unsigned block[3] = {params.blockDimX, params.blockDimY, params.blockDimZ};
    kernel->code->run(pointers.data(), grid, block);
    return CUDA_SUCCESS;
  }
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return runCopy(node.params.memcpy.copyParams);
  case CU_GRAPH_NODE_TYPE_MEMSET: {
    const CUDA_MEMSET_NODE_PARAMS_v2 &set = node.params.memset;
    if (checkMemset(*this, set)) {
      violations.push_back("a memset ran after its memory was freed");
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    auto *to = reinterpret_cast<unsigned char *>(set.dst);
    for (size_t k = 0; k < set.width * set.elementSize; ++k)
      to[k] = (unsigned char)(set.value >> 8 * (k % set.elementSize));
    return CUDA_SUCCESS;
  }
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
    Event *event = events.find(node.params.eventRecord.event);
    if (!event) {
      violations.push_back("an event was recorded after it was destroyed");
      return CUDA_ERROR_INVALID_HANDLE;
    }
    event->recorded = true;
    event->ms = clockMs;
    return CUDA_SUCCESS;
  }
  default:
    return CUDA_SUCCESS;
  }
}

CUresult FakeCuda::runCopy(const CUDA_MEMCPY3D &copy) {
  // Memory may have been freed since the node was made.
  if (checkEnd(*this, copy, true) || checkEnd(*this, copy, false)) {
    violations.push_back("a copy ran after its memory was freed");
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const auto *from = copy.srcMemoryType == CU_MEMORYTYPE_HOST
                         ? static_cast<const char *>(copy.srcHost)
                         : reinterpret_cast<const char *>(copy.srcDevice);
  auto *to = copy.dstMemoryType == CU_MEMORYTYPE_HOST
                 ? static_cast<char *>(copy.dstHost)
                 : reinterpret_cast<char *>(copy.dstDevice);
  for (size_t z = 0; z < copy.Depth; ++z)
    for (size_t y = 0; y < copy.Height; ++y) {
      const char *source = from + (z * copy.srcHeight + y) * copy.srcPitch;
      char *target = to + (z * copy.dstHeight + y) * copy.dstPitch;
      if (source < target + copy.WidthInBytes &&
          target < source + copy.WidthInBytes)
        violations.push_back("a copy whose ends overlap");
      std::memmove(target, source, copy.WidthInBytes);
    }
  return CUDA_SUCCESS;
}

std::vector<CUgraphNodeType> FakeCuda::builtTypes() const {
  std::vector<CUgraphNodeType> types;
  for (const auto &node : graphs.youngest()->nodes)
    types.push_back(node->params.type);
  return types;
}

void addGraphEntries(device::CudaApi &api) {
  api.cuGraphCreate = graphCreate;
  api.cuGraphDestroy = graphDestroy;
  api.cuGraphAddNode = addNode;
  api.cuGraphKernelNodeSetAttribute = setAttribute;
  api.cuGraphGetNodes = getNodes;
  api.cuGraphGetEdges = getEdges;
  api.cuGraphInstantiateWithParams = instantiate;
  api.cuGraphExecNodeSetParams = setParams;
  api.cuGraphExecDestroy = execDestroy;
  api.cuGraphLaunch = graphLaunch;
}

} // namespace mgpu::fake
