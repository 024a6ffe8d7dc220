// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts what the steps of a reshard cost.
#include "dialect/conversion/spmd/Reshard.h"

namespace mgpu::conversion {

using namespace mlir;

static TensorBox boxOf(spmd::LayoutAttr layout, ArrayRef<int64_t> full,
                       int64_t device) {
  return {layout.shardOffsets(full, device), layout.shardShape(full, device)};
}

/// The box that both have; none where that is empty.
static std::optional<TensorBox> intersect(const TensorBox &a,
                                          const TensorBox &b) {
  TensorBox both;
  for (size_t dim = 0; dim < a.sizes.size(); ++dim) {
    int64_t begin = std::max(a.offsets[dim], b.offsets[dim]);
    int64_t end =
        std::min(a.offsets[dim] + a.sizes[dim], b.offsets[dim] + b.sizes[dim]);
    if (begin >= end)
      return std::nullopt;
    both.offsets.push_back(begin);
    both.sizes.push_back(end - begin);
  }
  return both;
}

SmallVector<Transfer, 0> transfersOf(ArrayRef<int64_t> full,
                                     spmd::LayoutAttr from,
                                     spmd::LayoutAttr to) {
  SmallVector<std::pair<TensorBox, SmallVector<int64_t>>> parts; // and holders
  for (int64_t device = from.firstDevice(); device < from.endDevice();
       ++device) {
    TensorBox box = boxOf(from, full, device);
    auto *found =
        llvm::find_if(parts, [&](auto &part) { return part.first == box; });
    if (found == parts.end())
      parts.push_back({std::move(box), {device}});
    else
      found->second.push_back(device);
  }
  SmallVector<Transfer, 0> transfers;
  for (int64_t device = to.firstDevice(); device < to.endDevice(); ++device) {
    TensorBox target = boxOf(to, full, device);
    for (const auto &[part, holders] : parts) {
      std::optional<TensorBox> piece = intersect(part, target);
      if (!piece)
        continue;
      int64_t source = llvm::is_contained(holders, device)
                           ? device
                           : holders[device % int64_t(holders.size())];
      transfers.push_back({source, device, part, target, std::move(*piece)});
    }
  }
  return transfers;
}

/// The most elements that a device lacks of its part under `to`.
static int64_t mostLacking(ArrayRef<int64_t> full, spmd::LayoutAttr from,
                           spmd::LayoutAttr to) {
  SmallVector<SmallVector<std::pair<int64_t, int64_t>>> has, gets;
  for (auto [dim, size] : llvm::enumerate(full)) {
    has.push_back(from.rangesOf(dim, size));
    gets.push_back(to.rangesOf(dim, size));
  }
  int64_t most = 0;
  for (int64_t device = to.firstDevice(); device < to.endDevice(); ++device) {
    int64_t wanted = 1, own = from.holds(device);
    for (unsigned dim = 0; dim < full.size(); ++dim) {
      auto [begin, end] = gets[dim][to.partOf(dim, device)];
      wanted *= end - begin;
      if (own == 0)
        continue;
      auto [first, last] = has[dim][from.partOf(dim, device)];
      own *= std::max<int64_t>(std::min(end, last) - std::max(begin, first), 0);
    }
    most = std::max(most, wanted - own);
  }
  return most;
}

int64_t bytesReceived(const ReshardRequest &request, const ReshardStep &step) {
  int64_t count = countAlong(request.to.getMesh(), step.axes);
  int64_t others = step.bytes / count * (count - 1);
  switch (step.kind) {
  case ReshardStep::Slice:
    return 0;
  case ReshardStep::AllToAll:
  case ReshardStep::AllGather:
  case ReshardStep::ReduceScatter:
    return others;
  case ReshardStep::AllReduce:
    return 2 * others;
  case ReshardStep::Move:
    return bytesOf(request.full,
                   mostLacking(request.full.getShape(), step.from, request.to));
  }
  llvm_unreachable("a kind of step");
}

int64_t bytesReceived(const ReshardRequest &request,
                      const ReshardSteps &steps) {
  int64_t bytes = 0;
  for (const ReshardStep &step : steps)
    bytes += bytesReceived(request, step);
  return bytes;
}

static Exchange::Kind kindOf(ReshardStep::Kind kind) {
  switch (kind) {
  case ReshardStep::AllToAll:
    return Exchange::Kind::AllToAll;
  case ReshardStep::AllGather:
    return Exchange::Kind::AllGather;
  case ReshardStep::ReduceScatter:
    return Exchange::Kind::ReduceScatter;
  case ReshardStep::AllReduce:
    return Exchange::Kind::AllReduce;
  case ReshardStep::Slice:
  case ReshardStep::Move:
    return Exchange::Kind::Copies;
  }
  llvm_unreachable("a kind of step");
}

static Exchange exchangeOf(const ReshardRequest &request,
                           const ReshardStep &step) {
  Exchange exchange{kindOf(step.kind), step.bytes, {}, {}};
  if (step.kind != ReshardStep::Move) {
    exchange.groups = membersAlong(request.to.getMesh(), step.axes);
    return exchange;
  }
  for (const Transfer &each :
       transfersOf(request.full.getShape(), step.from, request.to))
    exchange.copies.push_back(
        {each.source, each.target, bytesOf(request.full, each.piece.sizes)});
  return exchange;
}

double Reshards::costOf(const ReshardRequest &request,
                        const ReshardStep &step) const {
  if (step.kind == ReshardStep::Slice)
    return 0;
  return cost ? cost(exchangeOf(request, step))
              : double(bytesReceived(request, step));
}

double Reshards::costOf(const ReshardRequest &request,
                        const ReshardSteps &steps) const {
  double sum = 0;
  for (const ReshardStep &step : steps)
    sum += costOf(request, step);
  return sum;
}

} // namespace mgpu::conversion
