// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/spmd/Layouts.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

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
    if (layout && !layout.getOffsets().empty())
      return LogicalResult(ir::emitUnsupported(function)
                           << "has layouts with 'offsets'; with layout "
                              "constraints a dimension is cut in parts as "
                              "equal as they can be");
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

Layouts::Layouts(func::FuncOp function, ArrayRef<int64_t> mesh) : mesh(mesh) {
  takeGiven(function);
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { collectRules(op); });
  // Each change adds an axis to a value, so this ends.
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    for (const FactorRule &rule : rules)
      isChanged |= apply(rule);
    for (const FactorRule &rule : llvm::reverse(rules))
      isChanged |= apply(rule);
  }
}

spmd::LayoutAttr Layouts::of(Value value) const {
  if (spmd::LayoutAttr layout = layouts.lookup(value))
    return layout;
  SmallVector<Axes> whole(cast<RankedTensorType>(value.getType()).getRank());
  return layoutOfCuts(value.getContext(), mesh, whole);
}

void Layouts::takeGiven(func::FuncOp function) {
  auto take = [&](Value value, spmd::LayoutAttr layout,
                  ArrayRef<int64_t> dims = {}) {
    layouts[value] = layout;
    open[value] = SmallVector<int64_t>(dims);
  };
  for (BlockArgument argument : function.getArguments())
    if (auto layout = spmd::layoutOf(function, argument))
      take(argument, layout);
  function.walk([&](spmd::LayoutConstraintOp op) {
    take(op.getResult(), op.getLayout(),
         op.getOpen().value_or(ArrayRef<int64_t>()));
  });
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

spmd::LayoutAttr Layouts::layoutOf(const FactorTensor &tensor,
                                   ArrayRef<Axes> cuts) const {
  SmallVector<Axes> split;
  for (const auto &factors : tensor.dims) {
    split.emplace_back();
    for (unsigned factor : factors)
      llvm::append_range(split.back(), cuts[factor]);
  }
  return layoutOfCuts(tensor.value.getContext(), mesh, split);
}

/// Adds the cuts of `tensor` to those of the factors, as far as no other factor
/// has the axis.
void Layouts::addCuts(const FactorRule &rule, const FactorTensor &tensor,
                      SmallVectorImpl<Axes> &cuts) const {
  spmd::LayoutAttr layout = layouts.lookup(tensor.value);
  if (!layout)
    return;
  for (auto [dim, factors] : llvm::enumerate(tensor.dims)) {
    ArrayRef<int64_t> axes = layout.getSplit()[dim].asArrayRef();
    for (unsigned factor : factors) {
      const Factor &each = rule.factors[factor];
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
      if (each.isReduced && !each.reduction)
        continue;
      for (size_t k = 0; k < mine.size(); ++k) {
        if (k < cuts[factor].size() && cuts[factor][k] == mine[k])
          continue;
        bool isUsed = llvm::any_of(cuts, [&](const Axes &others) {
          return llvm::is_contained(others, mine[k]);
        });
        if (k != cuts[factor].size() || isUsed)
          break;
        cuts[factor].push_back(mine[k]);
      }
    }
  }
}

/// A dimension of several factors is cut in equal parts only where all of the
/// outer factor is cut before the inner one.
void Layouts::keepLegal(const FactorRule &rule,
                        SmallVectorImpl<Axes> &cuts) const {
  for (const auto *tensors : {&rule.operands, &rule.results})
    for (const FactorTensor &tensor : *tensors)
      for (const auto &factors : tensor.dims) {
        bool isWhole = true; // all before are cut to single elements
        for (unsigned factor : factors) {
          int64_t size = rule.factors[factor].size;
          if (!isWhole ||
              (factors.size() > 1 && size % countAlong(mesh, cuts[factor])))
            cuts[factor].clear();
          isWhole &=
              countAlong(mesh, cuts[factor]) == rule.factors[factor].size;
        }
      }
}

/// Bytes that a device receives for the operands, and to give the results the
/// layouts that they have so far.
int64_t Layouts::costOf(const FactorRule &rule, ArrayRef<Axes> cuts) const {
  int64_t cost = 0;
  auto add = [&](Value value, spmd::LayoutAttr from, spmd::LayoutAttr to,
                 ArrayRef<int64_t> partial) {
    int64_t parts = 1;
    for (const Axes &axes : conversion::cutsOf(from))
      parts *= countAlong(mesh, axes);
    auto type = cast<RankedTensorType>(value.getType());
    cost += bytesReceived(planReshard(type.getShape(), from, to, partial), mesh,
                          bytesOf(type, type.getShape()) / parts);
  };
  for (const FactorTensor &operand : rule.operands)
    if (spmd::LayoutAttr layout = layouts.lookup(operand.value))
      add(operand.value, layout, layoutOf(operand, cuts), {});
  Axes partial;
  for (auto [factor, axes] : llvm::zip(rule.factors, cuts))
    if (factor.isReduced)
      llvm::append_range(partial, axes);
  for (const FactorTensor &result : rule.results) {
    spmd::LayoutAttr layout = layoutOf(result, cuts);
    spmd::LayoutAttr wanted = layouts.lookup(result.value);
    add(result.value, layout, wanted ? wanted : layout, partial);
  }
  return cost;
}

SmallVector<Axes> Layouts::cutsOf(const FactorRule &rule) const {
  SmallVector<const FactorTensor *> tensors;
  for (const FactorTensor &each : rule.results)
    tensors.push_back(&each);
  for (const FactorTensor &each : rule.operands)
    tensors.push_back(&each);
  SmallVector<Axes> best(rule.factors.size());
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const FactorTensor *first : tensors) { // it decides before the others
    if (!layouts.contains(first->value))
      continue;
    SmallVector<Axes> cuts(rule.factors.size());
    addCuts(rule, *first, cuts);
    for (const FactorTensor *each : tensors)
      addCuts(rule, *each, cuts);
    keepLegal(rule, cuts);
    if (int64_t cost = costOf(rule, cuts); cost < least) {
      least = cost;
      best = cuts;
    }
  }
  return best;
}

/// Whether that changed the layout of the tensor: it is cut further, where the
/// program leaves that open.
bool Layouts::refine(const FactorTensor &tensor, ArrayRef<Axes> cuts) {
  spmd::LayoutAttr old = of(tensor.value);
  SmallVector<Axes> before = conversion::cutsOf(old);
  SmallVector<Axes> after = conversion::cutsOf(layoutOf(tensor, cuts));
  if (auto given = open.find(tensor.value); given != open.end()) {
    for (unsigned dim = 0; dim < before.size(); ++dim)
      if (!llvm::is_contained(given->second, dim))
        after[dim] = before[dim];
  }
  if (before == after)
    return false;
  for (auto [had, has] : llvm::zip(before, after))
    if (ArrayRef(has).take_front(had.size()) != ArrayRef(had))
      return false;
  layouts[tensor.value] = layoutOfCuts(tensor.value.getContext(), mesh, after);
  return true;
}

bool Layouts::apply(const FactorRule &rule) {
  SmallVector<Axes> cuts = cutsOf(rule);
  bool isChanged = false;
  for (const FactorTensor &each : rule.operands)
    isChanged |= refine(each, cuts);
  for (const FactorTensor &each : rule.results)
    isChanged |= refine(each, cuts);
  return isChanged;
}

} // namespace mgpu::conversion
