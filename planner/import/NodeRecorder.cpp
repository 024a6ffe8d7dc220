// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/NodeRecorder.h"

#include "mlir/IR/Diagnostics.h"

namespace mgpu::planner {

namespace {
// After so many, more of the same would hide the first.
constexpr uint32_t maxReportedRaces = 20;

uint32_t callOf(const RecordedNode &node, size_t use) {
  return node.callOfUse.empty() ? 0 : node.callOfUse[use];
}
bool isExact(const RecordedNode &node, size_t use) {
  return node.inexact.empty() || !node.inexact[use];
}
} // namespace

std::optional<NodeRecorder::Conflict>
NodeRecorder::unorderedConflict(NodeId from, const RecordedNode &to,
                                const DagNode &toNode) const {
  const RecordedNode &earlier = recorded[from.value];
  const DagNode &fromNode = dag.node(from);
  std::optional<Conflict> worst;
  for (size_t u = 0; u < fromNode.uses.size(); ++u) {
    const BufferUse &a = fromNode.uses[u];
    const RecordedNode::Call &aCall = earlier.calls[callOf(earlier, u)];
    for (size_t v = 0; v < toNode.uses.size(); ++v) {
      const BufferUse &b = toNode.uses[v];
      if (a.buffer != b.buffer || (!a.writes && !b.writes))
        continue;
      const RecordedNode::Call &bCall = to.calls[callOf(to, v)];
      if (bCall.before.covers(aCall.point))
        continue;
      Overlap found = overlap(a.box, b.box);
      if (found == Overlap::Yes && (!isExact(earlier, u) || !isExact(to, v)))
        found = Overlap::Maybe;
      if (found == Overlap::None || (worst && worst->overlap >= found))
        continue;
      worst = Conflict{found, aCall.location, bCall.location, a.buffer};
    }
  }
  return worst;
}

mlir::LogicalResult NodeRecorder::report(const Conflict &conflict) {
  bool proven = conflict.overlap == Overlap::Yes;
  bool isError = proven && racesAreErrors;
  races += proven;
  if (++reports > maxReportedRaces)
    return mlir::failure(isError);
  mlir::InFlightDiagnostic diagnostic = isError
                                            ? mlir::emitError(conflict.later)
                                            : mlir::emitWarning(conflict.later);
  diagnostic << (proven ? "race" : "possible race") << " on buffer '"
             << dag.buffer(conflict.buffer).name
             << "': nothing in the program's streams and waits orders this "
                "use after an earlier one; "
             << (isError ? "add mgpu.stream_wait or a sync between them"
                         : "program order is kept");
  diagnostic.attachNote(conflict.earlier) << "the earlier use is here";
  return mlir::failure(isError);
}

mlir::LogicalResult NodeRecorder::record(RecordedNode entry) {
  size_t firstEdge = dag.edges.size();
  NodeId id = tracker.append(std::move(entry.node));
  mlir::LogicalResult result = mlir::success();
  for (size_t e = firstEdge; e < dag.edges.size(); ++e) {
    DepEdge edge = dag.edges[e];
    if (edge.to != id || edge.kind == DepKind::Collective)
      continue;
    // One queue is in order: the common case needs no look at the boxes.
    const RecordedNode &earlier = recorded[edge.from.value];
    if (earlier.calls.size() == 1 && entry.calls.size() == 1 &&
        entry.calls[0].before.covers(earlier.calls[0].point))
      continue;
    if (auto conflict = unorderedConflict(edge.from, entry, dag.node(id)))
      if (failed(report(*conflict)))
        result = mlir::failure();
  }
  // The clocks were needed for this check alone; keeping them would cost
  // nodes x queues.
  for (RecordedNode::Call &call : entry.calls)
    call.before = VectorClock();
  recorded.push_back(std::move(entry));
  return result;
}

} // namespace mgpu::planner
