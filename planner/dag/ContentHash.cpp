// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/ContentHash.h"

#include "support/Sha256.h"

#include <fmt/format.h>

namespace mgpu::planner {

namespace {

/// Collects numbers and texts of a DAG, each with its end marked.
class HashWriter {
public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> HashWriter &
  add(T value) {
    if constexpr (std::is_enum_v<T>)
      hash.addField(std::to_string(int64_t(value)));
    else
      hash.addField(fmt::format("{}", value));
    return *this;
  }
  HashWriter &add(std::string_view text) {
    hash.addField(text);
    return *this;
  }
  HashWriter &add(const Box &box) {
    add(box.offset).add(box.elementBytes).add(box.sizes.size());
    for (size_t k = 0; k < box.sizes.size(); ++k)
      add(box.sizes[k]).add(k < box.strides.size() ? box.strides[k] : 0);
    return *this;
  }
  std::string hex() { return hash.hex(); }

private:
  Sha256 hash;
};

void addWork(HashWriter &out, const Dag &dag, const DagNode &node) {
  out.add(node.work.index());
  if (auto *kernel = std::get_if<KernelCall>(&node.work)) {
    out.add(dag.kernels[kernel->kernel.value].hash);
    out.add(kernel->grid.x).add(kernel->grid.y).add(kernel->grid.z);
    if (const auto &part = kernel->part) {
      out.add(part->first.x).add(part->first.y).add(part->first.z);
      out.add(part->count.x).add(part->count.y).add(part->count.z);
    }
    for (const KernelArgument &argument : kernel->arguments) {
      out.add(argument.value.index()).add(argument.offsetBytes);
      if (auto *buffer = std::get_if<BufferId>(&argument.value))
        out.add(buffer->value);
      else
        out.add(std::get<uint64_t>(argument.value));
    }
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    out.add(copy->source.value).add(copy->destination.value);
    out.add(copy->sourceBox).add(copy->destinationBox);
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    out.add(call->kind).add(call->reduction).add(call->elementType);
    out.add(call->root).add(call->communicator);
    for (const RankPair &pair : call->pairs)
      out.add(pair.source).add(pair.target);
    for (const CollectiveMember &member : call->members) {
      out.add(member.device.value).add(member.send.value);
      out.add(member.recv.value).add(member.sendBox).add(member.recvBox);
    }
  } else if (auto *opaque = std::get_if<OpaqueCall>(&node.work)) {
    out.add(uint8_t(opaque->isCollective)).add(opaque->kind);
    out.add(opaque->bytes).add(node.durationUs.value_or(-1));
  }
}

} // namespace

std::string contentHash(const Dag &dag) {
  HashWriter out;
  out.add(dag.numDevices).add(uint8_t(dag.spmd)).add(dag.residentBytes);
  out.add(dag.loop.trips);
  for (const Induction &induction : dag.loop.inductions)
    out.add(induction.buffer.value).add(induction.first).add(induction.step);
  for (const Buffer &buffer : dag.buffers) {
    out.add(buffer.device.value).add(buffer.role).add(buffer.index);
    out.add(buffer.sizeBytes).add(buffer.elementType);
    if (!buffer.contents.empty())
      out.add(Sha256().add(std::span<const std::byte>(buffer.contents)).hex());
  }
  for (const DagNode &node : dag.nodes) {
    out.add(node.phase).add(node.devices.size());
    for (DeviceId device : node.devices)
      out.add(device.value);
    addWork(out, dag, node);
  }
  for (const DepEdge &edge : dag.edges)
    out.add(edge.from.value).add(edge.to.value);
  return out.hex();
}

} // namespace mgpu::planner
