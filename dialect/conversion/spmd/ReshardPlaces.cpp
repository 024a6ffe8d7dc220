// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lists the steps that a layout on the way allows, and what is sliced there.
#include "dialect/conversion/spmd/ReshardSearch.h"

namespace mgpu::conversion {

using namespace mlir;

/// Whether the parts of `dim` have the same size, before and after.
bool ReshardSearch::isEven(unsigned dim) const {
  bool keepsBounds = request.from.getOffsets().empty() ||
                     request.from.getOffsets()[dim].empty();
  return keepsBounds && target[dim].bounds.empty() && !target[dim].hasHalo() &&
         full[dim] % request.to.parts(dim) == 0 &&
         full[dim] % request.from.parts(dim) == 0;
}

/// Whether `dim` is to be cut along `axes` next, with nothing undone before.
bool ReshardSearch::wants(const ReshardPlace &at, unsigned dim,
                          ArrayRef<int64_t> axes) const {
  ArrayRef<int64_t> have = at.cuts[dim].axes, want = target[dim].axes;
  return want.size() >= have.size() + axes.size() &&
         want.take_front(have.size()) == have &&
         want.slice(have.size(), axes.size()) == axes;
}

/// Whether an axis cuts something, or has partial results along it.
bool ReshardSearch::isTaken(const ReshardPlace &at, int64_t axis) const {
  auto has = [&](const Axes &axes) { return llvm::is_contained(axes, axis); };
  return llvm::any_of(at.cuts, [&](const Cut &cut) { return has(cut.axes); }) ||
         llvm::any_of(ArrayRef(reductions).drop_front(at.reduced), has);
}

/// The bytes of the largest part.
int64_t ReshardSearch::bytesAt(const ReshardPlace &at) const {
  SmallVector<int64_t> sizes;
  for (auto [cut, size] : llvm::zip(at.cuts, full)) {
    int64_t parts = countAlong(request.to.getMesh(), cut.axes);
    int64_t most = llvm::divideCeil(size, parts);
    for (size_t k = 1; k < cut.bounds.size(); ++k)
      most = std::max(k == 1 ? 0 : most, cut.bounds[k] - cut.bounds[k - 1]);
    sizes.push_back(std::min(most + cut.low + cut.high, size));
  }
  return bytesOf(request.full, sizes);
}

/// One after the other those axes that some dimension is to be cut along, then
/// the others together.
void ReshardSearch::planReductions(ReshardPlace start) {
  Axes rest = request.partial;
  bool mustMove = llvm::any_of(
      llvm::seq<unsigned>(0, unsigned(full.size())), [&](unsigned dim) {
        return start.cuts[dim] != target[dim] && !isEven(dim) &&
               !start.cuts[dim].axes.empty();
      });
  for (unsigned dim = 0; !mustMove && dim < full.size(); ++dim)
    for (auto *axis = rest.begin(); axis != rest.end();) {
      if (!isEven(dim) || !wants(start, dim, *axis)) {
        ++axis;
        continue;
      }
      reductions.push_back({*axis});
      start.cuts[dim].axes.push_back(*axis);
      rest.erase(axis);
      axis = rest.begin();
    }
  if (!rest.empty())
    reductions.push_back(rest);
}

/// Cuts one dimension further of what each device has whole.
bool ReshardSearch::sliceOne(ReshardPlace &at) const {
  for (unsigned dim = 0; dim < full.size(); ++dim) {
    Cut &cut = at.cuts[dim];
    if (cut.axes.size() >= target[dim].axes.size() || !wants(at, dim, {}))
      continue;
    Axes next(ArrayRef(target[dim].axes).drop_front(cut.axes.size()));
    if (isEven(dim)) {
      auto *taken =
          llvm::find_if(next, [&](int64_t axis) { return isTaken(at, axis); });
      next.erase(taken, next.end());
      if (next.empty())
        continue;
      llvm::append_range(cut.axes, next);
      at.steps.push_back({ReshardStep::Slice, dim, 0, next});
      return true;
    }
    // Parts of different sizes are not cut again, so that is done at once.
    if (!cut.axes.empty() ||
        llvm::any_of(next, [&](int64_t axis) { return isTaken(at, axis); }))
      continue;
    at.steps.push_back({ReshardStep::Slice, dim, 0, next});
    if (!target[dim].bounds.empty() || target[dim].hasHalo())
      at.steps.back().ranges = request.to.rangesOf(dim, full[dim]);
    cut = target[dim];
    return true;
  }
  return false;
}

void ReshardSearch::slice(ReshardPlace &at) const {
  while (sliceOne(at))
    ;
}

} // namespace mgpu::conversion
