// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/KernelSpace.h"

#include "kernels/abi/KernelImage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace mgpu::kernels {

using P = KernelParameter;

Dim3 KernelSpace::covered(const KernelConfig &config) const {
  auto along = [&](size_t axis) {
    return uint32_t(std::clamp<int64_t>(covers[axis].of(config), 1,
                                        std::numeric_limits<uint32_t>::max()));
  };
  return {along(0), along(1), along(2)};
}

Dim3 KernelSpace::launchGrid(const KernelConfig &config,
                             Dim3 sourceGrid) const {
  const LaunchBlocks blocks = launchBlocks(sourceGrid, block, covered(config),
                                           {config[P::ClusterX], 1, 1});
  return {uint32_t(blocks.x), uint32_t(blocks.y), uint32_t(blocks.z)};
}

void KernelSpace::offerDefaults(const std::string &why) {
  axes.resize(numKernelParameters);
  for (size_t k = 0; k < numKernelParameters; ++k)
    offer(P(k), {}, why);
}

void KernelSpace::offer(P parameter, std::set<uint32_t> values,
                        const std::string &why) {
  values.insert(defaults[parameter]);
  choice(parameter) = {std::string(toString(parameter)),
                       {values.begin(), values.end()},
                       values.size() == 1 ? why : ""};
}

void KernelSpace::requireLaunch() {
  constexpr uint32_t mostThreads = 1024; // of a block, of every GPU
  constexpr uint32_t lanes = 32;
  const Formula all = Formula(P::BlockX) * P::BlockY * P::BlockZ;
  require("threads of a block", all, Relation::AtMost, mostThreads,
          "$left threads of a block; at most $right");
  if (target == KernelTarget::Cuda && reshapable)
    require("whole warps", all, Relation::MultipleOf, lanes,
            "$left threads of a block leave lanes of a warp of $right without "
            "work");
  const uint32_t *blocks = &maxGrid.x, *threads = &block.x;
  for (size_t k = 0; k < 3; ++k) {
    const int64_t extent = int64_t(blocks[k]) * threads[k];
    const bool hasClusters = k == 0 && choice(P::ClusterX).values.size() > 1;
    // A block no larger than the default one is not refused: a product of one
    // row has tiles of many, and choices among them.
    const int64_t most =
        std::max({int64_t(threads[k]), 2 * extent - 1, covers[k].of(defaults)});
    require("no more than the launch",
            hasClusters ? covers[k] * P::ClusterX : covers[k], Relation::AtMost,
            most,
            fmt::format("a {} covers $left threads along {} of a launch of {}: "
                        "half of it or more has no work",
                        hasClusters ? "cluster of blocks" : "block", "xyz"[k],
                        extent));
  }
}

void KernelSpace::requireStaticShared() {
  constexpr uint32_t most = 48 * 1024;
  require("static shared memory", sharedBytes, Relation::AtMost, most,
          "$left bytes of tiles; at most $right without asking the GPU");
}

static bool holds(const KernelConstraint &rule, const KernelConfig &config) {
  const int64_t left = rule.left.of(config), right = rule.right.of(config);
  switch (rule.relation) {
  case Relation::AtMost:
    return left <= right;
  case Relation::Equal:
    return left == right;
  case Relation::MultipleOf:
    return right == 0 || left % right == 0;
  case Relation::ZeroTogether:
    return (left == 0) == (right == 0);
  }
  return false;
}

static std::string reasonOf(const KernelConstraint &rule,
                            const KernelConfig &config) {
  std::string text = rule.reason;
  for (auto [word, side] :
       {std::pair("$left", &rule.left), {"$right", &rule.right}})
    if (size_t at = text.find(word); at != text.npos)
      text.replace(at, std::string_view(word).size(),
                   std::to_string(side->of(config)));
  return text;
}

const KernelConstraint *KernelSpace::broken(const KernelConfig &config) const {
  const bool isDefault = config == defaults;
  for (const KernelConstraint &rule : constraints)
    if ((!isDefault || rule.bindsDefaults) && !holds(rule, config))
      return &rule;
  return nullptr;
}

Result<void> KernelSpace::check(const KernelConfig &config) const {
  const bool isDefault = config == defaults;
  if (!isDefault && config.numAxes() != axes.size())
    return fail(ErrorKind::Invalid,
                fmt::format("{} values are given for {} tunables",
                            config.numTunables, tunables().size()));
  for (size_t k = 0; k < axes.size() && !isDefault; ++k) {
    const auto &[name, values, why] = axes[k];
    if (std::ranges::find(values, config.at(k)) == values.end())
      return fail(ErrorKind::Invalid,
                  fmt::format("{} = {} is not one of {}{}{}", name,
                              config.at(k), fmt::join(values, ", "),
                              why.empty() ? "" : ": ", why));
  }
  if (const KernelConstraint *rule = broken(config))
    return fail(ErrorKind::Invalid, reasonOf(*rule, config));
  return {};
}

uint64_t KernelSpace::productSize() const {
  uint64_t size = 1;
  bool isTooLarge = false;
  for (const KernelAxis &axis : axes)
    isTooLarge |= __builtin_mul_overflow(size, axis.values.size(), &size);
  return isTooLarge ? UINT64_MAX : size;
}

std::vector<KernelConfig>
KernelSpace::legal(uint64_t limit, std::vector<KernelRefusal> *refused) const {
  std::vector<KernelConfig> found;
  std::vector<size_t> at(axes.size());
  KernelConfig config;
  config.numTunables = uint32_t(tunables().size());
  while (true) {
    for (size_t k = 0; k < at.size(); ++k)
      config.at(k) = axes[k].values[at[k]];
    const KernelConstraint *rule = broken(config);
    if (!rule) {
      if (found.size() == limit)
        return found;
      found.push_back(config);
    } else if (refused) {
      auto same = std::ranges::find(*refused, rule->rule, &KernelRefusal::rule);
      if (same == refused->end())
        same = refused->insert(
            same, {rule->rule, 0, config, reasonOf(*rule, config)});
      ++same->count;
    }
    size_t k = at.size();
    while (k > 0 && ++at[k - 1] == axes[k - 1].values.size())
      at[--k] = 0;
    if (k == 0)
      return found;
  }
}

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
