// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/mpmd/MemoryKinds.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// Where a custom call says that its tensor is; null for other operations.
StringAttr placementIn(Operation *op) {
  auto call = dyn_cast_or_null<stablehlo::CustomCallOp>(op);
  if (!call || call.getCallTargetName() != "annotate_device_placement" ||
      call->getNumOperands() != 1 || call->getNumResults() != 1)
    return {};
  auto all = call->getAttrOfType<DictionaryAttr>("mhlo.frontend_attributes");
  return all ? all.getAs<StringAttr>("_xla_buffer_placement") : StringAttr();
}

/// Entry `k` of a fragment's list of attributes.
StringAttr listed(Operation *op, StringRef name, unsigned k) {
  auto all = op->getAttrOfType<ArrayAttr>(name);
  auto one = all && k < all.size() ? dyn_cast<DictionaryAttr>(all[k])
                                   : DictionaryAttr();
  return one ? one.getAs<StringAttr>(mpmd::memoryKindName) : StringAttr();
}

/// The memory in which a fragment takes its operand. One that the fragment
/// brings to the devices itself is on the host.
StringAttr kindOfOperand(OpOperand &use) {
  auto fragment = dyn_cast<mpmd::FragmentOp>(use.getOwner());
  if (!fragment)
    return {};
  if (StringAttr said = listed(fragment, "arg_attrs", use.getOperandNumber()))
    return said;
  BlockArgument inside =
      fragment.getRegion().getArgument(use.getOperandNumber());
  for (Operation *user : inside.getUsers())
    if (StringAttr to = placementIn(user); to && to == mpmd::deviceMemory)
      return StringAttr::get(fragment.getContext(), mpmd::hostMemory);
  return {};
}

StringAttr kindOfResult(Value value) {
  auto fragment = value.getDefiningOp<mpmd::FragmentOp>();
  if (!fragment)
    return {};
  unsigned k = cast<OpResult>(value).getResultNumber();
  if (StringAttr said = listed(fragment, "res_attrs", k))
    return said;
  return placementIn(fragment.getRegion()
                         .front()
                         .getTerminator()
                         ->getOperand(k)
                         .getDefiningOp());
}

/// The memory kind by a function's attribute or the type; null where neither
/// has one.
FailureOr<StringAttr> saidOf(func::FuncOp function, Attribute attribute,
                             Type type, const Twine &what) {
  auto said = dyn_cast_or_null<StringAttr>(attribute);
  auto tensor = dyn_cast<mpmd::MeshTensorType>(type);
  StringAttr typed = tensor ? tensor.getMemoryKind() : StringAttr();
  for (StringAttr each : {said, typed})
    if (each && each != mpmd::deviceMemory && each != mpmd::hostMemory)
      return function.emitError()
             << what << " is in memory " << each << "; there are \""
             << mpmd::deviceMemory << "\" and \"" << mpmd::hostMemory << '"';
  if (said && typed && said != typed)
    return function.emitError() << "Memory kind mismatch of " << what << ": "
                                << said << " vs " << typed << " in its type";
  return said ? said : typed;
}

LogicalResult takeArgument(func::FuncOp function, BlockArgument argument) {
  unsigned k = argument.getArgNumber();
  FailureOr<StringAttr> given =
      saidOf(function, function.getArgAttr(k, mpmd::memoryKindName),
             argument.getType(), "argument " + Twine(k));
  if (failed(given))
    return failure();
  auto nameOf = [](StringAttr kind) {
    return kind ? kind.getValue() : StringRef(mpmd::deviceMemory);
  };
  StringAttr said = *given;
  bool isOpen = !said; // until the first use
  for (OpOperand &use : argument.getUses()) {
    StringAttr kind = kindOfOperand(use);
    if (isOpen)
      said = kind;
    const bool isSame = (*given && !kind) || nameOf(kind) == nameOf(said);
    isOpen = false;
    if (isSame)
      continue;
    InFlightDiagnostic error = function.emitError()
                               << "Memory kind mismatch of argument " << k
                               << ": \"" << nameOf(said) << "\" vs \""
                               << nameOf(kind) << "\" where it is used";
    error.attachNote(use.getOwner()->getLoc()) << "it is used here";
    return error;
  }
  if (said)
    function.setArgAttr(k, mpmd::memoryKindName, said);
  return success();
}

LogicalResult takeResult(func::FuncOp function, OpOperand &returned) {
  unsigned k = returned.getOperandNumber();
  FailureOr<StringAttr> said =
      saidOf(function, function.getResultAttr(k, mpmd::memoryKindName),
             function.getResultTypes()[k], "result " + Twine(k));
  if (failed(said))
    return failure();
  StringAttr made = kindOfResult(returned.get());
  if (*said && made && *said != made)
    return returned.getOwner()->emitError()
           << "Memory kind mismatch of result " << k << ": " << *said << " vs "
           << made << " where it is made";
  if (StringAttr kind = *said ? *said : made)
    function.setResultAttr(k, mpmd::memoryKindName, kind);
  return success();
}

} // namespace

bool isPlacement(Operation *op) { return bool(placementIn(op)); }

LogicalResult takeMemoryKinds(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (failed(takeArgument(function, argument)))
      return failure();
  for (OpOperand &returned : function.front().getTerminator()->getOpOperands())
    if (failed(takeResult(function, returned)))
      return failure();
  SmallVector<Operation *> placements;
  function.walk([&](Operation *op) {
    if (placementIn(op))
      placements.push_back(op);
  });
  for (Operation *op : placements) {
    op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    op->erase();
  }
  return success();
}

} // namespace mgpu::conversion
