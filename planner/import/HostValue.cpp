// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/HostValue.h"

#include "planner/import/Interpreter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

namespace mgpu::planner {

std::optional<ElementType> elementTypeOf(mlir::Type type) {
  if (type.isIndex())
    return ElementType::Index;
  // Signed and unsigned ones would need reductions and files of their own.
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(type);
      integer && integer.isSignless()) {
    switch (integer.getWidth()) {
    case 1:
      return ElementType::I1;
    case 8:
      return ElementType::I8;
    case 16:
      return ElementType::I16;
    case 32:
      return ElementType::I32;
    case 64:
      return ElementType::I64;
    }
    return std::nullopt;
  }
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  if (mlir::isa<mlir::Float8E4M3FNType>(type))
    return ElementType::F8E4M3FN;
  if (mlir::isa<mlir::Float8E5M2Type>(type))
    return ElementType::F8E5M2;
  return std::nullopt;
}

std::string textOf(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

// Operations of host code that compute scalars.

using namespace mlir;

bool Interpreter::foldInduction(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
      op->getNumOperands() > 2 || !op->getResult(0).getType().isIntOrIndex() ||
      !elementTypeOf(op->getResult(0).getType()))
    return false;
  llvm::SmallVector<Induction, 2> operands;
  bool any = false;
  for (Value operand : op->getOperands()) {
    auto *constant = std::get_if<Attribute>(&host.valueOf(operand));
    auto integer = constant ? dyn_cast<IntegerAttr>(*constant) : IntegerAttr();
    if (const Induction *known = host.findInduction(operand))
      operands.push_back(*known), any = true;
    else if (integer)
      operands.push_back({{}, integer.getValue().getSExtValue(), 0});
    else
      return false;
  }
  if (!any)
    return false;
  auto derived = deriveInduction(
      op, operands[0],
      operands.size() == 2 ? std::optional(operands[1]) : std::nullopt,
      recorder.rolledTrips()->trips);
  if (!derived)
    return false;
  Value result = op->getResult(0);
  host.set(result, DynamicValue{recorder.addInduction(
                       nameOf(result.getLoc(), "induction"),
                       *elementTypeOf(result.getType()), derived->first,
                       derived->step)});
  return true;
}

Result<void> Interpreter::fold(Operation *op) {
  if (recorder.isInLoop() && foldInduction(op))
    return {};
  llvm::SmallVector<Attribute> constants;
  for (Value operand : op->getOperands()) {
    auto *known = std::get_if<Attribute>(&host.valueOf(operand));
    constants.push_back(known ? *known : Attribute());
  }
  // select on handles and memrefs folds to a value, not to an attribute.
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    MGPU_TRY_ASSIGN(auto condition,
                    host.integerOf(op, select.getCondition(), "the condition"));
    host.set(select.getResult(),
             host.valueOf(condition ? select.getTrueValue()
                                    : select.getFalseValue()));
    return {};
  }
  llvm::SmallVector<OpFoldResult> folded;
  // fold() may rewrite an operation in place; a copy takes that.
  Operation *copy = op->getNumRegions() == 0 ? op->clone() : nullptr;
  bool ok = copy && op->getNumResults() > 0 &&
            succeeded(copy->fold(constants, folded)) &&
            folded.size() == op->getNumResults();
  if (ok)
    for (auto [result, value] : llvm::zip(op->getResults(), folded)) {
      if (auto attribute = dyn_cast<Attribute>(value))
        host.set(result, attribute);
      else
        host.set(result, host.valueOf(cast<Value>(value)));
      ok &= !std::holds_alternative<std::monostate>(host.valueOf(result));
    }
  if (copy)
    copy->destroy();
  if (ok)
    return {};
  for (Value operand : op->getOperands())
    if (host.findInduction(operand))
      return notSupported(op, onlyKernelsCan);
    else if (std::holds_alternative<DynamicValue>(host.valueOf(operand)))
      return notSupported(op, "cannot be captured: host code computes with a "
                              "dynamic argument; do it in the kernel, or give "
                              "the argument the role specialised");
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
          arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op))
    if (auto divisor = dyn_cast_or_null<IntegerAttr>(constants[1]);
        divisor && divisor.getValue().isZero())
      return reported(op->emitOpError("divides by zero"));
  return notSupported(op, "cannot be captured: host code may only compute "
                          "scalars that are constant after specialisation");
}

} // namespace mgpu::planner
