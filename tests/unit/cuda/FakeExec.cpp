// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executables of graphs: made, changed and run.
#include "FakeNodes.h"

#include <algorithm>
#include <cstring>

namespace mgpu::fake {

namespace {

/// The fault of a kernel, as FakeCuda has them.
void spoil(FakeCuda &fake, Node &node) {
  Context *context = fake.current();
  if (node.params.type != CU_GRAPH_NODE_TYPE_KERNEL || !context ||
      !fake.isWrong(*context))
    return;
  const int number = ++fake.kernelsMade;
  if (number == fake.dropsKernel)
    node.params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (number != fake.movesKernel)
    return;
  uint64_t address = 0;
  std::memcpy(&address, node.values.at(0).data(), sizeof address);
  address += 4;
  std::memcpy(node.values[0].data(), &address, sizeof address);
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
  int edges = 0;
  for (size_t k = 0; k < graph->nodes.size(); ++k) {
    index[graph->nodes[k].get()] = k;
    Exec::Step step{*graph->nodes[k], {}, graph->nodes[k].get()};
    const Node &node = *graph->nodes[k];
    for (size_t d = 0; d < node.dependencies.size(); ++d) {
      if (edges++ == fake.losesEdge)
        continue;
      step.dependencies.push_back(index.at(node.dependencies[d]));
      if (d < node.edgeData.size() && node.edgeData[d].type)
        step.early.push_back(step.dependencies.back());
    }
    step.node.id = ++fake.nodesMade;
    if (fake.onClone)
      fake.onClone(step.node, *graph->nodes[k]);
    spoil(fake, step.node);
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
  Stream *stream = fake.streamOf(on);
  if (!exec || !stream)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (CUresult refusal = fake.refusalOf(on, "a graph's launch");
      refusal != CUDA_SUCCESS)
    return fake.refuse(refusal);
  // A rule of ours for our own streams; the caller's are to be queued in, and
  // ours behind an event.
  if (!stream->isCallers && !std::exchange(stream->isOrdered, false) &&
      (stream->busyQueries > 0 || !stream->runs.empty()))
    fake.violations.push_back("a launch while the last one may run");
  if (fake.onLaunch)
    fake.onLaunch(++fake.launches);
  return fake.launch(exec->steps, *stream);
}

} // namespace

static void makeReady(Run &run, size_t k) {
  run.ready.push_back(k);
  if (run.steps[k].node.start) // not a step that awaitGrids() can run
    return;
  // 1953: once all blocks of a kernel let the next begin or have ended; what it
  // wrote need not be there then. So here as soon as it may begin itself.
  for (size_t next : run.afterBegin[k])
    if (--run.waits[next] == 0)
      makeReady(run, next);
}

static void finish(Run &run, size_t k) {
  run.isDone[k] = true;
  auto follow = [&](const std::vector<size_t> &nodes) {
    for (size_t next : nodes)
      if (--run.waits[next] == 0)
        makeReady(run, next);
  };
  follow(run.after[k]);
  if (run.steps[k].node.start)
    follow(run.afterBegin[k]);
}

CUresult FakeCuda::launch(const std::vector<Exec::Step> &steps,
                          Stream &stream) {
  stream.busyQueries = busyQueries;
  ++unsynchronized;
  if (launchFault != CUDA_SUCCESS && isWrong(*stream.context)) {
    stream.context->sticky = launchFault; // the launch itself succeeds
    return CUDA_SUCCESS;
  }
  auto run = std::make_shared<Run>();
  run->context = stream.context;
  run->steps = steps;
  run->waits.resize(steps.size());
  run->after.resize(steps.size());
  run->afterBegin.resize(steps.size());
  run->isDone.resize(steps.size());
  for (size_t k = 0; k < steps.size(); ++k) {
    run->waits[k] = steps[k].dependencies.size();
    for (size_t dependency : steps[k].dependencies)
      (std::count(steps[k].early.begin(), steps[k].early.end(), dependency)
           ? run->afterBegin
           : run->after)[dependency]
          .push_back(k);
  }
  for (size_t k = 0; k < steps.size(); ++k)
    if (steps[k].dependencies.empty())
      makeReady(*run, k);
  stream.runs.push_back(std::move(run));
  progress(stream);
  return CUDA_SUCCESS;
}

bool FakeCuda::progress(Stream &stream) {
  while (!stream.runs.empty() && stream.context->sticky == CUDA_SUCCESS) {
    Run &run = *stream.runs.front();
    if (!progress(run))
      return false;
    if (run.behind)
      run.behind();
    stream.runs.pop_front();
  }
  return true;
}

void FakeCuda::runStep(Run &run, size_t k) {
  run.ready.erase(std::find(run.ready.begin(), run.ready.end(), k));
  const Node &node = run.steps[k].node;
  for (size_t dependency : run.steps[k].early)
    earlyBegins += !run.isDone[dependency];
  if (node.start) {
    run.waiting[k] = nullptr;
    return;
  }
  running.push_back({&run, k});
  const double start = clockMs;
  CUresult code = runNode(node);
  running.pop_back();
  if (code != CUDA_SUCCESS)
    run.context->sticky = code;
  if (run.context->sticky != CUDA_SUCCESS)
    return;
  if (onNode)
    onNode(node, start, clockMs);
  finish(run, k);
}

void FakeCuda::awaitGrids() {
  if (running.empty())
    return;
  auto [run, k] = running.back();
  // What it follows is a kernel that may begin, or it would not run: its full
  // dependencies have ended.
  for (size_t dependency : run->steps[k].early)
    if (!run->isDone[dependency] && run->context->sticky == CUDA_SUCCESS)
      runStep(*run, dependency);
}

void FakeCuda::checkOrder(Run &run) {
  std::vector<std::vector<size_t>> dependencies;
  for (const Exec::Step &step : run.steps)
    dependencies.push_back(step.dependencies);
  auto nameOf = [&](size_t k) {
    const CUgraphNodeParams &params = run.steps[k].node.params;
    return params.type == CU_GRAPH_NODE_TYPE_KERNEL
               ? "kernel " +
                     reinterpret_cast<Kernel *>(params.kernel.kern)->name
           : params.type == CU_GRAPH_NODE_TYPE_MEMCPY ? std::string("a copy")
                                                      : std::string("a memset");
  };
  for (const OrderWatch::Fault &fault : run.order.faults(dependencies))
    violations.push_back(
        "node " + std::to_string(fault.first) + " (" + nameOf(fault.first) +
        ") and node " + std::to_string(fault.second) + " (" +
        nameOf(fault.second) + ") of a graph touch " +
        std::to_string(fault.bytes) +
        " bytes that one of them writes, and no path of edges orders them");
  run.order = {};
}

bool FakeCuda::progress(Run &run) {
  while (true) {
    for (auto at = run.waiting.begin(); at != run.waiting.end();) {
      // It executes griddepcontrol.wait before all else.
      const Exec::Step &step = run.steps[at->first];
      const bool waits =
          std::any_of(step.early.begin(), step.early.end(),
                      [&](size_t each) { return !run.isDone[each]; });
      if (!waits && !at->second)
        at->second = step.node.start();
      if (waits || !at->second->step()) {
        ++at;
        continue;
      }
      const double ms = at->second->ms();
      if (onNode)
        onNode(run.steps[at->first].node, clockMs, clockMs + ms);
      clockMs += ms;
      finish(run, at->first);
      at = run.waiting.erase(at);
    }
    if (run.ready.empty()) {
      if (run.waiting.empty() && watchesOrder)
        checkOrder(run);
      return run.waiting.empty();
    }
    runStep(run, run.ready[random() % run.ready.size()]);
    if (run.context->sticky != CUDA_SUCCESS)
      return true;
  }
}

CUresult FakeCuda::runNode(const Node &node) {
  clockMs += nodeMs ? nodeMs(node) : 0.125;
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
    dynamicSharedBytes = params.sharedMemBytes;
    kernel->code->run(pointers.data(), grid, block);
    return kernel->code->fault ? kernel->code->fault() : CUDA_SUCCESS;
  }
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return runCopy(node.params.memcpy);
  case CU_GRAPH_NODE_TYPE_MEMSET: {
    const CUDA_MEMSET_NODE_PARAMS_v2 &set = node.params.memset;
    if (checkMemset(*this, set)) {
      violations.push_back("a memset ran after its memory was freed");
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    auto *to = reinterpret_cast<unsigned char *>(set.dst);
    touched(set.dst, set.width * set.elementSize, true);
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

CUresult FakeCuda::runCopy(const CUDA_MEMCPY_NODE_PARAMS &params) {
  const CUDA_MEMCPY3D &copy = params.copyParams;
  // Memory may have been freed since the node was made.
  if (checkEnd(*this, params, true) || checkEnd(*this, params, false)) {
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
      touched(uint64_t(uintptr_t(source)), copy.WidthInBytes, false);
      touched(uint64_t(uintptr_t(target)), copy.WidthInBytes, true);
      std::memmove(target, source, copy.WidthInBytes);
    }
  return CUDA_SUCCESS;
}

void addExecEntries(device::CudaApi &api) {
  api.cuGraphInstantiateWithParams = instantiate;
  api.cuGraphExecNodeSetParams = setParams;
  api.cuGraphExecDestroy = execDestroy;
  api.cuGraphLaunch = graphLaunch;
}

} // namespace mgpu::fake
