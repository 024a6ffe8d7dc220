// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/RollLoop.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "planner/import/HostValue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <fmt/format.h>

namespace mgpu::planner {

using namespace mlir;

scf::ForOp findLoopToRoll(func::FuncOp function) {
  scf::ForOp best;
  uint64_t bestWork = 0;
  for (Block &block : function.getBody())
    for (auto loop : block.getOps<scf::ForOp>()) {
      if (loop->getNumResults() > 0)
        continue;
      uint64_t work = 0;
      loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        work += isa<func::CallOp>(op) ||
                op->getName().getDialectNamespace() == "mgpu";
        return isa<ir::LaunchOp>(op) ? WalkResult::skip()
                                     : WalkResult::advance();
      });
      auto lower = getConstantIntValue(loop.getLowerBound());
      auto upper = getConstantIntValue(loop.getUpperBound());
      // Of a length known only when it is specialised, suppose it is long.
      uint64_t length = 1024;
      if (lower && upper) // capped: the product with the work must not wrap
        length = *lower < *upper
                     ? std::min<uint64_t>(uint64_t(*upper) - uint64_t(*lower),
                                          uint64_t(1) << 32)
                     : 0;
      if (work * length > bestWork) {
        bestWork = work * length;
        best = loop;
      }
    }
  return best;
}

/// Whether all values lie in [low, high], without a wrap on the way.
static bool staysWithin(Induction values, uint64_t trips, __int128 low,
                        __int128 high) {
  __int128 first = values.first;
  __int128 last = first + __int128(trips - 1) * values.step;
  return low <= std::min(first, last) && std::max(first, last) <= high;
}

std::optional<Induction> deriveInduction(Operation *op, Induction lhs,
                                         std::optional<Induction> rhs,
                                         uint64_t trips) {
  auto widthOf = [](Type type) {
    return isa<IndexType>(type) ? 64u : type.getIntOrFloatBitWidth();
  };
  auto wrapping = [](uint64_t first, uint64_t step) {
    return Induction{{}, int64_t(first), int64_t(step)};
  };
  uint64_t a = uint64_t(lhs.first), s = uint64_t(lhs.step);
  if (!rhs) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp>(op))
      return std::nullopt;
    unsigned from = widthOf(op->getOperand(0).getType());
    if (widthOf(op->getResult(0).getType()) <= from)
      return lhs; // cut when it is stored
    bool isSigned = isa<arith::IndexCastOp, arith::ExtSIOp>(op);
    __int128 half = __int128(1) << (from - 1);
    bool exact = isSigned ? staysWithin(lhs, trips, -half, half - 1)
                          : staysWithin(lhs, trips, 0, 2 * half - 1);
    return exact ? std::optional(lhs) : std::nullopt;
  }
  uint64_t b = uint64_t(rhs->first), t = uint64_t(rhs->step);
  if (isa<arith::AddIOp>(op))
    return wrapping(a + b, s + t);
  if (isa<arith::SubIOp>(op))
    return wrapping(a - b, s - t);
  if (isa<arith::MulIOp>(op) && t == 0)
    return wrapping(a * b, s * b);
  if (isa<arith::MulIOp>(op) && s == 0)
    return wrapping(a * b, a * t);
  return std::nullopt;
}

namespace {

/// Compares the nodes of two trips; buffers each trip made are told by where
/// they are used.
class TripMatcher {
public:
  explicit TripMatcher(const RolledTrips &rolled) : rolled(rolled) {}

  bool matches(const DagNode &a, const DagNode &b) {
    if (a.devices != b.devices || a.work.index() != b.work.index() ||
        a.uses.size() != b.uses.size() || a.location != b.location)
      return false;
    for (size_t k = 0; k < a.uses.size(); ++k)
      if (const BufferUse &x = a.uses[k], &y = b.uses[k];
          !same(x.buffer, y.buffer) || x.box != y.box || x.reads != y.reads ||
          x.writes != y.writes)
        return false;
    if (auto *call = std::get_if<KernelCall>(&a.work))
      return matches(*call, std::get<KernelCall>(b.work));
    if (auto *call = std::get_if<CollectiveCall>(&a.work))
      return matches(*call, std::get<CollectiveCall>(b.work));
    if (auto *x = std::get_if<CopyCall>(&a.work)) {
      const auto &y = std::get<CopyCall>(b.work);
      return same(x->source, y.source) && same(x->destination, y.destination) &&
             x->sourceBox == y.sourceBox &&
             x->destinationBox == y.destinationBox;
    }
    return false;
  }
  /// The first trip's buffer that stands for `second`, if any use told.
  std::optional<BufferId> twinOf(BufferId second) const {
    auto at = twins.find(second.value);
    return at == twins.end() ? std::nullopt : std::optional(at->second);
  }

private:
  bool same(BufferId a, BufferId b) {
    if (b.value < rolled.buffers[1])
      return a == b;
    if (a.value < rolled.buffers[0] || a.value >= rolled.buffers[1])
      return false;
    return twins.try_emplace(b.value, a).first->second == a &&
           seconds.try_emplace(a.value, b).first->second == b;
  }
  bool matches(const KernelCall &a, const KernelCall &b) {
    if (a.kernel != b.kernel || a.grid != b.grid ||
        a.arguments.size() != b.arguments.size())
      return false;
    for (size_t k = 0; k < a.arguments.size(); ++k) {
      const KernelArgument &x = a.arguments[k], &y = b.arguments[k];
      auto *xBuffer = std::get_if<BufferId>(&x.value);
      auto *yBuffer = std::get_if<BufferId>(&y.value);
      if (x.offsetBytes != y.offsetBytes || !xBuffer != !yBuffer ||
          (xBuffer ? !same(*xBuffer, *yBuffer) : x.value != y.value))
        return false;
    }
    return true;
  }
  bool matches(const CollectiveCall &a, const CollectiveCall &b) {
    if (a.kind != b.kind || a.reduction != b.reduction ||
        a.elementType != b.elementType || a.root != b.root ||
        a.communicator != b.communicator ||
        a.members.size() != b.members.size())
      return false;
    for (size_t k = 0; k < a.members.size(); ++k)
      if (const CollectiveMember &x = a.members[k], &y = b.members[k];
          x.device != y.device || !same(x.send, y.send) ||
          !same(x.recv, y.recv) || x.sendBox != y.sendBox ||
          x.recvBox != y.recvBox)
        return false;
    return true;
  }

  const RolledTrips &rolled;
  std::map<uint32_t, BufferId> twins, seconds; ///< each way
};

void renumberBuffers(DagNode &node, const std::vector<BufferId> &ids) {
  auto to = [&](BufferId &id) { id = ids[id.value]; };
  for (BufferUse &use : node.uses)
    to(use.buffer);
  if (auto *call = std::get_if<KernelCall>(&node.work)) {
    for (KernelArgument &argument : call->arguments)
      if (auto *buffer = std::get_if<BufferId>(&argument.value))
        to(*buffer);
  } else if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    to(copy->source);
    to(copy->destination);
  } else if (auto *call = std::get_if<CollectiveCall>(&node.work)) {
    for (CollectiveMember &member : call->members) {
      to(member.send);
      to(member.recv);
    }
  }
}

} // namespace

Result<std::vector<BufferId>> dropSecondTrip(Dag &dag,
                                             const RolledTrips &rolled) {
  auto [firstNode, secondNode, endNode] = rolled.nodes;
  auto [firstBuffer, secondBuffer, endBuffer] = rolled.buffers;
  std::vector<bool> isHoisted(dag.nodes.size(), false);
  for (NodeId node : rolled.hoisted)
    isHoisted[node.value] = true;

  // Where each node goes: those of the second trip to their twins.
  std::vector<NodeId> newIds(dag.nodes.size());
  TripMatcher matcher(rolled);
  uint32_t twin = firstNode;
  for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
    if (n < secondNode || n >= endNode) {
      newIds[n] = {n < secondNode ? n : n - (endNode - secondNode)};
      continue;
    }
    while (twin < secondNode && isHoisted[twin])
      ++twin;
    if (twin == secondNode || !matcher.matches(dag.nodes[twin], dag.nodes[n]))
      return fail(ErrorKind::Invalid, "its trips do not make the same nodes");
    newIds[n] = {twin++};
  }
  while (twin < secondNode && isHoisted[twin])
    ++twin;
  if (twin != secondNode)
    return fail(ErrorKind::Invalid, "its trips do not make the same nodes");

  std::vector<BufferId> newBuffers(dag.buffers.size());
  for (uint32_t b = 0; b < dag.buffers.size(); ++b)
    newBuffers[b] = b < secondBuffer ? BufferId{b}
                    : b >= endBuffer ? BufferId{b - (endBuffer - secondBuffer)}
                                     : matcher.twinOf({b}).value_or(BufferId{});

  for (uint32_t n = 0; n < dag.nodes.size(); ++n) {
    bool inBody = firstNode <= n && n < secondNode && !isHoisted[n];
    dag.nodes[n].phase = inBody           ? Phase::Replay
                         : n < secondNode ? Phase::Prologue
                                          : Phase::Epilogue;
    for (const BufferUse &use : dag.nodes[n].uses)
      if (Buffer &buffer = dag.buffers[use.buffer.value];
          buffer.role == BufferRole::Temporary &&
          (!inBody || use.buffer.value < firstBuffer) &&
          (n < secondNode || n >= endNode))
        buffer.role = BufferRole::Resident;
    renumberBuffers(dag.nodes[n], newBuffers);
  }
  dag.nodes.erase(dag.nodes.begin() + secondNode, dag.nodes.begin() + endNode);
  dag.buffers.erase(dag.buffers.begin() + secondBuffer,
                    dag.buffers.begin() + endBuffer);
  // Between trips a barrier stands for all edges; within the second they are
  // those of the first.
  std::erase_if(dag.edges, [&](const DepEdge &edge) {
    return secondNode <= edge.to.value && edge.to.value < endNode &&
           firstNode <= edge.from.value && !isHoisted[edge.from.value];
  });
  for (DepEdge &edge : dag.edges)
    edge = {newIds[edge.from.value], newIds[edge.to.value], edge.kind};
  dag.normalize();

  std::erase_if(dag.loop.inductions, [&](const Induction &induction) {
    return induction.buffer.value >= secondBuffer ||
           llvm::none_of(dag.nodes, [&](const DagNode &node) {
             return llvm::any_of(node.uses, [&](const BufferUse &use) {
               return use.buffer == induction.buffer;
             });
           });
  });
  dag.loop.trips = rolled.trips;
  dag.loop.location = ir::describeLocation(rolled.loop->getLoc());
  return newBuffers;
}

} // namespace mgpu::planner
