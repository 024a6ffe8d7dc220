// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules of operations with regions.
#include "dialect/stablehlo/StablehloRules.h"

using namespace mlir;
using namespace mgpu::stablehlo;

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

static bool typesAgree(Type left, Type right) {
  auto leftTensor = dyn_cast<RankedTensorType>(left);
  auto rightTensor = dyn_cast<RankedTensorType>(right);
  if (!leftTensor || !rightTensor)
    return left == right;
  return shapesAgree(leftTensor.getShape(), rightTensor.getShape()) &&
         elementsAgree(leftTensor.getElementType(),
                       rightTensor.getElementType());
}

static bool typesAgree(TypeRange left, TypeRange right) {
  return left.size() == right.size() &&
         llvm::all_of(llvm::zip(left, right), [](auto pair) {
           return typesAgree(std::get<0>(pair), std::get<1>(pair));
         });
}

/// Whether a region of one block takes and returns values of these types.
static LogicalResult checkRegion(Operation *op, StringRef name, Region &region,
                                 TypeRange arguments, TypeRange results) {
  Block &block = region.front();
  if (!typesAgree(block.getArgumentTypes(), arguments))
    return op->emitOpError() << name << " must take (" << arguments << ')';
  auto end = block.empty() ? nullptr : dyn_cast<ReturnOp>(block.back());
  if (end && typesAgree(end.getResults().getTypes(), results))
    return success();
  return op->emitOpError() << name << " must return (" << results << ')';
}

LogicalResult CaseOp::verify() {
  if (failed(checkScalar(*this, "the index", getIndex())))
    return failure();
  if (getBranches().empty())
    return emitOpError() << "must have a branch at least";
  for (Region &branch : getBranches())
    if (failed(checkRegion(*this, "a branch", branch, {}, getResultTypes())))
      return failure();
  return success();
}

LogicalResult IfOp::verify() {
  if (failed(checkScalar(*this, "the condition", getPred())) ||
      failed(checkRegion(*this, "the first branch", getTrueBranch(), {},
                         getResultTypes())))
    return failure();
  return checkRegion(*this, "the second branch", getFalseBranch(), {},
                     getResultTypes());
}

LogicalResult WhileOp::verify() {
  if (!typesAgree(getOperandTypes(), getResultTypes()))
    return emitOpError() << "must give values of the types it takes";
  Type flag = RankedTensorType::get({}, IntegerType::get(getContext(), 1));
  if (failed(checkRegion(*this, "the condition", getCond(), getOperandTypes(),
                         flag)))
    return failure();
  return checkRegion(*this, "the body", getBody(), getOperandTypes(),
                     getOperandTypes());
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Inputs of one shape with a scalar each, and a region that combines two of
/// each result's elements.
static LogicalResult checkReduction(Operation *op, ValueRange inputs,
                                    ValueRange inits, Region &body) {
  if (inputs.empty())
    return op->emitOpError() << "must have an operand at least";
  if (failed(checkCount(op, "the result", op->getNumResults(), inputs.size())))
    return failure();
  SmallVector<Type> elements;
  for (auto [input, init, result] :
       llvm::zip(inputs, inits, op->getResults())) {
    if (!shapesAgree(shapeOf(input), shapeOf(inputs[0])))
      return op->emitOpError()
             << "must have operands of one shape, not " << inputs[0].getType()
             << " and " << input.getType();
    if (failed(checkScalar(op, "an initial value", init)))
      return failure();
    Type element = elementOf(result);
    if (!isPromotable(elementOf(input), element) ||
        !isPromotable(elementOf(init), element))
      return op->emitOpError()
             << "cannot combine " << input.getType() << " and "
             << init.getType() << " to elements of type " << element;
    elements.push_back(element);
  }
  SmallVector<Type> arguments(elements);
  llvm::append_range(arguments, elements);
  return checkComputation(op, body, arguments, elements);
}

LogicalResult ReduceOp::verify() {
  if (failed(checkReduction(*this, getInputs(), getInitValues(), getBody())))
    return failure();
  ArrayRef<int64_t> input = shapeOf(getInputs()[0]);
  if (failed(checkDims(*this, "dimensions", getDimensions(), input.size())))
    return failure();
  Shape shape;
  for (auto [dim, size] : llvm::enumerate(input))
    if (!llvm::is_contained(getDimensions(), int64_t(dim)))
      shape.push_back(size);
  for (Value result : getResults())
    if (failed(checkResult(*this, result, shape)))
      return failure();
  return success();
}

LogicalResult ReduceWindowOp::verify() {
  if (failed(checkReduction(*this, getInputs(), getInitValues(), getBody())))
    return failure();
  Shape shape(shapeOf(getInputs()[0]));
  if (failed(checkCount(*this, "window_dimensions",
                        getWindowDimensions().size(), shape.size())))
    return failure();
  FailureOr<SmallVector<WindowDim>> windows =
      windowOf(*this, getWindowDimensions(), getWindowStrides(), getPadding(),
               getBaseDilations(), getWindowDilations());
  if (failed(windows))
    return failure();
  for (auto [size, window] : llvm::zip(shape, *windows))
    size = windowsIn(size, window);
  for (Value result : getResults())
    if (failed(checkResult(*this, result, shape)))
      return failure();
  return success();
}

LogicalResult SelectAndScatterOp::verify() {
  ArrayRef<int64_t> shape = shapeOf(getOperand());
  Shape ones(shape.size(), 1);
  ArrayRef<int64_t> sizes = getWindowDimensions().value_or(ones);
  if (failed(
          checkCount(*this, "window_dimensions", sizes.size(), shape.size())))
    return failure();
  FailureOr<SmallVector<WindowDim>> windows =
      windowOf(*this, sizes, getWindowStrides(), getPadding(), {}, {});
  if (failed(windows) ||
      failed(checkScalar(*this, "the initial value", getInitValue())))
    return failure();
  Shape source;
  for (auto [size, window] : llvm::zip(shape, *windows))
    source.push_back(windowsIn(size, window));
  if (!shapesAgree(source, shapeOf(getSource())) ||
      !elementsAgree(elementOf(getSource()), elementOf(getInitValue())))
    return emitOpError() << "must have a source like "
                         << RankedTensorType::get(source,
                                                  elementOf(getInitValue()))
                         << ", not " << getSource().getType();
  Type from = elementOf(getOperand()), to = elementOf(getResult());
  if (!isPromotable(from, to) || !isPromotable(elementOf(getSource()), to))
    return emitOpError() << "cannot combine elements of type " << from
                         << " to those of type " << to;
  if (failed(checkComputation(*this, getSelect(), {from, from},
                              IntegerType::get(getContext(), 1))) ||
      failed(checkComputation(*this, getScatter(), {to, to}, to)))
    return failure();
  return checkResult(*this, getResult(), shape);
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

LogicalResult MapOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "must have an operand at least";
  size_t rank = shapeOf(getResult()).size();
  if (!llvm::equal(getDimensions(), llvm::seq<int64_t>(0, rank)))
    return emitOpError() << "must name all " << rank << " dimensions, in order";
  SmallVector<Type> elements = llvm::map_to_vector(
      getInputs(), [](Value input) { return elementOf(input); });
  return checkComputation(*this, getComputation(), elements,
                          elementOf(getResult()));
}

LogicalResult SortOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "must have an operand at least";
  int64_t rank = shapeOf(getInputs()[0]).size(), dim = getDimension();
  if (dim < -rank || dim >= rank)
    return emitOpError() << "cannot sort a tensor of rank " << rank
                         << " along dimension " << dim;
  if (failed(
          checkCount(*this, "the result", getNumResults(), getInputs().size())))
    return failure();
  SmallVector<Type> pairs;
  for (auto [input, result] : llvm::zip(getInputs(), getResults())) {
    pairs.append(2, elementOf(input));
    if (failed(checkResult(*this, result, shapeOf(input), elementOf(input))))
      return failure();
  }
  return checkComputation(*this, getComparator(), pairs,
                          IntegerType::get(getContext(), 1));
}
