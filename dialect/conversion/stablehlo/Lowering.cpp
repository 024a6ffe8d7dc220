// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk in program order, and scalar code.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

using namespace mlir;

Value Lowering::operator[](Value old) {
  if (Value made = tensors.lookup(old))
    return made;
  Value number = numbers.lookup(old);
  if (!number)
    return old; // the operation stays as it is
  // Made where it is first needed; that may be in a loop, so it is not kept.
  auto shape = cast<RankedTensorType>(old.getType()).getShape();
  return filledWith(RankedTensorType::get(shape, number.getType()), number);
}

/// By name.
static FamilyLowering findFamily(OperationName name) {
  static const llvm::StringMap<FamilyLowering> all = [] {
    llvm::StringMap<FamilyLowering> map;
    for (auto family :
         {constantFamily(), movementFamily(), indexingFamily(), scatterFamily(),
          reductionFamily(), windowFamily(), sortFamily(), solveFamily(),
          contractionFamily(), convolutionFamily(), loopFamily(),
          branchFamily(), callFamily()})
      for (const NamedFamily &each : family)
        map[each.name] = each.lower;
    return map;
  }();
  return all.lookup(name.getStringRef());
}

bool isOfStablehlo(Operation *op) {
  return llvm::is_contained({"stablehlo", "chlo", "mhlo", "check"},
                            op->getName().getDialectNamespace());
}

static bool isElementwise(Operation *op) {
  return !findFamily(op->getName()) && findScalarBuilder(op->getName());
}

/// Whether `op` is computed with its one user, so that both are one loop from
/// the beginning: to fuse a long chain later would copy its start for each op.
static bool isLeftToUser(Operation *op) {
  if (!isElementwise(op) || !op->getResult(0).hasOneUse() ||
      cast<ShapedType>(op->getResult(0).getType()).getRank() == 0)
    return false;
  Operation *user = *op->user_begin();
  return user->getBlock() == op->getBlock() && isElementwise(user);
}

/// An operation and those that are left to it, users first; and what they read.
namespace {
struct ElementTree {
  explicit ElementTree(Operation *root) : ops{root} {
    for (size_t k = 0; k < ops.size(); ++k)
      for (Value operand : ops[k]->getOperands()) {
        Operation *made = operand.getDefiningOp();
        if (made && isLeftToUser(made))
          ops.push_back(made);
        else
          read.insert(operand);
      }
  }

  SmallVector<Operation *> ops;
  llvm::SetVector<Value> read;
};
} // namespace

LogicalResult Lowering::lowerElementwise(Operation *op) {
  auto isKnown = [&](Value value) {
    return isHostInteger(value) && number(value);
  };
  if (isHostInteger(op->getResult(0)) &&
      llvm::all_of(op->getOperands(), isKnown)) {
    SmallVector<Value> in = llvm::map_to_vector(
        op->getOperands(), [&](Value value) { return number(value); });
    setNumber(op->getResult(0),
              applied(findScalarBuilder(op->getName()), {b, op, in}));
    return success();
  }
  if (isLeftToUser(op))
    return success();
  const ElementTree tree(op);
  SmallVector<Value> inputs = all(tree.read.getArrayRef());
  set(op->getResult(0),
      elementwise(signlessTensor(op->getResult(0)), inputs,
                  [&](ImplicitLocOpBuilder &body, ValueRange elements) {
                    DenseMap<Value, Value> made;
                    for (auto [value, element] : llvm::zip(tree.read, elements))
                      made[value] = element;
                    for (Operation *inner : llvm::reverse(tree.ops)) {
                      SmallVector<Value> in = llvm::map_to_vector(
                          inner->getOperands(),
                          [&](Value value) { return made.lookup(value); });
                      made[inner->getResult(0)] =
                          applied(findScalarBuilder(inner->getName()),
                                  {body, inner, in});
                    }
                    return SmallVector<Value>{made.lookup(op->getResult(0))};
                  }));
  return success();
}

/// Whether all that `op` gives are tensors without elements, so that it reads
/// nothing: its loops might not even have bounds. A loop or a call may do more
/// than give.
static bool givesNoElements(Operation *op) {
  return op->getNumResults() > 0 &&
         !isa<stablehlo::WhileOp, stablehlo::IfOp, stablehlo::CaseOp,
              stablehlo::CustomCallOp>(op) &&
         llvm::all_of(op->getResultTypes(), [](Type type) {
           return cast<RankedTensorType>(type).getNumElements() == 0;
         });
}

LogicalResult Lowering::lower(Operation *op) {
  b.setLoc(op->getLoc());
  FamilyLowering family = findFamily(op->getName());
  if ((family || findScalarBuilder(op->getName())) && givesNoElements(op)) {
    for (Value result : op->getResults())
      set(result, empty(signlessTensor(result)));
    return success();
  }
  if (family)
    return family(*this, op);
  if (findScalarBuilder(op->getName()))
    return lowerElementwise(op);
  if (isOfStablehlo(op))
    return refuse(op) << "is not read by this version (docs/limits.md)";
  // The number of a device is one that host code knows.
  if (auto one = dyn_cast<tensor::FromElementsOp>(op);
      one && isHostInteger(one.getResult())) {
    setNumber(one.getResult(), (*this)[one.getElements()[0]]);
    return success();
  }
  for (Type type : op->getResultTypes())
    if (isNarrow(getElementTypeOrSelf(type)))
      return refuse(op) << "has integers of less than 8 bits, which only "
                           "operations of stablehlo may have";
  // Operations of other dialects stay.
  IRMapping map;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!map.contains(operand) &&
          (tensors.contains(operand) || numbers.contains(operand)))
        map.map(operand, (*this)[operand]);
  });
  Operation *copy = b.clone(*op, map);
  for (Value result : copy->getResults())
    result.setType(signless(result.getType()));
  setAll(op->getResults(), copy->getResults());
  return success();
}

LogicalResult Lowering::lowerBlock(Block &from) {
  for (Operation &op : from.without_terminator())
    if (failed(lower(&op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Scalar code
//===----------------------------------------------------------------------===//

bool isScalarIdentity(Operation *op) {
  return op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         llvm::is_contained({"stablehlo.reshape", "stablehlo.broadcast_in_dim",
                             "stablehlo.optimization_barrier", "mhlo.copy",
                             "stablehlo.transpose"},
                            op->getName().getStringRef()) &&
         cast<ShapedType>(op->getResult(0).getType()).getRank() == 0;
}

LogicalResult checkScalars(Region &region) {
  if (!region.hasOneBlock())
    return refuse(region.getParentOp()) << "has a region of several blocks";
  for (Operation &op : region.front().without_terminator()) {
    bool isScalar = llvm::all_of(op.getResultTypes(), [](Type type) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      return tensor && tensor.getRank() == 0;
    });
    if (isScalar && (isScalarIdentity(&op) || findScalarBuilder(op.getName()) ||
                     splatOf(&op)))
      continue;
    return refuse(&op) << "stands in the region of '"
                       << region.getParentOp()->getName()
                       << "', which may have operations on single numbers "
                          "alone";
  }
  return success();
}

SmallVector<Value> Lowering::inlined(ImplicitLocOpBuilder &body, Region &region,
                                     ValueRange arguments) {
  DenseMap<Value, Value> made;
  for (auto [argument, value] : llvm::zip(region.getArguments(), arguments))
    made[argument] = value;
  auto valuesOf = [&](Operation &op) {
    return llvm::map_to_vector(op.getOperands(), [&](Value operand) -> Value {
      if (Value value = made.lookup(operand))
        return value;
      if (Value value = number(operand)) // from above
        return value;
      return tensor::ExtractOp::create(body, tensors.lookup(operand),
                                       ValueRange());
    });
  };
  for (Operation &op : region.front().without_terminator()) {
    SmallVector<Value> in = valuesOf(op);
    Value result;
    if (isScalarIdentity(&op))
      result = in[0];
    else if (TypedAttr splat = splatOf(&op))
      result = arith::ConstantOp::create(body, splat);
    else
      result = applied(findScalarBuilder(op.getName()), {body, &op, in});
    made[op.getResult(0)] = result;
  }
  return valuesOf(*region.front().getTerminator());
}

} // namespace mgpu::conversion
