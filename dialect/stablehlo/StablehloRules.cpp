// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/stablehlo/StablehloRules.h"

#include "llvm/ADT/SmallSet.h"

namespace mgpu::stablehlo {

using namespace mlir;

bool shapesAgree(ArrayRef<int64_t> left, ArrayRef<int64_t> right) {
  return left.size() == right.size() &&
         llvm::all_of(llvm::zip(left, right), [](auto pair) {
           return sizesAgree(std::get<0>(pair), std::get<1>(pair));
         });
}

bool elementsAgree(Type left, Type right) {
  return left == right || isa<quant::QuantizedType>(left) ||
         isa<quant::QuantizedType>(right);
}

bool isPromotable(Type from, Type to) {
  if (elementsAgree(from, to))
    return true;
  if (auto left = dyn_cast<ComplexType>(from))
    if (auto right = dyn_cast<ComplexType>(to))
      return isPromotable(left.getElementType(), right.getElementType());
  auto left = dyn_cast<IntegerType>(from), right = dyn_cast<IntegerType>(to);
  bool sameKind =
      (isa<FloatType>(from) && isa<FloatType>(to)) ||
      (left && right && left.getSignedness() == right.getSignedness() &&
       (left.getWidth() == 1) == (right.getWidth() == 1));
  return sameKind && from.getIntOrFloatBitWidth() <= to.getIntOrFloatBitWidth();
}

LogicalResult checkDims(Operation *op, StringRef name, ArrayRef<int64_t> dims,
                        int64_t rank) {
  llvm::SmallSet<int64_t, 8> seen;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank)
      return op->emitOpError() << name << " names dimension " << dim
                               << " of a tensor of rank " << rank;
    if (!seen.insert(dim).second)
      return op->emitOpError()
             << name << " names dimension " << dim << " twice";
  }
  return success();
}

LogicalResult checkSortedDims(Operation *op, StringRef name,
                              ArrayRef<int64_t> dims, int64_t rank) {
  if (!llvm::is_sorted(dims))
    return op->emitOpError() << name << " must be in ascending order";
  return checkDims(op, name, dims, rank);
}

LogicalResult checkCount(Operation *op, StringRef name, size_t found,
                         size_t count) {
  if (found == count)
    return success();
  return op->emitOpError() << name << " has " << found << " entries, not "
                           << count;
}

LogicalResult checkScalar(Operation *op, StringRef name, Value value) {
  if (shapeOf(value).empty())
    return success();
  return op->emitOpError() << name << " must be a scalar, not "
                           << value.getType();
}

LogicalResult checkResult(Operation *op, Value result, ArrayRef<int64_t> shape,
                          Type element) {
  Type own = elementOf(result);
  if (shapesAgree(shapeOf(result), shape) &&
      (!element || elementsAgree(own, element)))
    return success();
  return op->emitOpError() << "must give "
                           << RankedTensorType::get(shape,
                                                    element ? element : own)
                           << ", not " << result.getType();
}

FailureOr<SmallVector<WindowDim>>
windowOf(Operation *op, ArrayRef<int64_t> sizes,
         std::optional<ArrayRef<int64_t>> strides,
         std::optional<DenseIntElementsAttr> padding,
         std::optional<ArrayRef<int64_t>> base,
         std::optional<ArrayRef<int64_t>> dilation) {
  size_t count = sizes.size();
  if ((strides && failed(checkCount(op, "strides", strides->size(), count))) ||
      (base && failed(checkCount(op, "base dilation", base->size(), count))) ||
      (dilation &&
       failed(checkCount(op, "window dilation", dilation->size(), count))))
    return failure();
  SmallVector<int64_t> pads;
  if (padding) {
    if (ShapedType type = padding->getType();
        type.getRank() != 2 || type.getDimSize(0) != int64_t(count) ||
        type.getDimSize(1) != 2)
      return op->emitOpError() << "padding must be of type tensor<" << count
                               << "x2xi64>, not " << type;
    pads = llvm::to_vector(padding->getValues<int64_t>());
  }
  SmallVector<WindowDim> dims(count);
  for (size_t dim = 0; dim < count; ++dim) {
    WindowDim &window = dims[dim];
    window.size = sizes[dim];
    window.stride = strides ? (*strides)[dim] : 1;
    window.base = base ? (*base)[dim] : 1;
    window.dilation = dilation ? (*dilation)[dim] : 1;
    if (padding) {
      window.low = pads[2 * dim];
      window.high = pads[2 * dim + 1];
    }
    bool sizeIsGood = isDynamic(window.size) || window.size > 0;
    if (!sizeIsGood || window.stride <= 0 || window.base <= 0 ||
        window.dilation <= 0)
      return op->emitOpError()
             << "window sizes, strides and dilations must be at least 1";
  }
  return dims;
}

int64_t windowsIn(int64_t size, const WindowDim &window) {
  if (isDynamic(size) || isDynamic(window.size))
    return ShapedType::kDynamic;
  // Sizes of text may be near the limit of their type; such tensors fit
  // nowhere.
  using Wide = __int128;
  Wide whole = size == 0 ? 0 : Wide(size - 1) * window.base + 1;
  whole += Wide(window.low) + window.high;
  Wide reach = Wide(window.size - 1) * window.dilation + 1;
  if (whole <= 0 || reach > whole)
    return 0;
  Wide count = (whole - reach) / window.stride + 1;
  return count > Wide(INT64_MAX) ? INT64_MAX : int64_t(count);
}

LogicalResult checkComputation(Operation *op, Region &region,
                               ArrayRef<Type> arguments,
                               ArrayRef<Type> results) {
  Block &block = region.front();
  auto end = block.empty() ? nullptr : dyn_cast<ReturnOp>(block.back());
  auto isScalar = [](Type type, Type element) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0 &&
           elementsAgree(tensor.getElementType(), element);
  };
  auto areScalars = [&](TypeRange types, ArrayRef<Type> elements) {
    return types.size() == elements.size() &&
           llvm::all_of(llvm::zip(types, elements), [&](auto pair) {
             return isScalar(std::get<0>(pair), std::get<1>(pair));
           });
  };
  auto describe = [](InFlightDiagnostic &diagnostic, ArrayRef<Type> elements) {
    llvm::interleaveComma(elements, diagnostic, [&](Type element) {
      diagnostic << "tensor<" << element << '>';
    });
  };
  if (!areScalars(block.getArgumentTypes(), arguments)) {
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "must have a region that takes ";
    describe(diagnostic, arguments);
    return diagnostic;
  }
  if (!end || !areScalars(end.getResults().getTypes(), results)) {
    InFlightDiagnostic diagnostic = op->emitOpError()
                                    << "must have a region that returns ";
    describe(diagnostic, results);
    return diagnostic;
  }
  return success();
}

} // namespace mgpu::stablehlo
