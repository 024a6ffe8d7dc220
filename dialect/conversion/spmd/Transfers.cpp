// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Transfers.h"

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

} // namespace mgpu::conversion
