// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph as a part of one that the caller captures.
#include "device/cuda/graph/GraphInstance.h"

#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

Result<void> captureAsChild(std::shared_ptr<CudaState> state, CUstream on,
                            const GraphSpec &spec) {
  const auto &api = state->api;
  const std::string place = "in the caller's stream " + state->where();
  const CudaState::Current current(*state);
  MGPU_TRY(current.entered);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  MGPU_TRY(
      state->check(api->cuStreamGetCaptureInfo(on, &status, nullptr, nullptr,
                                               nullptr, nullptr, nullptr),
                   "cuStreamGetCaptureInfo", place));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return fail(ErrorKind::Usage,
                fmt::format("{}: {}", place,
                            status == CU_STREAM_CAPTURE_STATUS_NONE
                                ? "it is not being captured: begin a capture, "
                                  "or use mgt_replay_on"
                                : "its capture is invalid since an earlier "
                                  "call: end it, and begin another"));
  const BesideCaptures beside(*api);
  MGPU_TRY(
      state->check(beside.code, "cuThreadExchangeStreamCaptureMode", place));
  GraphInstance made(state);
  MGPU_TRY(made.buildChild(spec));
  CUgraph graph = nullptr;
  const CUgraphNode *before = nullptr;
  const CUgraphEdgeData *edges = nullptr;
  size_t count = 0;
  MGPU_TRY(
      state->check(api->cuStreamGetCaptureInfo(on, &status, nullptr, &graph,
                                               &before, &edges, &count),
                   "cuStreamGetCaptureInfo", place));
  CUgraphNodeParams params;
  std::memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = made.child();
  CUgraphNode node = nullptr;
  MGPU_TRY(state->check(
      api->cuGraphAddNode(&node, graph, before, edges, count, &params),
      "cuGraphAddNode", place));
  return state->check(
      api->cuStreamUpdateCaptureDependencies(
          on, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
      "cuStreamUpdateCaptureDependencies", place);
}

} // namespace mgpu::device
