// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_GRAPH_NODEMAKER_H
#define MGPU_CAPTURE_GRAPH_NODEMAKER_H

// One node of a program becomes one node of a driver's graph.

#include "capture/graph/GraphBuilder.h"

#include <optional>
#include <string_view>

namespace mgpu::capture {

/// An error about a node, at its place in the source.
tl::unexpected<Error> failAt(const planner::DagNode &node, ErrorKind kind,
                             std::string_view message);

/// It refers to all that it is made of. resolveBuffers() comes first.
class NodeMaker {
public:
  NodeMaker(const planner::Plan &plan, const planner::Dag &dag,
            const BufferAddresses &addresses,
            std::span<const device::KernelHandle> kernels,
            device::GraphDriver &graph, const GraphPart &part)
      : plan(plan), dag(dag), addresses(addresses), kernels(kernels),
        graph(graph), part(part) {}

  /// Finds where each buffer lies. Invalid where the plan does not fit.
  Result<void> resolveBuffers();
  Result<device::GraphNodeId>
  add(const planner::DagNode &node,
      std::span<const device::GraphNodeId> dependencies, bool mayBeginEarly);

private:
  /// A hang among GPUs is told of without the DAG.
  std::string nameOf(const planner::DagNode &node) const;
  Result<std::byte *> address(const planner::DagNode &node,
                              planner::BufferId id) const;
  Result<std::byte *> address(const planner::DagNode &node,
                              planner::BufferId id, const Box &box) const;
  Result<device::GraphNodeId>
  addKernel(const planner::DagNode &node, const planner::KernelCall &call,
            std::span<const device::GraphNodeId> dependencies,
            bool mayBeginEarly);
  Result<device::GraphNodeId>
  addCopy(const planner::DagNode &node, const planner::CopyCall &call,
          std::span<const device::GraphNodeId> dependencies,
          bool mayBeginEarly);
  Result<device::GraphNodeId>
  addCollective(const planner::DagNode &node,
                const planner::CollectiveCall &call,
                std::span<const device::GraphNodeId> dependencies);
  /// A copy between devices of two processes.
  Result<device::GraphNodeId>
  addSendRecv(const planner::DagNode &node, const planner::CopyCall &call,
              std::span<const device::GraphNodeId> dependencies);

  const planner::Plan &plan;
  const planner::Dag &dag;
  const BufferAddresses &addresses;
  std::span<const device::KernelHandle> kernels;
  device::GraphDriver &graph;
  const GraphPart &part;                        ///< what is here
  std::vector<std::byte *> buffers;             ///< by BufferId
  std::vector<std::optional<uint64_t>> inArena; ///< where, by BufferId
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_GRAPH_NODEMAKER_H
