// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/PipelineWorks.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_SIMPLIFYFRAGMENTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// A fragment like `op` with these results, operands and attributes, without a
/// body yet.
mpmd::FragmentOp headLike(OpBuilder &b, mpmd::FragmentOp op, TypeRange results,
                          ValueRange operands) {
  auto made = mpmd::FragmentOp::create(
      b, op.getLoc(), results, operands, op.getOrigin(), op.getMeshNameAttr(),
      op.getStageIdAttr(), sdy::TensorShardingPerValueAttr(),
      sdy::TensorShardingPerValueAttr());
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return made;
}

/// Lists by operand and result are read before.
void dropLists(mpmd::FragmentOp op) {
  op->removeAttr("arg_attrs");
  op->removeAttr("res_attrs");
}

/// The shardings of some of the values of a list.
sdy::TensorShardingPerValueAttr
chosen(std::optional<sdy::TensorShardingPerValueAttr> list,
       ArrayRef<unsigned> indices) {
  if (!list)
    return {};
  return sdy::TensorShardingPerValueAttr::get(
      list->getContext(), llvm::map_to_vector(indices, [&](unsigned k) {
        return list->getShardings()[k];
      }));
}

/// Makes fragments without what nobody uses or what is there twice, and gives
/// the work of fragments that nobody asked for to those before or behind them.
class Simplification {
public:
  explicit Simplification(Block &block) : block(block) {}
  void run() {
    for (bool hasChanged = true; hasChanged;) {
      hasChanged = false;
      erased.clear();
      SmallVector<Operation *> ops;
      for (Operation &op : llvm::reverse(block))
        ops.push_back(&op);
      for (Operation *op : ops)
        if (!erased.contains(op))
          hasChanged |= simplify(op);
    }
  }

private:
  bool simplify(Operation *op);
  bool shrink(mpmd::FragmentOp op);
  bool merge(mpmd::FragmentOp op);
  void join(mpmd::FragmentOp first, mpmd::FragmentOp second,
            mpmd::FragmentOp kept);
  bool shortcut(mpmd::TransferOp op);
  void erase(Operation *op) {
    erased.insert(op);
    op->erase();
  }

  Block &block;
  llvm::DenseSet<Operation *> erased;
};

/// Whether it is no part of the program that the user named. A fragment that
/// says how its values are shared stays as it is.
bool isInferred(mpmd::FragmentOp op) {
  return op && op.getOrigin().empty() && !op.getInShardings() &&
         !op.getOutShardings() && !op->hasAttr(mpmd::callCounterName);
}

bool Simplification::simplify(Operation *op) {
  if (auto transfer = dyn_cast<mpmd::TransferOp>(op))
    return shortcut(transfer);
  auto fragment = dyn_cast<mpmd::FragmentOp>(op);
  return fragment && (shrink(fragment) || merge(fragment));
}

/// Drops a transfer that nobody uses, that is there before, or that brings back
/// what is there. One by way of the hosts' memory is what the program wants.
bool Simplification::shortcut(mpmd::TransferOp op) {
  Value same;
  if (auto before = op.getTensor().getDefiningOp<mpmd::TransferOp>())
    if (before.getTensor().getType() == op.getType() &&
        !before.getType().isOnHost())
      same = before.getTensor();
  for (Operation *user : op.getTensor().getUsers())
    if (user != op && isa<mpmd::TransferOp>(user) &&
        user->getResultTypes() == op->getResultTypes() &&
        user->isBeforeInBlock(op))
      same = user->getResult(0);
  if (!op->use_empty() && !same)
    return false;
  if (same)
    op.replaceAllUsesWith(same);
  erase(op);
  return true;
}

/// Drops results that are not used or there twice, what only these needed, and
/// operands that are not used or there twice.
bool Simplification::shrink(mpmd::FragmentOp op) {
  Block &body = op.getRegion().front();
  Operation *end = body.getTerminator();
  if (op->use_empty() && isMemoryEffectFree(op)) {
    erase(op);
    return true;
  }
  SmallVector<unsigned> results, operands;
  llvm::SmallDenseMap<std::pair<Value, Type>, unsigned> given;
  for (auto [k, result] : llvm::enumerate(op->getResults())) {
    if (result.use_empty())
      continue;
    auto [at, isNew] =
        given.try_emplace({end->getOperand(k), result.getType()}, k);
    if (isNew)
      results.push_back(k);
    else
      result.replaceAllUsesWith(op->getResult(at->second));
  }
  bool hasChanged = results.size() < op->getNumResults();
  if (hasChanged)
    end->setOperands(llvm::map_to_vector(
        results, [&](unsigned k) { return end->getOperand(k); }));
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
  llvm::SmallDenseMap<Value, unsigned> taken;
  llvm::BitVector dropped(body.getNumArguments());
  for (auto [k, argument] : llvm::enumerate(body.getArguments())) {
    auto [at, isNew] = taken.try_emplace(op->getOperand(k), k);
    if (!isNew)
      argument.replaceAllUsesWith(body.getArgument(at->second));
    if (argument.use_empty())
      dropped.set(k);
    if (isNew && argument.use_empty())
      taken.erase(op->getOperand(k));
    if (!dropped.test(k))
      operands.push_back(k);
  }
  if (!hasChanged && dropped.none())
    return false;
  OpBuilder b(op);
  auto made = headLike(b, op,
                       llvm::map_to_vector(results,
                                           [&](unsigned k) -> Type {
                                             return op->getResult(k).getType();
                                           }),
                       llvm::map_to_vector(operands, [&](unsigned k) {
                         return op->getOperand(k);
                       }));
  if (auto list = chosen(op.getInShardings(), operands))
    made.setInShardingsAttr(list);
  if (auto list = chosen(op.getOutShardings(), results))
    made.setOutShardingsAttr(list);
  dropLists(made);
  body.eraseArguments(dropped);
  made.getRegion().takeBody(op.getRegion());
  for (auto [k, result] : llvm::enumerate(results))
    op->getResult(result).replaceAllUsesWith(made->getResult(k));
  erase(op);
  return true;
}

/// The one fragment on the same mesh that uses all results; null if there is
/// none.
mpmd::FragmentOp consumerOf(mpmd::FragmentOp op) {
  mpmd::FragmentOp found;
  for (Operation *user : op->getUsers()) {
    auto fragment = dyn_cast<mpmd::FragmentOp>(user);
    if (!fragment || (found && found != fragment) ||
        fragment.getMeshName() != op.getMeshName())
      return {};
    found = fragment;
  }
  return found;
}

/// The last fragment on the same mesh that makes what this one takes, where all
/// else is there before that, and does not come from another mesh.
mpmd::FragmentOp producerOf(mpmd::FragmentOp op) {
  mpmd::FragmentOp last;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (!source)
      continue;
    auto fragment = dyn_cast<mpmd::FragmentOp>(source);
    if (!fragment || fragment.getMeshName() != op.getMeshName())
      return {};
    if (!last || last->isBeforeInBlock(fragment))
      last = fragment;
  }
  return last;
}

bool canTake(mpmd::FragmentOp op) {
  return !op.getInShardings() && !op.getOutShardings();
}

bool Simplification::merge(mpmd::FragmentOp op) {
  if (!isInferred(op))
    return false;
  if (mpmd::FragmentOp before = producerOf(op); before && canTake(before)) {
    join(before, op, before);
    return true;
  }
  if (mpmd::FragmentOp next = consumerOf(op); next && canTake(next)) {
    join(op, next, next);
    return true;
  }
  return false;
}

/// Makes one fragment of two, as and where `kept` is.
void Simplification::join(mpmd::FragmentOp first, mpmd::FragmentOp second,
                          mpmd::FragmentOp kept) {
  OpBuilder b(kept);
  llvm::SetVector<Value> operands;
  for (mpmd::FragmentOp each : {first, second})
    for (Value operand : each->getOperands())
      if (operand.getDefiningOp() != first)
        operands.insert(operand);
  SmallVector<Type> types(first->getResultTypes());
  llvm::append_range(types, second->getResultTypes());
  auto made = headLike(b, kept, types, operands.getArrayRef());
  dropLists(made);
  Block *body = b.createBlock(&made.getRegion());
  IRMapping map; ///< of values on the mesh, and of both bodies'
  for (Value operand : operands)
    map.map(
        operand,
        body->addArgument(
            cast<mpmd::MeshTensorType>(operand.getType()).getGlobalTensorType(),
            operand.getLoc()));
  SmallVector<Value> returned;
  for (mpmd::FragmentOp each : {first, second}) {
    Block &own = each.getRegion().front();
    for (auto [argument, operand] :
         llvm::zip(own.getArguments(), each->getOperands()))
      map.map(argument, map.lookup(operand));
    for (Operation &op : own.without_terminator())
      b.clone(op, map);
    for (auto [result, value] :
         llvm::zip(each->getResults(), own.getTerminator()->getOperands())) {
      map.map(result, map.lookup(value));
      returned.push_back(map.lookup(value));
    }
  }
  mpmd::ReturnOp::create(b, made.getLoc(), returned);
  unsigned k = 0;
  for (mpmd::FragmentOp each : {first, second})
    for (Value result : each->getResults())
      result.replaceAllUsesWith(made->getResult(k++));
  erase(second);
  erase(first);
}

struct SimplifyFragments : impl::SimplifyFragmentsBase<SimplifyFragments> {
  using SimplifyFragmentsBase::SimplifyFragmentsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return markAllAnalysesPreserved();
    Simplification(function.front()).run();
  }
};

} // namespace

} // namespace mgpu::conversion
