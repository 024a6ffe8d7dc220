// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/cuda/BareGpu.h"

#include "device/cuda/api/CudaError.h"
#include "support/Clock.h"

#include <cstring>
#include <ctime>
#include <dlfcn.h>

namespace mgpu::bench {

CallCost costNow() {
  auto us = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return 1e6 * double(now.tv_sec) + 1e-3 * double(now.tv_nsec);
  };
  return {us(CLOCK_MONOTONIC), us(CLOCK_THREAD_CPUTIME_ID)};
}

Result<void> BareGpu::check(CUresult code, const char *call) const {
  if (code == CUDA_SUCCESS)
    return {};
  return device::cudaError(*api, code, call, "on GPU 0, without mgpu");
}

Result<std::unique_ptr<BareGpu>> BareGpu::open() {
  std::unique_ptr<BareGpu> gpu(new BareGpu());
  MGPU_TRY_ASSIGN(gpu->api, device::openCuda());
  // It is open already; what the table does not have is asked for in the same
  // way.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto find = library ? reinterpret_cast<PFN_cuGetProcAddress_v12000>(
                            dlsym(library, "cuGetProcAddress_v2"))
                      : nullptr;
  auto take = [&](const char *name, int version, auto &into) -> Result<void> {
    void *function = nullptr;
    CUdriverProcAddressQueryResult found{};
    if (!find ||
        find(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
             &found) != CUDA_SUCCESS ||
        !function)
      return fail(ErrorKind::Absent,
                  std::string("the NVIDIA driver has no ") + name);
    into = reinterpret_cast<std::decay_t<decltype(into)>>(function);
    return {};
  };
  MGPU_TRY(take("cuLaunchKernel", 4000, gpu->launchKernel));
  MGPU_TRY(take("cuStreamWaitEvent", 3020, gpu->waitEvent));
  MGPU_TRY(take("cuMemcpyDtoDAsync", 3020, gpu->copyAsync));
  const device::CudaApi &api = *gpu->api;
  MGPU_TRY(gpu->check(api.cuDeviceGet(&gpu->device, 0), "cuDeviceGet"));
  MGPU_TRY(gpu->check(api.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device),
                      "cuDevicePrimaryCtxRetain"));
  MGPU_TRY(gpu->check(api.cuCtxPushCurrent(gpu->context), "cuCtxPushCurrent"));
  MGPU_TRY(gpu->check(
      api.cuStreamCreateWithPriority(&gpu->stream, CU_STREAM_NON_BLOCKING, 0),
      "cuStreamCreateWithPriority"));
  for (CUevent &each : gpu->borders)
    MGPU_TRY(gpu->check(api.cuEventCreate(&each, CU_EVENT_DEFAULT),
                        "cuEventCreate"));
  return gpu;
}

BareGpu::~BareGpu() {
  if (!api || !context)
    return;
  for (CUlibrary each : libraries)
    api->cuLibraryUnload(each);
  for (CUevent each : events)
    api->cuEventDestroy(each);
  for (CUevent each : borders)
    if (each)
      api->cuEventDestroy(each);
  for (CUstream each : streams)
    api->cuStreamDestroy(each);
  if (stream)
    api->cuStreamDestroy(stream);
  CUcontext popped = nullptr;
  api->cuCtxPopCurrent(&popped);
  api->cuDevicePrimaryCtxRelease(device);
}

Result<CUkernel> BareGpu::load(std::span<const std::byte> cubin,
                               const char *entry) {
  CUlibrary library = nullptr;
  MGPU_TRY(check(api->cuLibraryLoadData(&library, cubin.data(), nullptr,
                                        nullptr, 0, nullptr, nullptr, 0),
                 "cuLibraryLoadData"));
  libraries.push_back(library);
  CUkernel kernel = nullptr;
  MGPU_TRY(check(api->cuLibraryGetKernel(&kernel, library, entry),
                 "cuLibraryGetKernel"));
  CUfunction function = nullptr;
  MGPU_TRY(check(api->cuKernelGetFunction(&function, kernel),
                 "cuKernelGetFunction"));
  MGPU_TRY(check(api->cuFuncLoad(function), "cuFuncLoad"));
  return kernel;
}

static std::vector<void *> pointersTo(const BareLaunch &launch) {
  std::vector<void *> values;
  for (uint32_t offset : launch.offsets)
    values.push_back(const_cast<std::byte *>(launch.parameters.data()) +
                     offset);
  return values;
}

Result<BareGpu::Graph>
BareGpu::makeGraph(CUkernel kernel, std::span<const BareLaunch> launches,
                   std::span<const std::pair<uint32_t, uint32_t>> edges) {
  Graph made;
  MGPU_TRY(check(api->cuGraphCreate(&made.graph, 0), "cuGraphCreate"));
  std::vector<std::vector<uint32_t>> before(launches.size());
  for (auto [from, to] : edges)
    before[to].push_back(from);
  std::vector<CUgraphNode> nodes(launches.size());
  for (size_t k = 0; k < launches.size(); ++k) {
    std::vector<CUgraphNode> dependencies;
    for (uint32_t from : before[k])
      dependencies.push_back(nodes[from]);
    std::vector<void *> values = pointersTo(launches[k]);
    CUgraphNodeParams params;
    std::memset(&params, 0, sizeof params);
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.kernel.kern = kernel;
    params.kernel.ctx = context;
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ =
        1;
    params.kernel.blockDimX = params.kernel.blockDimY =
        params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = values.data();
    MGPU_TRY(check(api->cuGraphAddNode(
                       &nodes[k], made.graph,
                       dependencies.empty() ? nullptr : dependencies.data(),
                       nullptr, dependencies.size(), &params),
                   "cuGraphAddNode"));
  }
  CUDA_GRAPH_INSTANTIATE_PARAMS how;
  std::memset(&how, 0, sizeof how);
  how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  how.hUploadStream = stream;
  MGPU_TRY(
      check(api->cuGraphInstantiateWithParams(&made.exec, made.graph, &how),
            "cuGraphInstantiateWithParams"));
  MGPU_TRY(drain(stream));
  return made;
}

void BareGpu::destroy(Graph &graph) {
  if (graph.exec)
    api->cuGraphExecDestroy(graph.exec);
  if (graph.graph)
    api->cuGraphDestroy(graph.graph);
  graph = {};
}

Result<void> BareGpu::drain(CUstream of) {
  CUresult code;
  while ((code = api->cuStreamQuery(of)) == CUDA_ERROR_NOT_READY) {
  }
  return check(code, "cuStreamQuery");
}

Result<CallCost> BareGpu::replay(const Graph &graph, double &launchUs) {
  const CallCost start = costNow();
  MGPU_TRY(check(api->cuGraphLaunch(graph.exec, stream), "cuGraphLaunch"));
  launchUs = costNow().wallUs - start.wallUs;
  MGPU_TRY(drain(stream));
  return costNow() - start;
}

Result<double> BareGpu::betweenBorders() {
  MGPU_TRY(drain(stream));
  float ms = 0;
  MGPU_TRY(check(api->cuEventElapsedTime(&ms, borders[0], borders[1]),
                 "cuEventElapsedTime"));
  return 1e3 * double(ms);
}

Result<double> BareGpu::spanInStream(CUkernel kernel,
                                     std::span<const BareLaunch> launches) {
  CUfunction function = nullptr;
  MGPU_TRY(check(api->cuKernelGetFunction(&function, kernel),
                 "cuKernelGetFunction"));
  MGPU_TRY(check(api->cuEventRecord(borders[0], stream), "cuEventRecord"));
  for (const BareLaunch &launch : launches) {
    std::vector<void *> values = pointersTo(launch);
    MGPU_TRY(check(launchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream,
                                values.data(), nullptr),
                   "cuLaunchKernel"));
  }
  MGPU_TRY(check(api->cuEventRecord(borders[1], stream), "cuEventRecord"));
  return betweenBorders();
}

Result<CUevent> BareGpu::event(size_t number) {
  while (events.size() <= number) {
    CUevent made = nullptr;
    MGPU_TRY(check(api->cuEventCreate(&made, CU_EVENT_DISABLE_TIMING),
                   "cuEventCreate"));
    events.push_back(made);
  }
  return events[number];
}

Result<double>
BareGpu::spanInStreams(CUkernel kernel, std::span<const BareLaunch> launches,
                       std::span<const std::pair<uint32_t, uint32_t>> edges,
                       uint32_t numStreams) {
  CUfunction function = nullptr;
  MGPU_TRY(check(api->cuKernelGetFunction(&function, kernel),
                 "cuKernelGetFunction"));
  while (streams.size() < numStreams) {
    CUstream made = nullptr;
    MGPU_TRY(
        check(api->cuStreamCreateWithPriority(&made, CU_STREAM_NON_BLOCKING, 0),
              "cuStreamCreateWithPriority"));
    streams.push_back(made);
  }
  std::vector<std::vector<uint32_t>> before(launches.size());
  for (auto [from, to] : edges)
    before[to].push_back(from);
  // All begin behind the first event, and the second is behind all.
  MGPU_TRY(check(api->cuEventRecord(borders[0], stream), "cuEventRecord"));
  for (CUstream each : streams)
    MGPU_TRY(check(waitEvent(each, borders[0], 0), "cuStreamWaitEvent"));
  for (uint32_t k = 0; k < launches.size(); ++k) {
    CUstream on = streams[k % numStreams];
    for (uint32_t from : before[k])
      if (from % numStreams != k % numStreams) {
        MGPU_TRY_ASSIGN(CUevent behind, event(from));
        MGPU_TRY(check(waitEvent(on, behind, 0), "cuStreamWaitEvent"));
      }
    std::vector<void *> values = pointersTo(launches[k]);
    MGPU_TRY(check(
        launchKernel(function, 1, 1, 1, 1, 1, 1, 0, on, values.data(), nullptr),
        "cuLaunchKernel"));
    MGPU_TRY_ASSIGN(CUevent behind, event(k));
    MGPU_TRY(check(api->cuEventRecord(behind, on), "cuEventRecord"));
  }
  const uint32_t last = uint32_t(launches.size());
  for (uint32_t k = last - std::min(last, numStreams); k < last; ++k) {
    MGPU_TRY_ASSIGN(CUevent behind, event(k));
    MGPU_TRY(check(waitEvent(stream, behind, 0), "cuStreamWaitEvent"));
  }
  MGPU_TRY(check(api->cuEventRecord(borders[1], stream), "cuEventRecord"));
  return betweenBorders();
}

Result<double> BareGpu::copyUs(CUdeviceptr to, CUdeviceptr from, uint64_t bytes,
                               uint32_t count) {
  MGPU_TRY(check(api->cuEventRecord(borders[0], stream), "cuEventRecord"));
  for (uint32_t k = 0; k < count; ++k)
    MGPU_TRY(check(copyAsync(to, from, bytes, stream), "cuMemcpyDtoDAsync"));
  MGPU_TRY(check(api->cuEventRecord(borders[1], stream), "cuEventRecord"));
  MGPU_TRY_ASSIGN(double us, betweenBorders());
  return us / count;
}

Result<double>
BareGpu::spanOf(const std::function<Result<void>(CUstream)> &issue) {
  MGPU_TRY(check(api->cuEventRecord(borders[0], stream), "cuEventRecord"));
  MGPU_TRY(issue(stream));
  MGPU_TRY(check(api->cuEventRecord(borders[1], stream), "cuEventRecord"));
  return betweenBorders();
}

Result<uint64_t> BareGpu::freeBytes() {
  size_t free = 0, total = 0;
  MGPU_TRY(check(api->cuMemGetInfo(&free, &total), "cuMemGetInfo"));
  return uint64_t(free);
}

} // namespace mgpu::bench
