// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/KernelSpace.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace mgpu::kernels {

using P = KernelParameter;

namespace {

/// A narrowed space as it grows: what its axes may still take.
class Narrowing {
public:
  Narrowing(const KernelSpace &whole, const KernelConfig &around, uint64_t most,
            const std::string &reason)
      : whole(whole), most(most), space(whole) {
    space.defaults = around;
    for (size_t k = 0; k < space.axes.size(); ++k) {
      space.axes[k].values = {around.at(k)};
      space.axes[k].reason = reason;
    }
  }

  /// Adds the next value of each of the axes; false where that gives no
  /// configuration, or too many.
  bool widen(std::span<const size_t> axes) {
    KernelSpace wider = space;
    for (size_t axis : axes) {
      const std::vector<uint32_t> &all = whole.axes[axis].values;
      std::vector<uint32_t> &taken = wider.axes[axis].values;
      std::optional<uint32_t> next = nearest(all, taken);
      if (!next)
        return false;
      wider.axes[axis].reason.clear();
      taken.insert(axis < numKernelParameters
                       ? std::upper_bound(taken.begin(), taken.end(), *next)
                       : taken.end(),
                   *next);
    }
    // A space is the product of its axes, so points are many before they are
    // too many; beyond this nobody looks at each.
    constexpr uint64_t mostPoints = 1 << 16;
    if (wider.productSize() > mostPoints)
      return false;
    const size_t legal = wider.legal(most + 1).size();
    if (legal > most || legal <= count)
      return false;
    count = legal;
    space = std::move(wider);
    return true;
  }

  KernelSpace take() { return std::move(space); }

private:
  /// The value not taken that is next to those taken; of two, the larger.
  static std::optional<uint32_t> nearest(const std::vector<uint32_t> &all,
                                         const std::vector<uint32_t> &taken) {
    std::optional<uint32_t> found;
    ptrdiff_t distance = 0;
    for (size_t k = all.size(); k-- > 0;) {
      if (std::find(taken.begin(), taken.end(), all[k]) != taken.end())
        continue;
      const ptrdiff_t away = std::abs(
          ptrdiff_t(k) -
          (std::find(all.begin(), all.end(), taken.front()) - all.begin()));
      if (!found || away < distance) {
        found = all[k];
        distance = away;
      }
    }
    return found;
  }

  const KernelSpace &whole;
  uint64_t most, count = 1;
  KernelSpace space;
};

} // namespace

KernelSpace narrowed(const KernelSpace &space, const KernelConfig &around,
                     uint64_t most, const std::string &reason) {
  Narrowing narrowing(space, around, most, reason);
  // The axes that usually change a kernel's time most come first; the sizes of
  // a tile are none or both.
  std::vector<std::vector<size_t>> axes;
  for (std::initializer_list<P> group : {std::initializer_list<P>{P::Vector},
                                         {P::Items},
                                         {P::TileX, P::TileY},
                                         {P::TileX},
                                         {P::TileY},
                                         {P::Unroll},
                                         {P::BlockX},
                                         {P::BlockY},
                                         {P::BlockZ},
                                         {P::MinBlocks},
                                         {P::ClusterX}}) {
    axes.emplace_back();
    for (P parameter : group)
      axes.back().push_back(size_t(parameter));
  }
  for (size_t k = numKernelParameters; k < space.axes.size(); ++k)
    axes.push_back({k});
  for (bool grew = true; grew;) {
    grew = false;
    for (const std::vector<size_t> &each : axes)
      grew |= narrowing.widen(each);
  }
  return narrowing.take();
}

} // namespace mgpu::kernels
