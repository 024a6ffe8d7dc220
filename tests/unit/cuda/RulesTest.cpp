// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// CUDA's rules, one broken at a time. Here they are asked of the driver that is
// not there; tests/gpu asks a real one. Where the two disagree, the one that is
// not there is wrong: a rule that a real driver does not keep is written down
// (`disagrees`) and fails nothing. What the target needs of it does.

#include "RawDriver.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

namespace {

using namespace mgpu;
using namespace mgpu::device;
using namespace mgpu::fake;

/// A context that is current, with one of everything, all of it valid.
class Rules : public testing::Test {
protected:
  void SetUp() override {
    driver = rawDriver();
    ASSERT_NE(driver, nullptr);
    api = driver.get();
    ASSERT_EQ(api->cuDeviceGet(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(api->cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(api->cuCtxPushCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(api->cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
    ASSERT_EQ(api->cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE),
              CUDA_SUCCESS);
    ASSERT_EQ(
        api->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
        CUDA_SUCCESS);
    ASSERT_EQ(api->cuEventCreate(&event, CU_EVENT_DEFAULT), CUDA_SUCCESS);
    std::vector<std::byte> cubin = rawCubin();
    ASSERT_EQ(api->cuLibraryLoadData(&library, cubin.data(), nullptr, nullptr,
                                     0, nullptr, nullptr, 0),
              CUDA_SUCCESS);
    ASSERT_EQ(api->cuLibraryGetKernel(&kernel, library, "nothing"),
              CUDA_SUCCESS);
    ASSERT_EQ(api->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  }
  void TearDown() override {
    api->cuGraphDestroy(graph);
    api->cuLibraryUnload(library);
    api->cuEventDestroy(event);
    api->cuStreamDestroy(stream);
    api->cuMemFreeHost(host);
    api->cuMemFree(memory);
    CUcontext popped = nullptr;
    EXPECT_EQ(api->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
    EXPECT_EQ(popped, context);
    EXPECT_EQ(api->cuDevicePrimaryCtxRelease(device), CUDA_SUCCESS);
  }

  CUgraphNodeParams zeroed(CUgraphNodeType type) const {
    CUgraphNodeParams params;
    std::memset(&params, 0, sizeof params);
    params.type = type;
    return params;
  }
  CUgraphNodeParams kernelParams() {
    CUgraphNodeParams params = zeroed(CU_GRAPH_NODE_TYPE_KERNEL);
    params.kernel.kern = kernel;
    params.kernel.ctx = context;
    params.kernel.gridDimX = params.kernel.gridDimY = params.kernel.gridDimZ =
        1;
    params.kernel.blockDimX = params.kernel.blockDimY =
        params.kernel.blockDimZ = 1;
    params.kernel.kernelParams = values;
    return params;
  }
  CUgraphNodeParams copyParams() const {
    CUgraphNodeParams params = zeroed(CU_GRAPH_NODE_TYPE_MEMCPY);
    params.memcpy.copyCtx = context;
    CUDA_MEMCPY3D &copy = params.memcpy.copyParams;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.WidthInBytes = 16;
    copy.srcPitch = copy.dstPitch = 32;
    copy.Height = copy.srcHeight = copy.dstHeight = 4;
    copy.Depth = 2;
    return params;
  }
  CUresult add(CUgraphNodeParams params,
               const std::vector<CUgraphNode> &dependencies = {},
               const CUgraphEdgeData *edges = nullptr) {
    return api->cuGraphAddNode(
        &node, graph, dependencies.empty() ? nullptr : dependencies.data(),
        edges, dependencies.size(), &params);
  }
  CUresult instantiate(CUgraphExec &exec, CUstream upload) {
    CUDA_GRAPH_INSTANTIATE_PARAMS params;
    std::memset(&params, 0, sizeof params);
    params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    params.hUploadStream = upload;
    return api->cuGraphInstantiateWithParams(&exec, graph, &params);
  }
  /// A rule that the double keeps.
  void keeps(bool isKept, const std::string &rule) {
    if (isKept)
      return;
    if (!mayDisagree()) {
      ADD_FAILURE() << rule;
      return;
    }
    std::printf("the driver disagrees: %s\n", rule.c_str());
    disagreements += (disagreements.empty() ? "" : "; ") + rule;
    RecordProperty("disagrees", disagreements);
  }
  /// `add` gives what the driver says to the last of the nodes it adds. They
  /// are of a graph of their own: what is taken after all is in nobody's way.
  template <typename Add>
  void refuses(const std::string &rule, Add add) {
    const CUgraph kept = graph;
    ASSERT_EQ(api->cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    keeps(add() != CUDA_SUCCESS, rule);
    EXPECT_EQ(api->cuGraphDestroy(graph), CUDA_SUCCESS);
    graph = kept;
  }
  CUgraphNode added(CUgraphNodeParams params) {
    EXPECT_EQ(add(params), CUDA_SUCCESS);
    return node;
  }
  void drain() {
    while (api->cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
  }

  std::shared_ptr<const CudaApi> driver;
  const CudaApi *api = nullptr;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  void *host = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  uint64_t argument = 7;
  void *values[1] = {&argument};
  std::string disagreements;
};

TEST_F(Rules, ValidNodesAreTaken) {
  EXPECT_EQ(add(kernelParams()), CUDA_SUCCESS);
  CUgraphNode first = node;
  EXPECT_EQ(add(copyParams(), {first}), CUDA_SUCCESS);
  EXPECT_EQ(add(zeroed(CU_GRAPH_NODE_TYPE_EMPTY), {first, node}), CUDA_SUCCESS);
  CUgraphNodeParams record = zeroed(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  record.eventRecord.event = event;
  EXPECT_EQ(add(record, {node}), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(instantiate(exec, stream), CUDA_SUCCESS);
  drain();
  EXPECT_EQ(api->cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  drain();
  EXPECT_EQ(api->cuGraphExecDestroy(exec), CUDA_SUCCESS);
  size_t count = 0;
  EXPECT_EQ(api->cuGraphGetNodes(graph, nullptr, &count), CUDA_SUCCESS);
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(api->cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count),
            CUDA_SUCCESS);
  EXPECT_EQ(count, 4u);
}

TEST_F(Rules, UnusedBytesOfANodeAreZero) {
  CUgraphNodeParams params = kernelParams();
  params.reserved2 = 1;
  refuses("reserved2 of a node is 0", [&] { return add(params); });
  params = kernelParams();
  params.reserved0[1] = 1;
  refuses("reserved0 of a node is 0", [&] { return add(params); });
  params = copyParams();
  params.memcpy.flags = 1;
  refuses("a copy's flags are 0", [&] { return add(params); });
}

TEST_F(Rules, ADependencyIsNamedOnce) {
  refuses("a dependency is named once", [&] {
    const CUgraphNode first = added(zeroed(CU_GRAPH_NODE_TYPE_EMPTY));
    return add(zeroed(CU_GRAPH_NODE_TYPE_EMPTY), {first, first});
  });
}

TEST_F(Rules, ADependencyIsOfTheSameGraph) {
  const CUgraphNode foreign = added(zeroed(CU_GRAPH_NODE_TYPE_EMPTY));
  refuses("a dependency is of the same graph",
          [&] { return add(zeroed(CU_GRAPH_NODE_TYPE_EMPTY), {foreign}); });
}

TEST_F(Rules, GridsAndBlocksHaveLimits) {
  using Change = void (*)(CUDA_KERNEL_NODE_PARAMS_v3 &);
  for (const auto &[rule, change] :
       std::vector<std::pair<const char *, Change>>{
           {"a grid has blocks", [](auto &k) { k.gridDimX = 0; }},
           {"a block has threads", [](auto &k) { k.blockDimY = 0; }},
           {"65535 blocks along y", [](auto &k) { k.gridDimY = 65536; }},
           {"65535 blocks along z", [](auto &k) { k.gridDimZ = 65536; }},
           {"1024 threads along x", [](auto &k) { k.blockDimX = 2048; }},
           {"64 threads along z",
            [](auto &k) { k.blockDimX = 1, k.blockDimZ = 65; }},
           {"a node has a kernel", [](auto &k) { k.kern = nullptr; }},
           {"48 KiB of shared memory that was not asked for",
            [](auto &k) { k.sharedMemBytes = 64 * 1024; }}}) {
    CUgraphNodeParams params = kernelParams();
    change(params.kernel);
    refuses(rule, [&] {
      // Some of it may be said only when the graph is made executable.
      CUresult code = add(params);
      CUgraphExec exec = nullptr;
      if (code == CUDA_SUCCESS)
        code = instantiate(exec, stream);
      if (code == CUDA_SUCCESS) {
        drain();
        EXPECT_EQ(api->cuGraphExecDestroy(exec), CUDA_SUCCESS);
      }
      return code;
    });
  }
}

TEST_F(Rules, SharedMemoryIsAskedForFirst) {
  CUgraphNodeParams params = kernelParams();
  params.kernel.sharedMemBytes = 64 * 1024;
  ASSERT_EQ(
      api->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                64 * 1024, kernel, device),
      CUDA_SUCCESS);
  EXPECT_EQ(add(params), CUDA_SUCCESS);
}

TEST_F(Rules, APitchIsNoLessThanTheWidth) {
  CUgraphNodeParams params = copyParams();
  params.memcpy.copyParams.srcPitch = 8;
  refuses("a source's pitch is not less than the width",
          [&] { return add(params); });
  params = copyParams();
  params.memcpy.copyParams.dstPitch = 8;
  refuses("a destination's pitch is not less than the width",
          [&] { return add(params); });
}

TEST_F(Rules, PrioritiesAreOfKernelNodes) {
  CUlaunchAttributeValue value;
  std::memset(&value, 0, sizeof value);
  int least = 0, greatest = 0;
  ASSERT_EQ(api->cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
  value.priority = greatest;
  ASSERT_EQ(add(kernelParams()), CUDA_SUCCESS);
  EXPECT_EQ(api->cuGraphKernelNodeSetAttribute(
                node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
            CUDA_SUCCESS);
  ASSERT_EQ(add(copyParams()), CUDA_SUCCESS);
  keeps(api->cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                           &value) != CUDA_SUCCESS,
        "a copy has no priority");
}

TEST_F(Rules, TheParametersEndSomewhere) {
  size_t offset = 0, size = 0;
  EXPECT_EQ(api->cuKernelGetParamInfo(kernel, 0, &offset, &size), CUDA_SUCCESS);
  EXPECT_EQ(size, 8u);
  keeps(api->cuKernelGetParamInfo(kernel, 1, &offset, &size) ==
            CUDA_ERROR_INVALID_VALUE,
        "beyond the last parameter there is an invalid value");
}

TEST_F(Rules, AnEntryIsThereOrNotFound) {
  CUkernel missing = nullptr;
  keeps(api->cuLibraryGetKernel(&missing, library, "something") ==
            CUDA_ERROR_NOT_FOUND,
        "a kernel that is not there is not found");
}

TEST_F(Rules, EventsAreRecordedBeforeTheyAreRead) {
  CUevent other = nullptr, untimed = nullptr;
  ASSERT_EQ(api->cuEventCreate(&other, CU_EVENT_DEFAULT), CUDA_SUCCESS);
  ASSERT_EQ(api->cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING),
            CUDA_SUCCESS);
  ASSERT_EQ(api->cuEventRecord(event, stream), CUDA_SUCCESS);
  ASSERT_EQ(api->cuEventRecord(untimed, stream), CUDA_SUCCESS);
  drain();
  float ms = 0;
  keeps(api->cuEventElapsedTime(&ms, event, other) == CUDA_ERROR_INVALID_HANDLE,
        "an event that was not recorded is an invalid handle");
  keeps(api->cuEventElapsedTime(&ms, event, untimed) ==
            CUDA_ERROR_INVALID_HANDLE,
        "an event without times is an invalid handle");
  EXPECT_EQ(api->cuEventElapsedTime(&ms, event, event), CUDA_SUCCESS);
  api->cuEventDestroy(other);
  api->cuEventDestroy(untimed);
}

/// A capture of `stream` into `graph`, and another stream beside it.
class CaptureRules : public Rules {
protected:
  void SetUp() override {
    Rules::SetUp();
    ASSERT_EQ(
        api->cuStreamCreateWithPriority(&other, CU_STREAM_NON_BLOCKING, 0),
        CUDA_SUCCESS);
  }
  void TearDown() override {
    api->cuStreamDestroy(other);
    Rules::TearDown();
  }
  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    ASSERT_EQ(api->cuStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr,
                                               0, mode),
              CUDA_SUCCESS);
  }
  CUresult end() {
    CUgraph ended = nullptr;
    const CUresult code = api->cuStreamEndCapture(stream, &ended);
    EXPECT_EQ(ended, code == CUDA_SUCCESS ? graph : nullptr);
    return code;
  }
  CUresult zero(CUstream on) { return api->cuMemsetD8Async(memory, 0, 16, on); }
  /// `call` is refused within a capture, which has then to be made again.
  template <typename Call>
  void spoils(const std::string &rule, CUresult wanted, Call call) {
    keeps(call() == wanted, rule);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    ASSERT_EQ(api->cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr,
                                          nullptr, nullptr, nullptr),
              CUDA_SUCCESS);
    keeps(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED &&
              zero(stream) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          rule + ": the capture is invalid then");
    keeps(end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
          rule + ": so it ends");
    EXPECT_EQ(zero(stream), CUDA_SUCCESS);
    drain();
  }

  CUstream other = nullptr;
};

TEST_F(CaptureRules, MemoryAndCodeComeBeforeOrInRelaxedMode) {
  CUdeviceptr more = 0;
  auto allocate = [&] { return api->cuMemAlloc(&more, 16); };
  begin();
  spoils("no memory within a capture", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         allocate);
  begin();
  spoils("no code within a capture", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         [&] {
           std::vector<std::byte> cubin = rawCubin();
           CUlibrary more = nullptr;
           return api->cuLibraryLoadData(&more, cubin.data(), nullptr, nullptr,
                                         0, nullptr, nullptr, 0);
         });
  begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  spoils("no memory of other threads' within a global capture",
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] {
           CUresult code = CUDA_SUCCESS;
           std::thread([&] {
             CUcontext popped = nullptr;
             api->cuCtxPushCurrent(context);
             code = allocate();
             api->cuCtxPopCurrent(&popped);
           }).join();
           return code;
         });
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  EXPECT_EQ(end(), CUDA_SUCCESS);
  EXPECT_EQ(api->cuMemFree(more), CUDA_SUCCESS);
}

TEST_F(CaptureRules, NothingIsWaitedFor) {
  begin();
  spoils("a captured stream is not asked",
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         [&] { return api->cuStreamQuery(stream); });
  begin();
  spoils("a captured stream is not waited for",
         CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         [&] { return api->cuStreamSynchronize(stream); });
  begin();
  ASSERT_EQ(api->cuEventRecord(event, stream), CUDA_SUCCESS);
  float ms = 0;
  keeps(api->cuEventElapsedTime(&ms, event, event) == CUDA_ERROR_CAPTURED_EVENT,
        "an event of a capture has no time");
  end();
}

TEST_F(CaptureRules, WorkOutsideIsNotWaitedFor) {
  ASSERT_EQ(api->cuEventRecord(event, other), CUDA_SUCCESS);
  begin();
  spoils("a capture depends on nothing outside",
         CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
         [&] { return api->cuStreamWaitEvent(stream, event, 0); });
}

TEST_F(CaptureRules, StreamsThatJoinAreJoined) {
  auto fork = [&] {
    begin();
    EXPECT_EQ(zero(stream), CUDA_SUCCESS);
    EXPECT_EQ(api->cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(api->cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(zero(other), CUDA_SUCCESS);
  };
  fork();
  CUgraph ended = nullptr;
  keeps(api->cuStreamEndCapture(other, &ended) ==
            CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
        "a capture ends in the stream it began in");
  EXPECT_EQ(api->cuEventRecord(event, other), CUDA_SUCCESS);
  EXPECT_EQ(api->cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(end(), CUDA_SUCCESS);
  size_t nodes = 0, edges = 0;
  EXPECT_EQ(api->cuGraphGetNodes(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(api->cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges),
            CUDA_SUCCESS);
  EXPECT_EQ(nodes, 2u);
  EXPECT_EQ(edges, 1u);
  fork();
  keeps(end() == CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
        "work of a stream that joined is followed");
  EXPECT_EQ(zero(other), CUDA_SUCCESS) << "no longer captured";
  drain();
}

TEST_F(CaptureRules, TwoCapturesStayApart) {
  CUgraph second = nullptr, ended = nullptr;
  ASSERT_EQ(api->cuGraphCreate(&second, 0), CUDA_SUCCESS);
  ASSERT_EQ(
      api->cuStreamBeginCaptureToGraph(other, second, nullptr, nullptr, 0,
                                       CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
      CUDA_SUCCESS);
  ASSERT_EQ(api->cuEventRecord(event, other), CUDA_SUCCESS);
  begin();
  spoils("captures do not merge", CUDA_ERROR_STREAM_CAPTURE_MERGE,
         [&] { return api->cuStreamWaitEvent(stream, event, 0); });
  api->cuStreamEndCapture(other, &ended);
  EXPECT_EQ(api->cuGraphDestroy(second), CUDA_SUCCESS);
}

TEST_F(CaptureRules, TheLegacyStreamWaitsForBlockingOnes) {
  CUstream kept = stream;
  ASSERT_EQ(api->cuStreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, 0),
            CUDA_SUCCESS);
  begin();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  keeps(api->cuStreamGetCaptureInfo(nullptr, &status, nullptr, nullptr, nullptr,
                                    nullptr, nullptr) ==
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        "the legacy stream has no state while a blocking one is captured");
  spoils("no legacy stream while a blocking one is captured",
         CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
         [&] { return api->cuEventRecord(event, nullptr); });
  EXPECT_EQ(api->cuStreamDestroy(stream), CUDA_SUCCESS);
  stream = kept;
  begin();
  EXPECT_EQ(api->cuEventRecord(event, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(end(), CUDA_SUCCESS);
}

TEST_F(Rules, EdgeDataComesWithBothEnds) {
  ASSERT_EQ(add(zeroed(CU_GRAPH_NODE_TYPE_EMPTY)), CUDA_SUCCESS);
  ASSERT_EQ(add(zeroed(CU_GRAPH_NODE_TYPE_EMPTY), {node}), CUDA_SUCCESS);
  CUgraphEdgeData data;
  size_t count = 1;
  keeps(api->cuGraphGetEdges(graph, nullptr, nullptr, &data, &count) !=
            CUDA_SUCCESS,
        "edges' data comes with their ends");
}

/// Its kernel does not wait: it does nothing.
TEST_F(Rules, ProgrammaticEdgesAreBetweenKernels) {
  int major = 0;
  ASSERT_EQ(api->cuDeviceGetAttribute(
                &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
            CUDA_SUCCESS);
  if (major < 9)
    GTEST_SKIP() << "sm_90 and later";
  CUgraphEdgeData edge;
  std::memset(&edge, 0, sizeof edge);
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  ASSERT_EQ(add(kernelParams()), CUDA_SUCCESS);
  const CUgraphNode first = node;
  ASSERT_EQ(add(kernelParams(), {first}, &edge), CUDA_SUCCESS);
  const CUgraphNode second = node;
  refuses("no programmatic edge to a copy", [&] {
    const CUgraphNode before = added(kernelParams());
    return add(copyParams(), {before}, &edge);
  });
  refuses("no programmatic edge to an empty node", [&] {
    const CUgraphNode before = added(kernelParams());
    return add(zeroed(CU_GRAPH_NODE_TYPE_EMPTY), {before}, &edge);
  });
  refuses("no programmatic edge from a copy", [&] {
    const CUgraphNode before = added(copyParams());
    return add(kernelParams(), {before}, &edge);
  });
  using Change = void (*)(CUgraphEdgeData &);
  for (const auto &[rule, change] :
       std::vector<std::pair<const char *, Change>>{
           {"no whole edge from the programmatic port",
            [](auto &e) { e.type = CU_GRAPH_DEPENDENCY_TYPE_DEFAULT; }},
           {"no programmatic edge from the default port",
            [](auto &e) { e.from_port = CU_GRAPH_KERNEL_NODE_PORT_DEFAULT; }},
           {"an edge's to_port is 0", [](auto &e) { e.to_port = 1; }},
           {"an edge's reserved bytes are 0",
            [](auto &e) { e.reserved[0] = 1; }},
           {"an edge's type is known", [](auto &e) { e.type = 7; }}}) {
    CUgraphEdgeData other = edge;
    change(other);
    refuses(rule, [&] {
      const CUgraphNode before = added(kernelParams());
      return add(kernelParams(), {before}, &other);
    });
  }
  ASSERT_EQ(add(copyParams(), {second}), CUDA_SUCCESS);
  // Read back with what they wait for, and not without.
  CUgraphNode from[2], to[2];
  CUgraphEdgeData data[2];
  size_t count = 2;
  keeps(api->cuGraphGetEdges(graph, from, to, nullptr, &count) ==
            CUDA_ERROR_LOSSY_QUERY,
        "a programmatic edge read without its data is a lossy query");
  count = 2;
  ASSERT_EQ(api->cuGraphGetEdges(graph, from, to, data, &count), CUDA_SUCCESS);
  ASSERT_EQ(count, 2u);
  for (size_t k = 0; k < count; ++k)
    EXPECT_EQ(data[k].type != 0, from[k] == first);
  count = 1;
  keeps(api->cuGraphNodeGetDependencies(second, from, nullptr, &count) ==
            CUDA_ERROR_LOSSY_QUERY,
        "a node's programmatic edge read without its data is a lossy query");
  CUgraphExec exec = nullptr;
  ASSERT_EQ(instantiate(exec, stream), CUDA_SUCCESS);
  drain();
  EXPECT_EQ(api->cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  drain();
  EXPECT_EQ(api->cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_F(Rules, NoMemoryOfNoBytes) {
  CUdeviceptr none = 0;
  keeps(api->cuMemAlloc(&none, 0) == CUDA_ERROR_INVALID_VALUE,
        "no memory of no bytes");
  if (none)
    api->cuMemFree(none);
}

TEST_F(Rules, MemoryIsOfTheCurrentContext) {
  CUcontext popped = nullptr;
  ASSERT_EQ(api->cuCtxPopCurrent(&popped), CUDA_SUCCESS);
  CUdeviceptr none = 0;
  keeps(api->cuMemAlloc(&none, 16) == CUDA_ERROR_INVALID_CONTEXT,
        "no memory without a context");
  CUstream noStream = nullptr;
  keeps(api->cuStreamCreateWithPriority(&noStream, CU_STREAM_NON_BLOCKING, 0) ==
            CUDA_ERROR_INVALID_CONTEXT,
        "no stream without a context");
  ASSERT_EQ(api->cuCtxPushCurrent(popped), CUDA_SUCCESS);
  if (none)
    api->cuMemFree(none);
  if (noStream)
    api->cuStreamDestroy(noStream);
}

TEST_F(Rules, ThereAreNoMoreDevicesThanCounted) {
  int count = 0;
  ASSERT_EQ(api->cuDeviceGetCount(&count), CUDA_SUCCESS);
  CUdevice beyond = 0;
  keeps(api->cuDeviceGet(&beyond, count) == CUDA_ERROR_INVALID_DEVICE,
        "a device beyond the last is an invalid one");
}

} // namespace
