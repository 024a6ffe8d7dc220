// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/Dag.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace mgpu::planner {

void forEachBuffer(DagNode &node,
                   const std::function<void(BufferId &, int64_t &)> &visit) {
  for (BufferUse &use : node.uses)
    visit(use.buffer, use.box.offset);
  if (auto *kernel = std::get_if<KernelCall>(&node.work)) {
    for (KernelArgument &argument : kernel->arguments)
      if (auto *id = std::get_if<BufferId>(&argument.value))
        visit(*id, argument.offsetBytes);
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    visit(copy->source, copy->sourceBox.offset);
    visit(copy->destination, copy->destinationBox.offset);
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    for (CollectiveMember &member : call->members) {
      visit(member.send, member.sendBox.offset);
      visit(member.recv, member.recvBox.offset);
    }
  }
}

bool isWhole(const Box &box, const Buffer &buffer) {
  return box.isContiguous() && box.byteRange().first == 0 &&
         uint64_t(box.numElements()) * box.elementBytes == buffer.sizeBytes;
}

std::string_view toString(DepKind kind) {
  switch (kind) {
  case DepKind::Data:
    return "data";
  case DepKind::Anti:
    return "anti";
  case DepKind::Output:
    return "output";
  case DepKind::Collective:
    return "collective";
  }
  return "unknown";
}

std::string_view toString(WorkClass work) {
  switch (work) {
  case WorkClass::Kernel:
    return "kernel";
  case WorkClass::Copy:
    return "copy";
  case WorkClass::Collective:
    return "collective";
  }
  return "unknown";
}

std::string_view toString(Phase phase) {
  switch (phase) {
  case Phase::Load:
    return "load";
  case Phase::Prologue:
    return "prologue";
  case Phase::Replay:
    return "replay";
  case Phase::Epilogue:
    return "epilogue";
  case Phase::Fetch:
    return "fetch";
  }
  return "unknown";
}

std::string_view toString(PipelinePart::Kind kind) {
  switch (kind) {
  case PipelinePart::Kind::Forward:
    return "forward";
  case PipelinePart::Kind::Backward:
    return "backward";
  case PipelinePart::Kind::Weights:
    return "weights";
  }
  return "unknown";
}

std::vector<Dim3> largestGrids(const Dag &dag) {
  std::vector<Dim3> grids(dag.kernels.size());
  for (const DagNode &node : dag.nodes)
    if (auto *call = std::get_if<KernelCall>(&node.work)) {
      Dim3 &most = grids[call->kernel.value];
      most = {std::max(most.x, call->grid.x), std::max(most.y, call->grid.y),
              std::max(most.z, call->grid.z)};
    }
  return grids;
}

std::span<const DeviceId> streamDevices(const DagNode &node) {
  static constexpr DeviceId hostOnly[] = {DeviceId::host()};
  if (node.devices.empty())
    return hostOnly;
  return node.devices;
}

double smShare(const DagNode &node) {
  auto *call = std::get_if<OpaqueCall>(&node.work);
  return call && !call->isCollective ? call->smShare : 1;
}

WorkClass workClass(const DagNode &node) {
  if (std::holds_alternative<CopyCall>(node.work))
    return WorkClass::Copy;
  if (std::holds_alternative<CollectiveCall>(node.work))
    return WorkClass::Collective;
  if (auto *opaque = std::get_if<OpaqueCall>(&node.work))
    return opaque->isCollective ? WorkClass::Collective : WorkClass::Kernel;
  return WorkClass::Kernel;
}

void Dag::normalize() {
  std::sort(edges.begin(), edges.end(), [](const DepEdge &a, const DepEdge &b) {
    return std::tie(a.to, a.from, a.kind) < std::tie(b.to, b.from, b.kind);
  });
  // Kinds sort strongest first, so the first of each pair is the one to keep.
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [](const DepEdge &a, const DepEdge &b) {
                            return a.to == b.to && a.from == b.from;
                          }),
              edges.end());
}

namespace {

class Checker {
public:
  explicit Checker(const Dag &dag) : dag(dag) {}

  Result<void> run() {
    MGPU_TRY(checkBuffers());
    MGPU_TRY(checkLoop());
    MGPU_TRY(checkKernels());
    for (size_t i = 0; i < dag.nodes.size(); ++i)
      MGPU_TRY(checkNode(i));
    MGPU_TRY(checkEdges());
    return checkCommunicators();
  }

private:
  static tl::unexpected<Error> bad(std::string message) {
    return fail(ErrorKind::Invalid, std::move(message));
  }
  std::string label(size_t node) const {
    const DagNode &n = dag.nodes[node];
    std::string text = fmt::format("node {} \"{}\"", node, n.name);
    if (!n.location.empty())
      text += fmt::format(" ({})", n.location);
    return text;
  }
  bool knownDevice(DeviceId device) const {
    return device.isHost() ? device == DeviceId::host()
                           : uint32_t(device.value) < dag.numDevices;
  }

  Result<void> checkBuffers() {
    if (dag.nodes.size() > UINT32_MAX || dag.buffers.size() > UINT32_MAX ||
        dag.edges.size() > UINT32_MAX)
      return bad("the DAG has more than 2^32 - 1 nodes, buffers or edges; "
                 "split the program");
    std::unordered_set<std::string_view> names;
    for (const Buffer &buffer : dag.buffers) {
      if (!names.insert(buffer.name).second)
        return bad(fmt::format("two buffers are named \"{}\"; buffer names "
                               "must be unique in a DAG",
                               buffer.name));
      if (!knownDevice(buffer.device))
        return bad(fmt::format(
            "buffer \"{}\" lies on device {}, but the DAG has {} devices",
            buffer.name, buffer.device.value, dag.numDevices));
      if (buffer.sizeBytes > uint64_t(INT64_MAX) / 4)
        return bad(fmt::format("buffer \"{}\" has {} bytes, more than can be "
                               "addressed",
                               buffer.name, buffer.sizeBytes));
      if (buffer.role == BufferRole::Constant
              ? buffer.contents.size() != buffer.sizeBytes
              : !buffer.contents.empty())
        return bad(fmt::format("buffer \"{}\" has {} bytes and {} of contents; "
                               "a constant has as many, any other buffer none",
                               buffer.name, buffer.sizeBytes,
                               buffer.contents.size()));
      bool deviceRole = buffer.role == BufferRole::Temporary ||
                        buffer.role == BufferRole::Resident;
      if (deviceRole == buffer.device.isHost() &&
          buffer.role != BufferRole::Argument)
        return bad(fmt::format(
            "buffer \"{}\" has a role that does not fit its place: temporary "
            "and resident buffers lie on a device, arguments there or on the "
            "host, all others on the host",
            buffer.name));
    }
    return {};
  }

  Result<void> checkLoop() {
    if (dag.loop.trips == 0)
      return bad("the rolled loop has no trips");
    for (const Induction &induction : dag.loop.inductions) {
      if (induction.buffer.value >= dag.buffers.size())
        return bad(fmt::format("an induction value lies in buffer {}, but the "
                               "DAG has {} buffers",
                               induction.buffer.value, dag.buffers.size()));
      const Buffer &buffer = dag.buffer(induction.buffer);
      if (buffer.role != BufferRole::HostLocal ||
          buffer.sizeBytes > sizeof(uint64_t))
        return bad(fmt::format("buffer \"{}\" cannot hold an induction value: "
                               "that takes at most 8 bytes of the program's "
                               "own host memory",
                               buffer.name));
    }
    return {};
  }

  Result<void> checkKernels() {
    std::unordered_set<std::string_view> names;
    for (const KernelSpec &kernel : dag.kernels)
      if (!names.insert(kernel.name).second)
        return bad(fmt::format("two kernels are named \"{}\"; kernel names "
                               "must be unique in a DAG",
                               kernel.name));
    return {};
  }

  Result<void> checkBox(size_t node, BufferId id, const Box &box) {
    if (id.value >= dag.buffers.size())
      return bad(fmt::format("{} names buffer {}, but the DAG has {} buffers",
                             label(node), id.value, dag.buffers.size()));
    const Buffer &buffer = dag.buffer(id);
    if (Result<void> ok = mgpu::checkBox(box); !ok)
      return bad(fmt::format("{} has a malformed box of buffer \"{}\": {}",
                             label(node), buffer.name, ok.error().message));
    auto [begin, end] = box.byteRange();
    if (begin < end && (begin < 0 || uint64_t(end) > buffer.sizeBytes))
      return bad(fmt::format(
          "{} touches bytes {} to {} of buffer \"{}\", which has {} bytes",
          label(node), begin, end, buffer.name, buffer.sizeBytes));
    return {};
  }

  Result<void> checkNode(size_t i) {
    const DagNode &node = dag.nodes[i];
    for (size_t k = 0; k < node.devices.size(); ++k) {
      if (!knownDevice(node.devices[k]))
        return bad(fmt::format("{} runs on device {}, but the DAG has {} "
                               "devices",
                               label(i), node.devices[k].value,
                               dag.numDevices));
      if (k > 0 && !(node.devices[k - 1] < node.devices[k]))
        return bad(fmt::format("{} does not list its devices in ascending "
                               "order, each once",
                               label(i)));
    }
    if (node.devices.size() > 1 && node.devices.front().isHost())
      return bad(fmt::format(
          "{} lists the host beside a device; a copy lists its device ends",
          label(i)));
    if (!(node.flops >= 0 && node.flops < 1e300))
      return bad(fmt::format("{} has {} floating-point operations; the count "
                             "must be finite and not negative",
                             label(i), node.flops));
    if (node.asks)
      for (double count : {node.asks->instructions, node.asks->lines,
                           node.asks->movedBytes, node.asks->blocks})
        if (!(count >= 0 && count < 1e300))
          return bad(fmt::format("{} asks for {} instructions, lines, bytes or "
                                 "blocks; the count must be finite and not "
                                 "negative",
                                 label(i), count));
    if (node.durationUs && !(*node.durationUs >= 0 && *node.durationUs < 1e300))
      return bad(fmt::format("{} has duration {} us; it must be finite and "
                             "not negative",
                             label(i), *node.durationUs));
    for (const BufferUse &use : node.uses)
      MGPU_TRY(checkBox(i, use.buffer, use.box));
    return checkWork(i);
  }

  Result<void> checkWork(size_t i) {
    const DagNode &node = dag.nodes[i];
    if (auto *call = std::get_if<KernelCall>(&node.work)) {
      if (call->kernel.value >= dag.kernels.size())
        return bad(fmt::format("{} launches kernel {}, but the DAG has {} "
                               "kernels",
                               label(i), call->kernel.value,
                               dag.kernels.size()));
      const KernelSpec &kernel = dag.kernels[call->kernel.value];
      if (call->arguments.size() != kernel.numArguments)
        return bad(fmt::format("{} passes {} arguments to kernel \"{}\", "
                               "which takes {}",
                               label(i), call->arguments.size(), kernel.name,
                               kernel.numArguments));
      if (call->part && !call->part->fits(call->grid))
        return bad(fmt::format("{} runs blocks outside its grid of {} x {} x "
                               "{}",
                               label(i), call->grid.x, call->grid.y,
                               call->grid.z));
      for (const KernelArgument &argument : call->arguments) {
        auto *id = std::get_if<BufferId>(&argument.value);
        if (!id)
          continue;
        if (id->value >= dag.buffers.size())
          return bad(fmt::format("{} passes buffer {}, but the DAG has {} "
                                 "buffers",
                                 label(i), id->value, dag.buffers.size()));
        if (argument.offsetBytes < 0 ||
            uint64_t(argument.offsetBytes) > dag.buffer(*id).sizeBytes)
          return bad(fmt::format("{} passes byte {} of buffer \"{}\", which "
                                 "has {} bytes",
                                 label(i), argument.offsetBytes,
                                 dag.buffer(*id).name,
                                 dag.buffer(*id).sizeBytes));
      }
    } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
      MGPU_TRY(checkBox(i, copy->source, copy->sourceBox));
      MGPU_TRY(checkBox(i, copy->destination, copy->destinationBox));
      if (copy->sourceBox.numElements() != copy->destinationBox.numElements() ||
          copy->sourceBox.elementBytes != copy->destinationBox.elementBytes)
        return bad(fmt::format("{} copies between boxes of different element "
                               "count or width",
                               label(i)));
    } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
      if (call->members.empty() || call->root >= call->members.size())
        return bad(fmt::format("{} has {} members and root {}", label(i),
                               call->members.size(), call->root));
      if (call->kind != CollectiveKind::Permute && !call->pairs.empty())
        return bad(fmt::format("{} is not a permute and has pairs", label(i)));
      if (Result<void> ok = checkPairs(call->pairs, call->members.size()); !ok)
        return failIn(label(i) + ": ", ok.error());
      for (const CollectiveMember &member : call->members) {
        MGPU_TRY(checkBox(i, member.send, member.sendBox));
        MGPU_TRY(checkBox(i, member.recv, member.recvBox));
        if (!std::binary_search(node.devices.begin(), node.devices.end(),
                                member.device))
          return bad(fmt::format("{} has a member on device {}, which it does "
                                 "not list",
                                 label(i), member.device.value));
      }
    }
    if (node.devices.size() > 1 && workClass(node) == WorkClass::Kernel)
      return bad(fmt::format("{} is a kernel on several devices", label(i)));
    return {};
  }

  Result<void> checkEdges() {
    for (size_t k = 0; k < dag.edges.size(); ++k) {
      const DepEdge &edge = dag.edges[k];
      if (edge.to.value >= dag.nodes.size() || !(edge.from < edge.to))
        return bad(fmt::format("edge {} -> {} does not go from a node to a "
                               "later one",
                               edge.from.value, edge.to.value));
      if (k > 0 && std::tie(dag.edges[k - 1].to, dag.edges[k - 1].from) >=
                       std::tie(edge.to, edge.from))
        return bad(fmt::format("edge {} -> {} is out of order or doubled; "
                               "normalize() was not called",
                               edge.from.value, edge.to.value));
      if (dag.node(edge.from).phase > dag.node(edge.to).phase)
        return bad(fmt::format("{} depends on {}, which runs in a later phase",
                               label(edge.to.value), label(edge.from.value)));
    }
    return {};
  }

  // Consecutive collectives of a communicator need an edge: without it two
  // ranks might issue them in different orders and wait for ever.
  Result<void> checkCommunicators() {
    std::unordered_map<uint32_t, NodeId> last;
    for (uint32_t i = 0; i < dag.nodes.size(); ++i) {
      auto *call = std::get_if<CollectiveCall>(&dag.nodes[i].work);
      if (!call)
        continue;
      auto [it, first] = last.try_emplace(call->communicator, NodeId{i});
      if (first)
        continue;
      DepEdge key{it->second, NodeId{i}};
      if (!std::binary_search(dag.edges.begin(), dag.edges.end(), key,
                              [](const DepEdge &a, const DepEdge &b) {
                                return std::tie(a.to, a.from) <
                                       std::tie(b.to, b.from);
                              }))
        return bad(fmt::format(
            "{} and {} follow each other on communicator {} without an edge; "
            "build the DAG with DependencyTracker",
            label(it->second.value), label(i), call->communicator));
      it->second = NodeId{i};
    }
    return {};
  }

  const Dag &dag;
};

} // namespace

Result<void> Dag::check() const { return Checker(*this).run(); }

Predecessors::Predecessors(const Dag &dag)
    : edges(dag.edges.data()), begin(dag.nodes.size() + 1, 0) {
  for (const DepEdge &edge : dag.edges)
    ++begin[edge.to.value + 1];
  for (size_t i = 1; i < begin.size(); ++i)
    begin[i] += begin[i - 1];
}

Successors::Successors(const Dag &dag)
    : targets(dag.edges.size()), begin(dag.nodes.size() + 1, 0) {
  for (const DepEdge &edge : dag.edges)
    ++begin[edge.from.value + 1];
  for (size_t i = 1; i < begin.size(); ++i)
    begin[i] += begin[i - 1];
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  // Edges are sorted by their target, so each list comes out ascending.
  for (const DepEdge &edge : dag.edges)
    targets[next[edge.from.value]++] = edge.to;
}

std::vector<bool> writtenBuffers(const Dag &dag) {
  std::vector<bool> isWritten(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.writes)
        isWritten[use.buffer.value] = true;
  return isWritten;
}

} // namespace mgpu::planner
