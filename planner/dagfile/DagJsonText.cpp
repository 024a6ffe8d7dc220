// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/DagJson.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::planner {

using Json = nlohmann::json;

static std::string kindText(CollectiveKind kind) {
  return kind == CollectiveKind::SendRecv ? "send"
                                          : std::string(toString(kind));
}

static void addKernelFields(Json &out, const DagNode &node) {
  out["kind"] = "kernel";
  out["flops"] = node.flops;
  out["bytes_read"] = node.bytesRead;
  out["bytes_written"] = node.bytesWritten;
  if (node.isMatmul)
    out["op"] = "matmul";
}

static Json nodeJson(const Dag &dag, uint32_t id, const OpaqueCall &call,
                     std::span<const DepEdge> edges) {
  const DagNode &node = dag.nodes[id];
  Json out{{"id", id}, {"name", node.name}, {"out_bytes", node.outBytes}};
  if (call.isCollective) {
    out["kind"] = kindText(call.kind);
    out["bytes"] = call.bytes;
    out["group"] = call.group;
  } else {
    addKernelFields(out, node);
    if (!node.isMatmul && call.isSlice)
      out["op"] = "dynamic-slice";
    if (call.splittable > 0)
      out["splittable"] = call.splittable;
    if (call.smShare < 1)
      out["sm_share"] = call.smShare;
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

/// The uses of a node of a program.
static Json usesJson(const DagNode &node) {
  Json uses = Json::array();
  auto add = [&](BufferId id, const Box &box, const char *mode) {
    uses.push_back({{"buffer", id.value},
                    {"mode", mode},
                    {"offset", box.offset},
                    {"element_bytes", box.elementBytes},
                    {"sizes", box.sizes},
                    {"strides", box.strides}});
  };
  if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    add(copy->source, copy->sourceBox, "r");
    add(copy->destination, copy->destinationBox, "w");
    return uses;
  }
  for (const BufferUse &use : node.uses)
    add(use.buffer, use.box,
        use.reads && use.writes ? "rw"
        : use.writes            ? "w"
                                : "r");
  return uses;
}

static Json placeJson(DeviceId device) {
  return device.isHost() ? Json("host") : Json(device.value);
}

static Json programNode(const Dag &dag, uint32_t id, double us,
                        std::span<const DepEdge> edges) {
  const DagNode &node = dag.nodes[id];
  Json out{{"id", id}, {"name", node.name}, {"duration_us", us}};
  if (!node.location.empty())
    out["location"] = node.location;
  if (node.phase != Phase::Replay)
    out["phase"] = toString(node.phase);
  if (std::holds_alternative<CopyCall>(node.work)) {
    out["kind"] = "copy";
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    int64_t bytes = 0;
    for (const CollectiveMember &member : call->members)
      for (const Box *box : {&member.sendBox, &member.recvBox})
        bytes = std::max(bytes, box->numElements() * box->elementBytes);
    out["kind"] = kindText(call->kind);
    out["bytes"] = bytes;
    out["group"] = node.devices.size();
  } else if (auto *opaque = std::get_if<OpaqueCall>(&node.work);
             opaque && opaque->isCollective) {
    out["kind"] = kindText(opaque->kind);
    out["bytes"] = opaque->bytes;
    out["group"] = std::min(std::max(opaque->group, 1u), dag.numDevices);
  } else {
    addKernelFields(out, node);
  }
  if (!std::holds_alternative<CopyCall>(node.work)) {
    out["devices"] = Json::array();
    for (DeviceId device : node.devices)
      out["devices"].push_back(device.value);
  }
  out["uses"] = usesJson(node);
  Json &deps = out["deps"] = Json::array();
  for (const DepEdge &edge : edges)
    deps.push_back(edge.from.value);
  return out;
}

std::string programJsonText(const Dag &dag, std::span<const double> durations) {
  Predecessors predecessors(dag);
  Json buffers = Json::array(), nodes = Json::array();
  for (const Buffer &buffer : dag.buffers) {
    buffers.push_back({{"name", buffer.name},
                       {"device", placeJson(buffer.device)},
                       {"bytes", buffer.sizeBytes}});
    if (buffer.role == BufferRole::Resident)
      buffers.back()["kept"] = true;
  }
  for (uint32_t i = 0; i < dag.nodes.size(); ++i)
    nodes.push_back(
        programNode(dag, i, durations[i], predecessors.of(NodeId{i})));
  // The format comes first, where isTrace() looks for it.
  nlohmann::ordered_json out{{"format", "mgpu-dag/2"},
                             {"name", dag.name},
                             {"devices", dag.numDevices},
                             {"spmd", false},
                             {"resident_bytes", dag.residentBytes},
                             {"loop_trips", dag.loop.trips},
                             {"buffers", std::move(buffers)},
                             {"nodes", std::move(nodes)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
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
