// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Layouts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <map>
#include <set>

namespace mgpu::conversion {

using namespace mlir;

static bool hasStaticShape(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape();
}

FailureOr<SmallVector<int64_t>> meshOf(func::FuncOp function) {
  SmallVector<spmd::LayoutAttr> layouts;
  for (BlockArgument argument : function.getArguments())
    layouts.push_back(spmd::layoutOf(function, argument));
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    layouts.push_back(spmd::layoutOfResult(function, index));
  function.walk(
      [&](spmd::LayoutConstraintOp op) { layouts.push_back(op.getLayout()); });
  SmallVector<int64_t> mesh;
  for (spmd::LayoutAttr layout : layouts) {
    if (!layout || (ArrayRef(mesh) == layout.getMesh() && !layout.getFirst()))
      continue;
    if (!mesh.empty() || layout.getFirst())
      return function.emitError()
             << "has layouts on two meshes, or on some of the devices; with "
                "layout constraints there must be one mesh, of all";
    mesh.assign(layout.getMesh().begin(), layout.getMesh().end());
  }
  return mesh;
}

Layouts::Layouts(func::FuncOp function, ArrayRef<int64_t> mesh,
                 DenseSet<Operation *> deviceCode)
    : mesh(mesh), deviceCode(std::move(deviceCode)) {
  takeGroups(function);
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isDeviceCode(op))
      return WalkResult::skip();
    collectRules(op);
    return WalkResult::advance();
  });
  SmallVector<Given> all = givenIn(function);
  std::set<int64_t> rounds{0};
  for (const Given &asked : all)
    rounds.insert(asked.priorities.begin(), asked.priorities.end());
  for (int64_t round : rounds) {
    for (const Given &asked : all)
      take(asked, round);
    propagate();
  }
}

/// Each change adds an axis to a value, so this ends. Operations without a sum
/// come first: they cut alike what sums then choose between.
void Layouts::propagate() {
  auto hasSum = [](const FactorRule &rule) {
    return llvm::any_of(rule.factors,
                        [](const Factor &factor) { return factor.isReduced; });
  };
  for (bool isLast : {false, true}) {
    bool isChanged = true;
    while (isChanged) {
      isChanged = false;
      for (const FactorRule &rule : rules)
        isChanged |= (isLast || !hasSum(rule)) && apply(rule);
      for (const FactorRule &rule : llvm::reverse(rules))
        isChanged |= (isLast || !hasSum(rule)) && apply(rule);
    }
  }
}

spmd::LayoutAttr Layouts::of(Value value) const {
  if (spmd::LayoutAttr layout = given(value))
    return layout;
  SmallVector<Axes> whole(cast<RankedTensorType>(value.getType()).getRank());
  return layoutOfCuts(value.getContext(), mesh, whole);
}

/// Values of groups that share one are of one group. A value that asks for
/// another layout than one before it in the group keeps what it asks for.
void Layouts::takeGroups(func::FuncOp function) {
  std::map<int64_t, Value> leaders;
  std::map<int64_t, spmd::LayoutAttr> asked;
  function.walk([&](spmd::SameLayoutOp op) {
    if (auto own = op.getTensor().getDefiningOp<spmd::LayoutConstraintOp>();
        own &&
        asked.try_emplace(op.getGroup(), own.getLayout()).first->second !=
            own.getLayout())
      return;
    Value old = key(op.getTensor());
    Value leader = key(leaders.try_emplace(op.getGroup(), old).first->second);
    for (auto &[value, known] : groups)
      if (known == old)
        known = leader;
    groups[op.getTensor()] = leader;
    groups[old] = leader;
  });
}

SmallVector<Layouts::Given> Layouts::givenIn(func::FuncOp function) const {
  SmallVector<Given> all;
  for (BlockArgument argument : function.getArguments())
    if (auto layout = spmd::layoutOf(function, argument))
      all.push_back({argument, layout, {}, {}});
  function.walk([&](spmd::LayoutConstraintOp op) {
    ArrayRef<int64_t> none;
    all.push_back({op.getResult(), op.getLayout(), op.getOpen().value_or(none),
                   op.getPriorities().value_or(none)});
  });
  return all;
}

/// Applies the constraints of one priority round: only dimensions of this
/// priority are cut, and only along axes that are still free. Halos ask for
/// nothing: they are made where they are read.
void Layouts::take(const Given &asked, int64_t round) {
  Value value = key(asked.value);
  SmallVector<Cut> has = conversion::cutsOf(of(value));
  SmallVector<Cut> wanted = conversion::cutsOf(asked.layout);
  SmallVector<int64_t> &dims = open[value];
  for (auto [dim, cut] : llvm::enumerate(wanted)) {
    if (asked.priorityOf(dim) != round)
      continue;
    has[dim] = {};
    if (llvm::is_contained(asked.open, dim))
      dims.push_back(dim);
    auto *taken = llvm::find_if(
        cut.axes, [&](int64_t axis) { return isUsed(has, axis); });
    if (taken != cut.axes.end()) {
      cut.axes.erase(taken, cut.axes.end());
      cut.bounds.clear();
    }
    has[dim] = {cut.axes, cut.bounds, 0, 0};
  }
  layouts[value] = layoutOfCuts(value.getContext(), mesh, has);
}

/// Loops and branches hand tensors on; what is before a constraint, and what is
/// returned, had best be cut as that asks.
void Layouts::collectRules(Operation *op) {
  auto same = [&](ArrayRef<Value> operands, ArrayRef<Value> results) {
    if (hasStaticShape(operands[0]))
      rules.push_back(sameRule(operands, results));
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](spmd::LayoutConstraintOp each) {
        same({each.getTensor()}, {each.getResult()});
      })
      .Case([&](scf::ForOp loop) {
        for (auto [init, argument, next, result] :
             llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults()))
          same({init, next}, {argument, result});
      })
      .Case([&](scf::IfOp branch) {
        if (branch.elseBlock())
          for (auto [first, second, result] :
               llvm::zip(branch.thenYield().getOperands(),
                         branch.elseYield().getOperands(), branch.getResults()))
            same({first, second}, {result});
      })
      .Default([&](Operation *) {
        FactorRule rule = factorRuleOf(op);
        if (!rule.factors.empty())
          rules.push_back(std::move(rule));
      });
}

/// A part of the factor that a window reads from.
static Cut windowCut(const Window &window, const Cut &cut, int64_t parts,
                     int64_t factorSize, int64_t size) {
  Cut out = cut;
  if (cut.axes.empty())
    return out;
  SmallVector<int64_t> bounds =
      cut.bounds.empty() ? equalBounds(factorSize, parts) : cut.bounds;
  for (int64_t &bound : MutableArrayRef(bounds).drop_front().drop_back())
    bound = window.offset + bound * window.stride;
  bounds.back() = size;
  out.bounds = bounds == equalBounds(size, parts) ? SmallVector<int64_t>()
                                                  : std::move(bounds);
  out.high = std::max<int64_t>(window.reach + 1 - window.stride, 0);
  return out;
}

/// The cut of a factor that reads `window` of a dimension which is cut so:
/// where parts of both fit best.
static Cut factorCut(const Window &window, const Cut &cut, int64_t parts,
                     int64_t factorSize, int64_t size) {
  Cut out{cut.axes, {}, 0, 0};
  SmallVector<int64_t> bounds =
      cut.bounds.empty() ? equalBounds(size, parts) : cut.bounds;
  for (int64_t &bound : MutableArrayRef(bounds).drop_front().drop_back())
    bound = (bound - window.offset - window.reach / 2) / window.stride;
  bounds.back() = factorSize;
  for (int64_t part = 0; part < parts; ++part)
    if (bounds[part + 1] <= bounds[part])
      return out;
  if (bounds != equalBounds(factorSize, parts))
    out.bounds = std::move(bounds);
  return out;
}

spmd::LayoutAttr Layouts::layoutOf(const FactorTensor &tensor,
                                   const FactorRule &rule,
                                   ArrayRef<Cut> cuts) const {
  auto shape = cast<RankedTensorType>(tensor.value.getType()).getShape();
  SmallVector<Cut> split(tensor.dims.size());
  for (auto [dim, factors] : llvm::enumerate(tensor.dims)) {
    if (const Window *window = tensor.windowOf(dim)) {
      const Cut &cut = cuts[factors[0]];
      split[dim] = windowCut(*window, cut, countAlong(mesh, cut.axes),
                             rule.factors[factors[0]].size, shape[dim]);
    } else if (factors.size() == 1) {
      split[dim] = cuts[factors[0]];
    } else {
      for (unsigned factor : factors)
        llvm::append_range(split[dim].axes, cuts[factor].axes);
    }
  }
  return layoutOfCuts(tensor.value.getContext(), mesh, split);
}

bool Layouts::isUsed(ArrayRef<Cut> cuts, int64_t axis) {
  return llvm::any_of(
      cuts, [&](const Cut &cut) { return llvm::is_contained(cut.axes, axis); });
}

/// Takes the cut of a dimension with bounds of its own, or with a window, where
/// it can be had as it is.
void Layouts::addWhole(const Factor &factor, const Window *window,
                       const Cut &cut, int64_t size, unsigned index,
                       SmallVectorImpl<Cut> &cuts) const {
  int64_t parts = countAlong(mesh, cut.axes);
  if (!cuts[index].axes.empty() || factor.size < parts ||
      llvm::any_of(cut.axes, [&](int64_t axis) { return isUsed(cuts, axis); }))
    return;
  cuts[index] = window ? factorCut(*window, cut, parts, factor.size, size)
                       : Cut{cut.axes, cut.bounds, 0, 0};
}

/// Adds the cuts of `tensor` to those of the factors, as far as no other factor
/// has the axis.
void Layouts::addCuts(const FactorRule &rule, const FactorTensor &tensor,
                      SmallVectorImpl<Cut> &cuts) const {
  spmd::LayoutAttr layout = given(tensor.value);
  if (!layout)
    return;
  auto shape = cast<RankedTensorType>(tensor.value.getType()).getShape();
  SmallVector<Cut> split = conversion::cutsOf(layout);
  for (auto [dim, factors] : llvm::enumerate(tensor.dims)) {
    ArrayRef<int64_t> axes = split[dim].axes;
    const Window *window = tensor.windowOf(dim);
    for (unsigned factor : factors) {
      const Factor &each = rule.factors[factor];
      bool canCut = !each.isReduced || each.reduction;
      if (window || !split[dim].bounds.empty()) {
        if (canCut && factors.size() == 1 && !axes.empty())
          addWhole(each, window, split[dim], shape[dim], factor, cuts);
        continue;
      }
      int64_t parts = 1;
      size_t taken = 0;
      // Parts of different sizes only where nothing is cut inside them.
      if (factors.size() == 1 && each.size >= countAlong(mesh, axes)) {
        taken = axes.size();
        parts = countAlong(mesh, axes);
      }
      while (taken < axes.size() &&
             each.size % (parts * mesh[axes[taken]]) == 0)
        parts *= mesh[axes[taken++]];
      ArrayRef<int64_t> mine = axes.take_front(taken);
      axes = parts == each.size ? axes.drop_front(taken) : ArrayRef<int64_t>();
      if (!canCut || !cuts[factor].bounds.empty())
        continue;
      for (size_t k = 0; k < mine.size(); ++k) {
        if (k < cuts[factor].axes.size() && cuts[factor].axes[k] == mine[k])
          continue;
        if (k != cuts[factor].axes.size() || isUsed(cuts, mine[k]))
          break;
        cuts[factor].axes.push_back(mine[k]);
      }
    }
  }
}

/// A dimension of several factors is cut in equal parts only where all of the
/// outer factor is cut before the inner one.
void Layouts::keepLegal(const FactorRule &rule,
                        SmallVectorImpl<Cut> &cuts) const {
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const FactorTensor &tensor : *tensors)
      for (const auto &factors : tensor.dims) {
        bool isWhole = true; // all before are cut to single elements
        for (unsigned factor : factors) {
          int64_t size = rule.factors[factor].size;
          Cut &cut = cuts[factor];
          if (!isWhole ||
              (factors.size() > 1 &&
               (size % countAlong(mesh, cut.axes) != 0 || !cut.bounds.empty())))
            cut = {};
          isWhole &= countAlong(mesh, cut.axes) == size;
        }
      }
}

/// Bytes that a device receives for the operands, and to give the results the
/// layouts that they have so far.
int64_t Layouts::costOf(const FactorRule &rule, ArrayRef<Cut> cuts) const {
  int64_t cost = 0;
  auto add = [&](Value value, spmd::LayoutAttr from, spmd::LayoutAttr to,
                 ArrayRef<int64_t> partial) {
    ReshardRequest request{cast<RankedTensorType>(value.getType()), from, to,
                           Axes(partial)};
    cost += bytesReceived(request, reshards.find(request));
  };
  for (const FactorTensor &operand : rule.operands)
    if (spmd::LayoutAttr layout = given(operand.value))
      add(operand.value, layout, layoutOf(operand, rule, cuts), {});
  Axes partial;
  for (auto [factor, cut] : llvm::zip(rule.factors, cuts))
    if (factor.isReduced)
      llvm::append_range(partial, cut.axes);
  for (const FactorTensor &result : rule.results) {
    spmd::LayoutAttr layout = layoutOf(result, rule, cuts);
    spmd::LayoutAttr wanted = given(result.value);
    add(result.value, layout, wanted ? wanted : layout, partial);
  }
  return cost;
}

/// The cuts that the tensors ask for, what comes first before what follows.
SmallVector<Cut> Layouts::cutsBy(const FactorRule &rule,
                                 ArrayRef<const FactorTensor *> tensors) const {
  SmallVector<Cut> cuts(rule.factors.size());
  for (const FactorTensor *each : tensors)
    addCuts(rule, *each, cuts);
  keepLegal(rule, cuts);
  return cuts;
}

/// Whether an axis that cuts the sum over `factor` is one that a tensor has
/// along an index of a result.
bool Layouts::keepsOthersFrom(const FactorRule &rule, ArrayRef<Cut> cuts,
                              unsigned factor) const {
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const FactorTensor &tensor : *tensors)
      if (spmd::LayoutAttr layout = given(tensor.value))
        for (auto [dim, factors] : llvm::enumerate(tensor.dims))
          if (factors.size() == 1 && !rule.factors[factors[0]].isReduced)
            for (int64_t axis : layout.getSplit()[dim].asArrayRef())
              if (llvm::is_contained(cuts[factor].axes, axis))
                return true;
  return false;
}

SmallVector<Layouts::Way> Layouts::waysOf(const FactorRule &rule) const {
  SmallVector<const FactorTensor *> tensors;
  for (const FactorTensor &each : rule.results)
    tensors.push_back(&each);
  for (const FactorTensor &each : rule.operands)
    tensors.push_back(&each);
  SmallVector<Way> ways;
  auto consider = [&](SmallVector<Cut> cuts) {
    if (llvm::none_of(ways, [&](const Way &way) { return way.cuts == cuts; }))
      ways.push_back({cuts, costOf(rule, cuts)});
  };
  for (const FactorTensor *first : tensors) {
    if (!given(first->value))
      continue;
    SmallVector<const FactorTensor *> order{first};
    llvm::append_range(order, tensors);
    SmallVector<Cut> cuts = cutsBy(rule, order);
    consider(cuts);
    for (unsigned factor = 0; factor < cuts.size(); ++factor) {
      if (!rule.factors[factor].isReduced ||
          !keepsOthersFrom(rule, cuts, factor))
        continue;
      FactorRule whole = rule;
      whole.factors[factor].reduction = std::nullopt;
      consider(cutsBy(whole, order));
    }
  }
  if (ways.empty())
    ways.push_back({SmallVector<Cut>(rule.factors.size()), 0});
  auto *best = llvm::min_element(ways, [](const Way &one, const Way &other) {
    return one.bytes < other.bytes;
  });
  std::rotate(ways.begin(), best, best + 1);
  return ways;
}

/// Whether an axis of dimension `dim` cuts another dimension too.
static bool hasOthersAxis(ArrayRef<Cut> cuts, unsigned dim) {
  for (unsigned other = 0; other < cuts.size(); ++other)
    for (int64_t axis : cuts[other].axes)
      if (other != dim && llvm::is_contained(cuts[dim].axes, axis))
        return true;
  return false;
}

/// Whether that changed the layout of the tensor: it is cut further, where the
/// program leaves that open. Halos are made where they are read.
bool Layouts::refine(const FactorTensor &tensor, const FactorRule &rule,
                     ArrayRef<Cut> cuts) {
  SmallVector<Cut> before = conversion::cutsOf(of(tensor.value));
  SmallVector<Cut> after = conversion::cutsOf(layoutOf(tensor, rule, cuts));
  auto fixed = open.find(key(tensor.value));
  for (unsigned dim = 0; dim < before.size(); ++dim) {
    after[dim].low = after[dim].high = 0;
    if ((fixed != open.end() && !llvm::is_contained(fixed->second, dim)) ||
        before[dim].axes == after[dim].axes)
      after[dim] = before[dim];
  }
  for (unsigned dim = 0; dim < before.size(); ++dim)
    if (after[dim] != before[dim] && hasOthersAxis(after, dim))
      after[dim] = before[dim];
  if (before == after)
    return false;
  for (auto [had, has] : llvm::zip(before, after))
    if (ArrayRef(has.axes).take_front(had.axes.size()) != ArrayRef(had.axes) ||
        (had != has && !had.axes.empty() &&
         !(had.bounds.empty() && has.bounds.empty())))
      return false;
  layouts[key(tensor.value)] =
      layoutOfCuts(tensor.value.getContext(), mesh, after);
  return true;
}

/// Operands are not cut along a sum that takes axes from a result: where it is
/// cut in the end, that is a slice. The result may have them: it is scattered.
bool Layouts::apply(const FactorRule &rule) {
  SmallVector<Cut> cuts = waysOf(rule).front().cuts;
  SmallVector<unsigned> whole; // sums
  for (unsigned factor = 0; factor < cuts.size(); ++factor)
    if (rule.factors[factor].isReduced && keepsOthersFrom(rule, cuts, factor))
      whole.push_back(factor);
  for (unsigned factor : whole)
    cuts[factor] = {};
  bool isChanged = false;
  for (const FactorTensor &each : rule.operands)
    isChanged |= refine(each, rule, cuts);
  if (!whole.empty()) {
    FactorRule scattered = rule;
    for (unsigned factor : whole)
      scattered.factors[factor].reduction = std::nullopt;
    for (const auto *tensors : {&rule.results, &rule.operands})
      for (const FactorTensor &each : *tensors)
        addCuts(scattered, each, cuts);
    keepLegal(scattered, cuts);
  }
  for (const FactorTensor &each : rule.results)
    isChanged |= refine(each, rule, cuts);
  return isChanged;
}

} // namespace mgpu::conversion
