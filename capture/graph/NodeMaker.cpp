// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/graph/NodeMaker.h"

#include <fmt/format.h>

namespace mgpu::capture {

using namespace planner;
using device::GraphNodeId;

tl::unexpected<Error> failAt(const DagNode &node, ErrorKind kind,
                             std::string_view message) {
  std::string where = node.location.empty() ? "" : node.location + ": ";
  return fail(kind, fmt::format("{}node '{}': {}", where, node.name, message));
}

std::string NodeMaker::nameOf(const DagNode &node) const {
  return !part.isAll() && !node.location.empty()
             ? fmt::format("{} ({})", node.name, node.location)
             : node.name;
}

Result<void> NodeMaker::resolveBuffers() {
  buffers.assign(dag.buffers.size(), nullptr);
  inArena.assign(dag.buffers.size(), std::nullopt);
  for (size_t k = 0; k < dag.buffers.size(); ++k)
    if (!isInArena(dag.buffers[k]) && k < addresses.own.size())
      buffers[k] = addresses.own[k];
  for (const Placement &placement : plan.placements) {
    if (placement.buffer.value >= dag.buffers.size())
      return fail(ErrorKind::Invalid,
                  fmt::format("the plan places buffer {}, but the program has "
                              "{}: plan it again",
                              placement.buffer.value, dag.buffers.size()));
    const Buffer &buffer = dag.buffer(placement.buffer);
    auto device = size_t(buffer.device.value);
    if (!isInArena(buffer) || device >= addresses.arenas.size() ||
        device >= plan.arenaBytes.size() ||
        placement.offset % arenaAlignment != 0 ||
        placement.offset > plan.arenaBytes[device] ||
        buffer.sizeBytes > plan.arenaBytes[device] - placement.offset)
      return fail(ErrorKind::Invalid,
                  fmt::format("the plan places buffer '{}' at byte {} of "
                              "device {}, where there is no room for it: plan "
                              "it again",
                              buffer.name, placement.offset,
                              buffer.device.value));
    inArena[placement.buffer.value] = placement.offset;
    if (addresses.arenas[device])
      buffers[placement.buffer.value] =
          addresses.arenas[device] + placement.offset;
  }
  return {};
}

Result<std::byte *> NodeMaker::address(const DagNode &node, BufferId id) const {
  if (id.value >= buffers.size())
    return failAt(
        node, ErrorKind::Invalid,
        fmt::format("uses buffer {}, which does not exist", id.value));
  if (!buffers[id.value] && dag.buffer(id).sizeBytes != 0)
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("uses buffer '{}', which has no address: it is "
                              "neither placed by the plan nor bound",
                              dag.buffer(id).name));
  return buffers[id.value];
}

Result<std::byte *> NodeMaker::address(const DagNode &node, BufferId id,
                                       const Box &box) const {
  MGPU_TRY_ASSIGN(std::byte * base, address(node, id));
  if (box.sizes.size() != box.strides.size())
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("has a view of buffer '{}' with {} sizes but {} "
                              "strides",
                              dag.buffer(id).name, box.sizes.size(),
                              box.strides.size()));
  auto [low, high] = box.byteRange();
  if (low != high &&
      (low < 0 || high < low || uint64_t(high) > dag.buffer(id).sizeBytes))
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("uses bytes {} to {} of buffer '{}', which has "
                              "{}",
                              low, high, dag.buffer(id).name,
                              dag.buffer(id).sizeBytes));
  return base;
}

Result<GraphNodeId>
NodeMaker::addKernel(const DagNode &node, const KernelCall &call,
                     std::span<const GraphNodeId> dependencies,
                     bool mayBeginEarly) {
  if (call.kernel.value >= dag.kernels.size() ||
      call.kernel.value >= kernels.size())
    return failAt(
        node, ErrorKind::Invalid,
        fmt::format("calls kernel {}, which is not loaded", call.kernel.value));
  const KernelSpec &spec = dag.kernels[call.kernel.value];
  if (call.arguments.size() != spec.numArguments || node.devices.size() != 1)
    return failAt(node, ErrorKind::Invalid,
                  fmt::format("calls kernel '{}' with {} arguments on {} "
                              "devices; it takes {} on one device",
                              spec.name, call.arguments.size(),
                              node.devices.size(), spec.numArguments));
  device::KernelNodeParams params{node.name,
                                  node.devices[0],
                                  kernels[call.kernel.value],
                                  call.grid,
                                  {},
                                  call.part,
                                  mayBeginEarly,
                                  {},
                                  spec.location};
  for (const KernelArgument &argument : call.arguments) {
    if (const auto *bits = std::get_if<uint64_t>(&argument.value)) {
      params.arguments.push_back(*bits);
      continue;
    }
    BufferId id = std::get<BufferId>(argument.value);
    MGPU_TRY_ASSIGN(std::byte * base, address(node, id));
    if (argument.offsetBytes < 0 ||
        uint64_t(argument.offsetBytes) > dag.buffer(id).sizeBytes)
      return failAt(node, ErrorKind::Invalid,
                    fmt::format("passes byte {} of buffer '{}', which has {}",
                                argument.offsetBytes, dag.buffer(id).name,
                                dag.buffer(id).sizeBytes));
    params.arguments.push_back(uint64_t(uintptr_t(base)) +
                               uint64_t(argument.offsetBytes));
    if (spec.cudaFile())
      params.memory.push_back({base, dag.buffer(id).sizeBytes,
                               std::ranges::any_of(node.uses,
                                                   [&](const BufferUse &use) {
                                                     return use.buffer == id &&
                                                            use.writes;
                                                   }),
                               dag.buffer(id).name});
  }
  return graph.addKernel(params, dependencies);
}

Result<GraphNodeId>
NodeMaker::addCopy(const DagNode &node, const CopyCall &call,
                   std::span<const GraphNodeId> dependencies,
                   bool mayBeginEarly) {
  MGPU_TRY_ASSIGN(std::byte * source,
                  address(node, call.source, call.sourceBox));
  MGPU_TRY_ASSIGN(std::byte * destination,
                  address(node, call.destination, call.destinationBox));
  device::CopyNodeParams params;
  params.name = node.name;
  params.device =
      node.devices.empty() ? DeviceId::host() : node.devices.front();
  params.destination = destination;
  params.source = source;
  params.destinationBox = call.destinationBox;
  params.sourceBox = call.sourceBox;
  params.mayBeginEarly = mayBeginEarly;
  return graph.addCopy(params, dependencies);
}

Result<GraphNodeId>
NodeMaker::addCollective(const DagNode &node, const CollectiveCall &call,
                         std::span<const GraphNodeId> dependencies) {
  device::CollectiveNodeParams params;
  params.name = nameOf(node);
  params.kind = call.kind;
  params.reduction = call.reduction;
  params.elementType = call.elementType;
  params.root = call.root;
  params.pairs = call.pairs;
  for (size_t rank = 0; rank < call.members.size(); ++rank) {
    const CollectiveMember &member = call.members[rank];
    device::CollectiveMemberParams out;
    out.device = member.device;
    // The sides a kind does not use may name any buffer, or none.
    auto [sends, receives] = sidesOf(call, rank);
    // Ends on other GPUs have no address here, but their boxes count, and
    // where they are.
    const bool here = part.holds(member.device);
    if (sends && member.send.value < inArena.size())
      out.sendInArena = inArena[member.send.value];
    if (receives && member.recv.value < inArena.size())
      out.recvInArena = inArena[member.recv.value];
    if (sends && !here)
      out.sendBox = member.sendBox;
    else if (sends) {
      MGPU_TRY_ASSIGN(out.send, address(node, member.send, member.sendBox));
      out.sendBox = member.sendBox;
    }
    if (receives && !here)
      out.recvBox = member.recvBox;
    else if (receives) {
      MGPU_TRY_ASSIGN(out.recv, address(node, member.recv, member.recvBox));
      out.recvBox = member.recvBox;
    }
    params.members.push_back(std::move(out));
  }
  return graph.addCollective(params, dependencies);
}

Result<GraphNodeId>
NodeMaker::addSendRecv(const DagNode &node, const CopyCall &call,
                       std::span<const GraphNodeId> dependencies) {
  DeviceId from = dag.buffer(call.source).device;
  DeviceId to = dag.buffer(call.destination).device;
  device::CollectiveNodeParams params;
  params.name = nameOf(node);
  params.kind = CollectiveKind::SendRecv;
  params.elementType = ElementType::I8; // bytes, whatever they mean
  params.members.resize(2);
  params.members[0].device = from;
  params.members[0].sendBox = call.sourceBox;
  params.members[1].device = to;
  params.members[1].recvBox = call.destinationBox;
  params.members[0].sendInArena = inArena[call.source.value];
  params.members[1].recvInArena = inArena[call.destination.value];
  if (part.holds(call.source)) {
    MGPU_TRY_ASSIGN(params.members[0].send,
                    address(node, call.source, call.sourceBox));
  }
  if (part.holds(call.destination)) {
    MGPU_TRY_ASSIGN(params.members[1].recv,
                    address(node, call.destination, call.destinationBox));
  }
  return graph.addCollective(params, dependencies);
}

Result<GraphNodeId> NodeMaker::add(const DagNode &node,
                                   std::span<const GraphNodeId> dependencies,
                                   bool mayBeginEarly) {
  if (const auto *kernel = std::get_if<KernelCall>(&node.work))
    return addKernel(node, *kernel, dependencies, mayBeginEarly);
  if (const auto *copy = std::get_if<CopyCall>(&node.work))
    return part.isCommunication(node)
               ? addSendRecv(node, *copy, dependencies)
               : addCopy(node, *copy, dependencies, mayBeginEarly);
  if (const auto *collective = std::get_if<CollectiveCall>(&node.work))
    return addCollective(node, *collective, dependencies);
  return failAt(node, ErrorKind::Unsupported,
                "is known only by its cost and cannot run: plan and simulate "
                "this program instead");
}

} // namespace mgpu::capture
