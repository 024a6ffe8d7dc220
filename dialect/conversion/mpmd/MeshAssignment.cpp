// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/MeshAssignment.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

static RankedTensorType globalTypeOf(Type type) {
  if (auto mesh = dyn_cast<mpmd::MeshTensorType>(type))
    return mesh.getGlobalTensorType();
  return dyn_cast<RankedTensorType>(type);
}

llvm::SetVector<Value> usedBy(Operation *op) {
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  return used;
}

//===----------------------------------------------------------------------===//
// Where values are
//===----------------------------------------------------------------------===//

Type MeshAssignment::typeOn(StringRef mesh, Value value) const {
  return mpmd::MeshTensorType::get(value.getContext(), mesh,
                                   globalTypeOf(value.getType()));
}

/// With the sharding that the program says, where the mesh can have it.
Type MeshAssignment::argumentType(BlockArgument argument, StringRef mesh) {
  auto type = cast<mpmd::MeshTensorType>(typeOn(mesh, argument));
  auto sharding = function.getArgAttrOfType<sdy::TensorShardingAttr>(
      argument.getArgNumber(), sdy::shardingName);
  sdy::MeshAttr devices = topology.find(mesh);
  if (!sharding)
    return type;
  SmallVector<StringAttr> axes;
  for (sdy::DimensionShardingAttr dim : sharding.getDims())
    for (sdy::AxisRefAttr axis : dim.getAxes()) {
      if (axis.isSubAxis() || devices.axisIndex(axis.getName()) < 0)
        return type;
      axes.push_back(axis.getName());
    }
  if (!sdy::shardShape(type.getShape(), sharding, devices, axes))
    return type;
  return mpmd::MeshTensorType::get(function.getContext(), mesh,
                                   type.getGlobalTensorType(), sharding);
}

void MeshAssignment::place(Value value, StringRef mesh, Value made) {
  placed[{value, mesh}] = made;
  homes.try_emplace(value, mesh);
}

Value MeshAssignment::sourceOf(Value value) const {
  while (Value source = same.lookup(value))
    value = source;
  return value;
}

/// Whether no mesh was chosen for `op` yet.
bool MeshAssignment::isOpen(Operation *op) const {
  return op && op->getNumResults() > 0 && !homes.contains(op->getResult(0));
}

StringRef MeshAssignment::homeOf(Value value) {
  value = sourceOf(value);
  if (StringRef home = homes.lookup(value); !home.empty())
    return home;
  StringRef found;
  llvm::SetVector<Operation *> open;
  if (Operation *op = value.getDefiningOp())
    open.insert(op);
  for (size_t k = 0; k < open.size(); ++k)
    for (Value used : usedBy(open[k])) {
      used = sourceOf(used);
      StringRef home = homes.lookup(used);
      if (home.empty() && used.getDefiningOp())
        open.insert(used.getDefiningOp());
      if (!home.empty() && !found.empty() && found != home)
        return {};
      if (!home.empty())
        found = home;
    }
  return found;
}

Value MeshAssignment::demand(Value value, StringRef mesh) {
  value = sourceOf(value);
  if (Value made = placed.lookup({value, mesh}))
    return made;
  StringRef home = homes.lookup(value);
  if (home.empty()) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      BlockArgument own = function.front().getArgument(argument.getArgNumber());
      own.setType(argumentType(argument, mesh));
      place(value, mesh, own);
      return own;
    }
    StringRef target = homeOf(value);
    emitInferred(value.getDefiningOp(), target.empty() ? mesh : target);
    return demand(value, mesh);
  }
  Value made = mpmd::TransferOp::create(b, value.getLoc(), typeOn(mesh, value),
                                        placed.lookup({value, home}));
  placed[{value, mesh}] = made;
  return made;
}

//===----------------------------------------------------------------------===//
// Operations without a mesh
//===----------------------------------------------------------------------===//

/// `op`, after the open ones that it uses and that run on `mesh` too.
void MeshAssignment::collect(Operation *op, StringRef mesh, Operations &ops) {
  if (ops.contains(op))
    return;
  for (Value used : usedBy(op)) {
    Operation *source = sourceOf(used).getDefiningOp();
    if (!isOpen(source))
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
    map.map(reduce.getResult(), emitReduction(reduce, map));
  else
    b.clone(*op, map);
}

Value MeshAssignment::emitReduction(mpmd::ReduceOp op, IRMapping &map) {
  auto name = [&]() -> StringRef {
    switch (op.getReduction().getReductionType()) {
    case mpmd::ReductionType::kMax:
      return "stablehlo.maximum";
    case mpmd::ReductionType::kMin:
      return "stablehlo.minimum";
    case mpmd::ReductionType::kMul:
      return "stablehlo.multiply";
    case mpmd::ReductionType::kOr:
      return "stablehlo.or";
    case mpmd::ReductionType::kAnd:
      return "stablehlo.and";
    default:
      return "stablehlo.add";
    }
  };
  Value result = map.lookup(op.getTensors()[0]);
  for (Value next : op.getTensors().drop_front()) {
    OperationState state(op.getLoc(), name());
    state.addOperands({result, map.lookup(next)});
    state.addTypes(result.getType());
    result = b.create(state)->getResult(0);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// The program, in its order
//===----------------------------------------------------------------------===//

void MeshAssignment::takeArguments(Block &old, Block &body) {
  for (BlockArgument argument : old.getArguments()) {
    Value own = body.addArgument(argument.getType(), argument.getLoc());
    if (auto type = dyn_cast<mpmd::MeshTensorType>(argument.getType()))
      place(argument, type.getMeshName(), own);
  }
}

LogicalResult MeshAssignment::take(Operation *op) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (!globalTypeOf(type))
        return ir::emitUnsupported(op) << "has a value of type " << type
                                       << "; a program over several meshes "
                                          "computes with ranked tensors";
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<mpmd::UnassignOp, mpmd::BroadcastOp>([&](auto each) {
        same[each.getResult()] = each.getTensor();
        return success();
      })
      .Case([&](mpmd::AssignOp each) {
        StringRef mesh = each.getType().getMeshName();
        place(each.getResult(), mesh, demand(each.getTensor(), mesh));
        return success();
      })
      .Case([&](mpmd::NamedTensorOp each) {
        auto mesh = meshes.find(each.getName());
        if (mesh == meshes.end())
          same[each.getResult()] = each.getTensor();
        else
          place(each.getResult(), mesh->second,
                demand(each.getTensor(), mesh->second));
        return success();
      })
      .Case([&](mpmd::NamedComputationOp each) {
        return takeNamed(each, each.getName());
      })
      .Case<mpmd::FragmentOp, mpmd::TransferOp>([&](auto) {
        takeAssigned(op);
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (op->getNumResults() > 0 && isMemoryEffectFree(op))
          return success(); // where its results are asked for
        return ir::emitUnsupported(op)
               << "does more than give tensors, so that a mesh must be said "
                  "for "
                  "it: put it into an mpmd.named_computation";
      });
}

LogicalResult MeshAssignment::takeNamed(Operation *op, StringRef name) {
  StringRef mesh;
  if (auto found = meshes.find(name); found != meshes.end())
    mesh = found->second;
  else if (topology.getMeshes().size() == 1)
    mesh = topology.getMeshes()[0].getName();
  else
    return op->emitOpError()
           << "has no mesh; say one with --assign " << name << "=MESH";
  auto computation = cast<mpmd::NamedComputationOp>(op);
  SmallVector<Value> operands;
  for (Value operand : computation.getTensors())
    operands.push_back(demand(operand, mesh));
  SmallVector<Type> types = llvm::map_to_vector(
      op->getResults(), [&](Value result) { return typeOn(mesh, result); });
  auto fragment = mpmd::FragmentOp::create(
      b, op->getLoc(), types, operands, b.getArrayAttr(computation.getOrigin()),
      b.getStringAttr(mesh), IntegerAttr(), sdy::TensorShardingPerValueAttr(),
      sdy::TensorShardingPerValueAttr());
  fragment->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping map;
  computation.getRegion().cloneInto(&fragment.getRegion(), map);
  for (auto [result, made] :
       llvm::zip(op->getResults(), fragment->getResults()))
    place(result, mesh, made);
  return success();
}

/// What is on meshes already.
void MeshAssignment::takeAssigned(Operation *op) {
  IRMapping map;
  for (Value operand : op->getOperands())
    map.map(
        operand,
        demand(operand,
               cast<mpmd::MeshTensorType>(operand.getType()).getMeshName()));
  Operation *made = b.clone(*op, map);
  for (auto [result, own] : llvm::zip(op->getResults(), made->getResults()))
    place(result, cast<mpmd::MeshTensorType>(result.getType()).getMeshName(),
          own);
}

void MeshAssignment::giveResults(Operation *end) {
  SmallVector<Value> results;
  StringRef first = topology.getMeshes()[0].getName();
  for (Value value : end->getOperands()) {
    StringRef mesh = homeOf(value);
    if (auto type = dyn_cast<mpmd::MeshTensorType>(value.getType()))
      mesh = type.getMeshName();
    results.push_back(demand(value, mesh.empty() ? first : mesh));
  }
  func::ReturnOp::create(b, end->getLoc(), results);
  for (BlockArgument argument : end->getBlock()->getArguments())
    if (!homes.contains(argument)) // nobody uses it
      demand(argument, first);
  function.setFunctionType(FunctionType::get(
      function.getContext(), function.front().getArgumentTypes(),
      ValueRange(results).getTypes()));
}

LogicalResult MeshAssignment::run() {
  Block &old = function.front();
  for (Type type : old.getArgumentTypes())
    if (!globalTypeOf(type))
      return ir::emitUnsupported(function)
             << "has an argument of type " << type
             << "; a program over several meshes takes ranked tensors";
  Block *body = new Block;
  function.getBody().push_front(body);
  takeArguments(old, *body);
  b.setInsertionPointToEnd(body);
  for (Operation &op : old.without_terminator())
    if (failed(take(&op)))
      return failure();
  giveResults(old.getTerminator());
  old.dropAllReferences();
  old.erase();
  return success();
}

} // namespace mgpu::conversion
