// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_GRAPH_GRAPHBUILDER_H
#define MGPU_CAPTURE_GRAPH_GRAPHBUILDER_H

// Turns the steps of one phase of a plan into an executable graph: one graph
// node per step, edges from stream order and waits.

#include "capture/graph/Communication.h"
#include "planner/dag/Dag.h"
#include "planner/plan/Plan.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mgpu::capture {

/// Which nodes may begin before the node they follow has ended, because they
/// wait for it themselves (programmatic dependent launch).
struct EarlyNodes {
  /// By KernelId: its launch waits (Driver::awaits).
  std::vector<bool> kernels;
  /// A copy within a device of at most so many bytes is a launch that waits
  /// (Driver::earlyCopyBytes); 0: none is.
  uint64_t copyBytes = 0;

  /// Asks the driver. Copies wait only where some kernel does: else nobody
  /// asked for early launches.
  static EarlyNodes of(std::span<const device::KernelHandle> kernels,
                       const device::Driver &driver);
  /// Whether the node is a launch of a kernel, or such a copy.
  bool isLaunch(const planner::Dag &dag, const planner::DagNode &node) const;
  /// Whether it is a launch that waits.
  bool waits(const planner::Dag &dag, const planner::DagNode &node) const;
};

/// Where the program's buffers are.
struct BufferAddresses {
  std::vector<std::byte *> arenas; ///< by device
  /// By BufferId. Null for one that lies in its arena, where the plan says.
  std::vector<std::byte *> own;
};

/// An edge of the graph, as node numbers.
using GraphEdge = std::pair<uint32_t, uint32_t>;

struct ExecutableGraph {
  std::unique_ptr<device::GraphExec> exec;
  std::vector<planner::NodeId> dagNodes; ///< by graph node
  std::vector<GraphEdge> edges;          ///< sorted by (target, source)
  /// The edges whose target, a kernel, may begin before the source has ended,
  /// and waits for it itself; in the order of `edges`.
  std::vector<GraphEdge> early;
};

/// `kernels` are by KernelId. With a driver of a part of the devices
/// (Communication.h) the graph holds that part, with its communications in the
/// order of the plan's steps. Plans are checked as far as building needs it;
/// planner::verify() proves them. The graph made is proven to hold every edge
/// of the DAG within the phase (proveGraph).
Result<ExecutableGraph>
buildGraph(const planner::Plan &plan, const planner::Dag &dag,
           planner::Phase phase, const BufferAddresses &addresses,
           std::span<const device::KernelHandle> kernels,
           device::Driver &driver);
/// Builds the plan's graph in the place of `graph`, whose executable may be
/// changed instead of made anew (GraphDriver::instantiateOver), and after an
/// error may be null.
Result<void> rebuildGraph(const planner::Plan &plan, const planner::Dag &dag,
                          planner::Phase phase,
                          const BufferAddresses &addresses,
                          std::span<const device::KernelHandle> kernels,
                          device::Driver &driver, ExecutableGraph &graph);

/// The read-back proof: `dagNodes` holds each node of the phase once, and
/// `edges` alone imply every edge of the DAG between them and the order of
/// every stream of the plan. It is the proof of a part alone: that those of its
/// communications whose communicators share two ranks (all of them where
/// processes have memory of the host of their own) follow each other in the
/// plan's order, which is that of all processes. It also proves that each
/// `early` edge is the only edge of its target, that both ends are launches,
/// and that the target is one that waits.
Result<void> proveGraph(const planner::Plan &plan, const planner::Dag &dag,
                        planner::Phase phase,
                        std::span<const planner::NodeId> dagNodes,
                        std::span<const GraphEdge> edges, const GraphPart &part,
                        std::span<const GraphEdge> early = {},
                        const EarlyNodes &earlyNodes = {});

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_GRAPH_GRAPHBUILDER_H
