// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::planner {

using Json = nlohmann::json;

static Json nodeJson(const Dag &dag, uint32_t id, const OpaqueCall &call,
                     std::span<const DepEdge> edges) {
  const DagNode &node = dag.nodes[id];
  Json out{{"id", id}, {"name", node.name}, {"out_bytes", node.outBytes}};
  if (call.isCollective) {
    out["kind"] = call.kind == CollectiveKind::SendRecv
                      ? "send"
                      : std::string(toString(call.kind));
    out["bytes"] = call.bytes;
    out["group"] = call.group;
  } else {
    out["kind"] = "kernel";
    out["flops"] = node.flops;
    out["bytes_read"] = node.bytesRead;
    out["bytes_written"] = node.bytesWritten;
    if (node.isMatmul)
      out["op"] = "matmul";
    else if (call.isSlice)
      out["op"] = "dynamic-slice";
    if (call.splittable > 0)
      out["splittable"] = call.splittable;
  }
  if (node.durationUs)
    out["duration_us"] = *node.durationUs;
  if (!dag.spmd && node.devices.size() == 1)
    out["device"] = node.devices[0].value;
  Json &deps = out["deps"] = Json::array();
  for (const DepEdge &edge : edges)
    deps.push_back(edge.from.value);
  return out;
}

Result<std::string> dagJsonText(const Dag &dag) {
  Predecessors predecessors(dag);
  Json nodes = Json::array();
  for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
    auto *call = std::get_if<OpaqueCall>(&dag.nodes[i].work);
    if (!call || (!dag.spmd && dag.nodes[i].devices.size() > 1 &&
                  dag.nodes[i].devices.size() != call->group))
      return fail(ErrorKind::Unsupported,
                  fmt::format("node {} \"{}\" cannot be written as mgpu-dag/2: "
                              "it is not of such a file",
                              i, dag.nodes[i].name));
    nodes.push_back(nodeJson(dag, i, *call, predecessors.of(NodeId{i})));
  }
  Json out{{"format", "mgpu-dag/2"},
           {"name", dag.name},
           {"devices", dag.numDevices},
           {"spmd", dag.spmd},
           {"resident_bytes", dag.residentBytes},
           {"nodes", std::move(nodes)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace mgpu::planner
