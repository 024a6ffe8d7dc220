// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/GraphSpec.h"

#include <tuple>

namespace mgpu::device {

static bool isSame(const KernelLaunch &a, const KernelLaunch &b) {
  return a.kernel == b.kernel && a.grid == b.grid && a.block == b.block &&
         a.sharedBytes == b.sharedBytes && a.isUrgent == b.isUrgent &&
         a.values == b.values && a.offsets == b.offsets;
}

/// All but the addresses; what CopyLaunch leaves zero is left out.
static auto formOf(const CUDA_MEMCPY3D &c) {
  return std::tie(c.srcMemoryType, c.dstMemoryType, c.srcPitch, c.srcHeight,
                  c.dstPitch, c.dstHeight, c.WidthInBytes, c.Height, c.Depth);
}

static bool isSame(const CopyLaunch &a, const CopyLaunch &b) {
  return formOf(a.copy) == formOf(b.copy) &&
         a.copy.srcDevice == b.copy.srcDevice &&
         a.copy.dstDevice == b.copy.dstDevice &&
         a.copy.srcHost == b.copy.srcHost && a.copy.dstHost == b.copy.dstHost;
}

static bool isSame(const NcclCall &a, const NcclCall &b) {
  return a.kind == b.kind && a.reduction == b.reduction && a.type == b.type &&
         a.send == b.send && a.recv == b.recv && a.count == b.count &&
         a.root == b.root && a.pairs == b.pairs && a.group == b.group &&
         a.rank == b.rank && a.numRanks == b.numRanks;
}

/// Its workspace is another one each time.
static bool isSame(const ProductCall &, const ProductCall &) { return false; }
static bool isSame(const SparseCall &, const SparseCall &) { return false; }

static bool isSame(const MarkLaunch &a, const MarkLaunch &b) {
  return a.one == b.one && a.word == b.word;
}

static bool isSame(const EmptyNode &, const EmptyNode &) { return true; }

bool isSame(const NodeWork &a, const NodeWork &b) {
  return a.index() == b.index() &&
         std::visit(
             [&](const auto &mine) {
               return isSame(mine, std::get<std::decay_t<decltype(mine)>>(b));
             },
             a);
}

/// Whether only addresses differ, and both ends are of one dimension.
static bool movesAddressesOnly(const CUDA_MEMCPY3D &a, const CUDA_MEMCPY3D &b) {
  return a.Height == 1 && a.Depth == 1 && formOf(a) == formOf(b);
}

bool isUpdatable(const GraphSpec &from, const GraphSpec &to) {
  if (from.nodes.size() != to.nodes.size() ||
      from.ranges.size() != to.ranges.size())
    return false;
  for (size_t k = 0; k < from.ranges.size(); ++k)
    if (from.ranges[k].first != to.ranges[k].first ||
        from.ranges[k].last != to.ranges[k].last ||
        from.ranges[k].end != to.ranges[k].end)
      return false;
  for (size_t k = 0; k < from.nodes.size(); ++k) {
    const NodeSpec &a = from.nodes[k], &b = to.nodes[k];
    if (a.dependencies != b.dependencies || a.isEarly != b.isEarly ||
        a.work.index() != b.work.index())
      return false;
    if (isSame(a.work, b.work))
      continue;
    if (const auto *kernel = std::get_if<KernelLaunch>(&a.work)) {
      if (kernel->isUrgent != std::get<KernelLaunch>(b.work).isUrgent)
        return false;
    } else if (const auto *copy = std::get_if<CopyLaunch>(&a.work)) {
      if (!movesAddressesOnly(copy->copy, std::get<CopyLaunch>(b.work).copy))
        return false;
    } else if (!std::holds_alternative<MarkLaunch>(a.work)) {
      return false;
    }
  }
  return true;
}

} // namespace mgpu::device
