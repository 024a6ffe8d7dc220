// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Launches of matrix products that cuBLASLt or cuSPARSE computes in a kernel's
// place.
#include "device/cuda/graph/CudaGraph.h"
#include "device/cuda/graph/GraphInstance.h"

#include <fmt/format.h>

#include <algorithm>

namespace mgpu::device {

// Calls of NCCL, cuBLASLt and cuSPARSE as nodes of a graph that is otherwise
// made node by node: a capture begins behind the nodes they wait for, and its
// frontier is read back.

Result<void> GraphInstance::collectCaptured(
    const char *library, const std::vector<CUgraphNode> &frontier,
    const std::vector<CUgraphNode> &dependencies, const std::string &name) {
  auto isOurs = [&](CUgraphNode node) {
    return std::find(dependencies.begin(), dependencies.end(), node) !=
           dependencies.end();
  };
  const std::string what = fmt::format("for '{}' {}", name, state->where());
  const size_t call = nodes.size(); // no other call's
  std::vector<CUgraphNode> left = frontier;
  while (!left.empty()) {
    CUgraphNode node = left.back();
    left.pop_back();
    if (isOurs(node) || !captured.insert({node, call}).second)
      continue;
    size_t count = 0;
    MGPU_TRY(state->check(
        state->api->cuGraphNodeGetDependencies(node, nullptr, nullptr, &count),
        "cuGraphNodeGetDependencies", what));
    std::vector<CUgraphNode> before(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count > 0)
      MGPU_TRY(state->check(state->api->cuGraphNodeGetDependencies(
                                node, before.data(), data.data(), &count),
                            "cuGraphNodeGetDependencies", what));
    nodes.push_back(node);
    names.push_back(name);
    rangeOf.push_back(currentRange);
    for (size_t k = 0; k < count; ++k) {
      // A kernel that the library launches with
      // PROGRAMMATIC_STREAM_SERIALIZATION may begin before a kernel in front of
      // it has ended, for which it waits itself, as it must in any stream
      // (proveGraph).
      std::optional<int> kind = kindOf(data[k]);
      if (isOurs(before[k]) && !kind)
        return fail(ErrorKind::Internal,
                    fmt::format("{}'s first node of '{}' {} does not wait for "
                                "the end of what the plan has before it",
                                library, name, state->where()));
      edges.push_back(
          {before[k], node,
           isOurs(before[k]) ? *kind : CU_GRAPH_DEPENDENCY_TYPE_DEFAULT});
    }
    // One that waits for nothing would run before what it is to follow; one
    // that waits for a node of another capture ties it to that.
    bool strays = before.empty() && !dependencies.empty();
    for (CUgraphNode each : before)
      strays |= !isOurs(each) && !captured.count(each) &&
                std::find(nodes.begin(), nodes.end(), each) != nodes.end();
    if (strays)
      return fail(ErrorKind::Internal,
                  fmt::format("{} captured a node for '{}' {} that does not "
                              "follow what the plan has before it",
                              library, name, state->where()));
    left.insert(left.end(), before.begin(), before.end());
  }
  return {};
}

/// A kernel node gets its priority from the stream it is captured on.
Result<CUstream> GraphInstance::captureStreamOf(const Capture &call,
                                                const std::string &what) {
  CUstream &own = captureStreams[call.isUrgent];
  if (!own)
    MGPU_TRY(state->check(
        state->api->cuStreamCreateWithPriority(
            &own, CU_STREAM_NON_BLOCKING,
            call.isUrgent ? state->highestPriority : state->lowestPriority),
        "cuStreamCreateWithPriority", what));
  return own;
}

Result<CUgraphNode>
GraphInstance::addCapture(const Capture &call,
                          const std::vector<CUgraphNode> &dependencies,
                          const std::string &name) {
  const CudaApi &api = *state->api;
  const std::string what = fmt::format("for '{}' {}", name, state->where());
  MGPU_TRY_ASSIGN(CUstream captureStream, captureStreamOf(call, what));
  MGPU_TRY(
      state->check(api.cuStreamBeginCaptureToGraph(
                       captureStream, graph,
                       dependencies.empty() ? nullptr : dependencies.data(),
                       nullptr, dependencies.size(), call.mode),
                   "cuStreamBeginCaptureToGraph", what));
  std::vector<CUgraphNode> frontier;
  auto capture = [&]() -> Result<void> {
    MGPU_TRY(call.issue(captureStream));
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph into = nullptr;
    const CUgraphNode *ends = nullptr;
    const CUgraphEdgeData *data = nullptr;
    size_t count = 0;
    MGPU_TRY(
        state->check(api.cuStreamGetCaptureInfo(captureStream, &status, nullptr,
                                                &into, &ends, &data, &count),
                     "cuStreamGetCaptureInfo", what));
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || into != graph)
      return fail(ErrorKind::Internal,
                  fmt::format("{} ended the capture of '{}' {}", call.library,
                              name, state->where()));
    // The arrays are the driver's, and end with the capture.
    frontier.assign(ends, ends + count);
    for (size_t k = 0; data && k < count; ++k)
      if (data[k].from_port || data[k].to_port || data[k].type)
        return fail(ErrorKind::Internal,
                    fmt::format("{}'s last node of '{}' {} is not waited for "
                                "as a whole",
                                call.library, name, state->where()));
    return {};
  };
  Result<void> done = capture();
  // Ended also after a failure, or the stream could not be destroyed.
  CUgraph ended = nullptr;
  CUresult code = api.cuStreamEndCapture(captureStream, &ended);
  MGPU_TRY(done);
  MGPU_TRY(state->check(code, "cuStreamEndCapture", what));
  if (ended != graph)
    return fail(ErrorKind::Internal,
                fmt::format("the capture of '{}' {} went into another graph",
                            name, state->where()));
  MGPU_TRY(collectCaptured(call.library, frontier, dependencies, name));
  if (frontier.size() == 1)
    return frontier.front();
  // None, or several: an empty node that follows them all.
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return addNode(params, frontier, name);
}

/// The part of a product that blocks `part` of `block` threads compute, each
/// thread an element of C.
static kernels::MatrixProduct partOf(kernels::MatrixProduct product, Dim3 block,
                                     const GridPart &part) {
  auto cut = [](uint64_t first, uint64_t count, uint64_t threads,
                uint64_t extent) {
    uint64_t begin = std::min(first * threads, extent),
             end = std::min((first + count) * threads, extent);
    return std::pair(begin, end - begin);
  };
  auto [column, columns] = cut(part.first.x, part.count.x, block.x, product.n);
  auto [row, rows] = cut(part.first.y, part.count.y, block.y, product.m);
  auto [first, batch] = cut(part.first.z, part.count.z, block.z, product.batch);
  auto &[a, b, c] = product.matrices;
  a.offset += row * a.rowStride + first * a.batchStride;
  b.offset +=
      column * (product.isTurned ? b.rowStride : 1) + first * b.batchStride;
  c.offset += row * c.rowStride + column + first * c.batchStride;
  product.n = columns;
  product.m = rows;
  product.batch = batch;
  return product;
}

Result<std::optional<GraphNodeId>>
CudaGraph::addProduct(const KernelNodeParams &params,
                      const LoadedKernel &kernel, std::byte *workspace,
                      const GridPart &part,
                      std::span<const GraphNodeId> dependencies) {
  using None = std::optional<GraphNodeId>;
  MGPU_TRY_ASSIGN(Products * products, state->products());
  if (!products)
    return None();
  ProductCall call;
  call.product =
      partOf(*kernel.launch.product, kernel.launch.sourceBlock, part);
  const kernels::MatrixProduct &product = call.product;
  auto address = [&](size_t k, ElementType type) {
    const kernels::MatrixProduct::Matrix &matrix = product.matrices[k];
    return reinterpret_cast<std::byte *>(uintptr_t(
        params.arguments[matrix.argument] + matrix.offset * sizeBytes(type)));
  };
  call.a = address(0, product.factors);
  call.b = address(1, product.factors);
  call.c = address(2, product.sums);
  call.workspace = workspace;
  call.workspaceBytes = kernel.launch.workspaceBytes;
  Specs after = endsOf(dependencies);
  uint32_t first = uint32_t(spec->nodes.size());
  if (product.m == 0 || product.n == 0 || product.batch == 0) {
    join({}, after);
    return None(finish(params.name, params.device, first));
  }
  MGPU_TRY_ASSIGN(bool isThere, state->prepareProduct(call, params.name));
  if (!isThere) {
    state->warnOnce(fmt::format(
        "cuBLASLt has no algorithm for kernel {} ({} x {} x {}, {}): it runs "
        "in mgpu's own text",
        kernel.launch.entry, product.m, product.n, product.k,
        toString(product.factors)));
    return None();
  }
  append(call, std::move(after));
  return None(finish(params.name, params.device, first));
}

// Launches of products with sparse matrices that cuSPARSE computes in a
// kernel's place.

Result<std::optional<GraphNodeId>>
CudaGraph::addSparse(const KernelNodeParams &params, const LoadedKernel &kernel,
                     std::span<const GraphNodeId> dependencies) {
  using None = std::optional<GraphNodeId>;
  MGPU_TRY_ASSIGN(SparseProducts * products, state->sparseProducts());
  if (!products)
    return None();
  SparseCall call;
  call.product = *kernel.launch.sparse;
  const kernels::SparseProduct &product = call.product;
  auto address = [&](const kernels::SparseProduct::Operand &operand,
                     ElementType type) {
    return reinterpret_cast<std::byte *>(uintptr_t(
        params.arguments[operand.argument] + operand.offset * sizeBytes(type)));
  };
  call.positions = address(product.positions, product.indices);
  call.index = address(product.index, product.indices);
  call.values = address(product.values, product.factors);
  call.first = address(product.first, product.factors);
  call.second = address(product.second, product.sums);
  MGPU_TRY_ASSIGN(std::optional<uint64_t> bytes,
                  state->sparseBytes(call, params.name));
  if (!bytes) {
    state->warnOnce(fmt::format("cuSPARSE has no way to compute kernel {}: it "
                                "runs in mgpu's own text",
                                kernel.launch.entry));
    return None();
  }
  if (*bytes > 0) {
    MGPU_TRY_ASSIGN(call.buffer, stage(*bytes, "cuSPARSE"));
  }
  Specs after = endsOf(dependencies);
  auto first = uint32_t(spec->nodes.size());
  append(call, std::move(after));
  return None(finish(params.name, params.device, first));
}

} // namespace mgpu::device
