// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes that make fragments which the program does not have.
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/MeshAssignment.h"
#include "dialect/conversion/mpmd/PipelineWorks.h"
#include "dialect/conversion/mpmd/PlainOps.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

using namespace mlir;

/// `op`, after the open ones that it uses and that run on `mesh` too.
void MeshAssignment::collect(Operation *op, StringRef mesh, Operations &ops) {
  if (ops.contains(op))
    return;
  for (Value used : usedBy(op)) {
    Operation *source = sourceOf(used).getDefiningOp();
    if (!isOpen(source) || isa<mpmd::NamedComputationOp>(source))
      continue;
    StringRef home = homeOf(sourceOf(used));
    if (home.empty() || home == mesh)
      collect(source, mesh, ops);
  }
  ops.insert(op);
}

/// Whether another operation than `ops`, with their bodies, uses `value`.
static bool isUsedOutside(Value value,
                          const llvm::SetVector<Operation *> &ops) {
  Block *block = value.getParentBlock();
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return !ops.contains(block->findAncestorOpInBlock(*user));
  });
}

/// One fragment for `op` and what it needs.
void MeshAssignment::emitInferred(Operation *op, StringRef mesh) {
  Operations ops;
  collect(op, mesh, ops);
  llvm::SetVector<Value> inputs;
  SmallVector<Value> results;
  for (Operation *each : ops) {
    for (Value used : usedBy(each))
      if (Value source = sourceOf(used);
          !source.getDefiningOp() || !ops.contains(source.getDefiningOp()))
        inputs.insert(source);
    for (Value result : each->getResults())
      if (each == op || isUsedOutside(result, ops))
        results.push_back(result);
  }
  SmallVector<Value> operands;
  for (Value input : inputs)
    operands.push_back(demand(input, mesh));
  SmallVector<Type> types = llvm::map_to_vector(
      results, [&](Value result) { return typeOn(mesh, result); });
  auto fragment = mpmd::FragmentOp::create(
      b, op->getLoc(), types, operands, b.getArrayAttr({}),
      b.getStringAttr(mesh), IntegerAttr(), sdy::TensorShardingPerValueAttr(),
      sdy::TensorShardingPerValueAttr());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&fragment.getRegion());
  IRMapping map;
  for (Value input : inputs)
    map.map(input,
            body->addArgument(globalTypeOf(input.getType()), input.getLoc()));
  for (Operation *each : ops)
    emitBody(each, map);
  mpmd::ReturnOp::create(b, op->getLoc(),
                         llvm::map_to_vector(results, [&](Value result) {
                           return map.lookup(result);
                         }));
  for (auto [result, made] : llvm::zip(results, fragment->getResults()))
    place(result, mesh, made);
}

void MeshAssignment::emitBody(Operation *op, IRMapping &map) {
  for (Value used : usedBy(op))
    map.map(used, map.lookup(sourceOf(used)));
  if (auto reduce = dyn_cast<mpmd::ReduceOp>(op))
    map.map(reduce.getResult(),
            combined(b, reduce, [&](Value each) { return map.lookup(each); }));
  else
    b.clone(*op, map);
}

#define GEN_PASS_DEF_REMATFRAGMENTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// The forward fragments that `user` needs results of, and those of the same
/// work that they need, in order.
SmallVector<Operation *> neededOf(Operation *user,
                                  ArrayRef<Operation *> forward) {
  llvm::SmallSetVector<Operation *, 4> needed;
  auto take = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && llvm::is_contained(forward, source))
        needed.insert(source);
  };
  take(user);
  for (size_t k = 0; k < needed.size(); ++k)
    take(needed[k]);
  SmallVector<Operation *> ordered = llvm::to_vector(needed);
  llvm::sort(ordered,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return ordered;
}

/// Whether the mesh runs no fragment between the two.
bool followsAtOnce(mpmd::FragmentOp op, mpmd::FragmentOp before) {
  for (Operation *each = before->getNextNode(); each != op;
       each = each->getNextNode())
    if (auto other = dyn_cast<mpmd::FragmentOp>(each);
        other && other.getMeshName() == op.getMeshName())
      return false;
  return true;
}

/// Computes forward work again for the backward work `users`, which follow each
/// other.
void remat(ArrayRef<Operation *> forward, ArrayRef<Operation *> users) {
  IRMapping map; ///< to the results of what was computed again
  for (Operation *user : users) {
    for (Operation *op : neededOf(user, forward)) {
      if (map.contains(op->getResult(0)) ||
          followsAtOnce(cast<mpmd::FragmentOp>(user),
                        cast<mpmd::FragmentOp>(op)))
        continue;
      OpBuilder b(user);
      b.clone(*op, map)->setAttr(rematName, b.getUnitAttr());
    }
    for (OpOperand &operand : user->getOpOperands())
      operand.set(map.lookupOrDefault(operand.get()));
  }
}

struct RematFragments : impl::RematFragmentsBase<RematFragments> {
  using RematFragmentsBase::RematFragmentsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return;
    using Kind = PipelineWork::Kind;
    const Pipeline pipeline = findPipeline(function);
    for (const Pipeline::Mesh &mesh : pipeline.meshes)
      for (const auto &[work, forward] : mesh.works) {
        if (work.kind != Kind::Forward)
          continue;
        SmallVector<Operation *> users;
        for (Kind kind : {Kind::Backward, Kind::Weights})
          if (auto at = mesh.works.find({kind, work.microbatch, work.stage});
              at != mesh.works.end())
            llvm::append_range(users, at->second);
        llvm::sort(users, [](Operation *a, Operation *b) {
          return a->isBeforeInBlock(b);
        });
        remat(forward, users);
      }
  }
};

} // namespace

} // namespace mgpu::conversion
