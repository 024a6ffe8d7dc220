// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments for operations to which the program gives no mesh.
#include "dialect/conversion/mpmd/MeshAssignment.h"
#include "dialect/conversion/mpmd/PlainOps.h"

#include "mlir/IR/IRMapping.h"

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

} // namespace mgpu::conversion
