// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of windows, and the scatter that is the gradient of one.
#include "dialect/conversion/stablehlo/Windows.h"
#include "dialect/conversion/stablehlo/Lowering.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

/// The dimensions of windows that have more than one element are reduction
/// dimensions, after those of the result.
struct WindowDims {
  WindowDims(Lowering &low, unsigned rank, ArrayRef<int64_t> sizes)
      : of(rank, -1) {
    for (unsigned k = 0; k < rank; ++k) {
      if (sizes[k] == 1)
        continue;
      of[k] = rank + shape.size();
      shape.push_back(sizes[k]);
    }
    for (unsigned k = 0; k < shape.size(); ++k)
      places.push_back(low.dim(rank + k));
  }

  /// The operand that says how large windows are: nobody reads it.
  void addTo(Lowering &low, Generic &generic) const {
    generic.inputs.push_back(
        low.empty(RankedTensorType::get(shape, low.b.getI1Type())));
    generic.maps.push_back(AffineMap::get(of.size() + shape.size(), 0, places,
                                          low.b.getContext()));
  }
  AffineMap ofResult(Lowering &low) const {
    SmallVector<AffineExpr> own; // of none for a number
    for (unsigned k = 0; k < of.size(); ++k)
      own.push_back(low.dim(k));
    return AffineMap::get(of.size() + shape.size(), 0, own, low.b.getContext());
  }

  SmallVector<int64_t> of; ///< by dimension of the result; -1: of size 1
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> places;
};

LogicalResult lowerReduceWindow(Lowering &low, ReduceWindowOp op) {
  if (failed(checkScalars(op.getBody())))
    return failure();
  auto type = cast<RankedTensorType>(op.getResult(0).getType());
  unsigned rank = type.getRank();
  SmallVector<int64_t> strides = numbersOr(op.getWindowStrides(), rank, 1);
  SmallVector<int64_t> spread = numbersOr(op.getBaseDilations(), rank, 1);
  SmallVector<int64_t> dilation = numbersOr(op.getWindowDilations(), rank, 1);
  Padding padding = paddingOf(op.getPadding(), rank);
  for (int64_t &each : spread)
    --each;
  WindowDims window(low, rank, op.getWindowDimensions());
  Generic of;
  of.parallel = rank;
  of.reduction = window.shape.size();
  SmallVector<AffineExpr> places;
  for (unsigned k = 0; k < rank; ++k) {
    places.push_back(low.dim(k) * strides[k]);
    if (window.of[k] >= 0)
      places[k] = places[k] + low.dim(window.of[k]) * dilation[k];
  }
  size_t count = op.getInputs().size();
  for (auto [input, init] : llvm::zip(op.getInputs(), op.getInitValues()))
    of.inputs.push_back(
        low.padded(low[input], init, padding.low, padding.high, spread));
  of.maps.append(count, AffineMap::get(rank + of.reduction, 0, places,
                                       low.b.getContext()));
  window.addTo(low, of);
  of.maps.append(count, window.ofResult(low));
  for (auto [init, result] : llvm::zip(op.getInitValues(), op.getResults()))
    of.inits.push_back(low.filled(signlessTensor(result), init));
  auto combine = [&](ImplicitLocOpBuilder &b, ValueRange elements) {
    SmallVector<Value> arguments =
        llvm::to_vector(elements.drop_front(count + 1));
    llvm::append_range(arguments, elements.take_front(count));
    return low.inlined(b, op.getBody(), arguments);
  };
  low.setAll(op.getResults(), low.generic(of, combine));
  return success();
}

/// In two steps: which element each window selects; then each element collects
/// the values of the windows that selected it, in their order.
class SelectAndScatter {
public:
  SelectAndScatter(Lowering &low, SelectAndScatterOp op)
      : low(low), op(op), type(signlessTensor(op.getOperand())),
        sourceType(signlessTensor(op.getSource())), rank(type.getRank()),
        sizes(numbersOr(op.getWindowDimensions(), rank, 1)),
        strides(numbersOr(op.getWindowStrides(), rank, 1)),
        padding(paddingOf(op.getPadding(), rank)), window(low, rank, sizes) {}

  Value make() {
    Value chosen = choose();
    return collect(chosen);
  }

private:
  using Builder = ImplicitLocOpBuilder;
  Value constant(Builder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value within(Builder &b, Value i, int64_t size) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, i,
                                 constant(b, size));
  }
  Value both(Builder &b, Value x, Value y) {
    return x ? arith::AndIOp::create(b, x, y).getResult() : y;
  }
  Value windowIndex(Builder &b, unsigned k) {
    return window.of[k] < 0
               ? constant(b, 0)
               : linalg::IndexOp::create(b, window.of[k]).getResult();
  }
  Value flat(Builder &b, ValueRange at);
  Value choose();
  Value collect(Value chosen);

  Lowering &low;
  SelectAndScatterOp op;
  RankedTensorType type, sourceType;
  unsigned rank;
  SmallVector<int64_t> sizes, strides;
  Padding padding;
  WindowDims window;
};

Value SelectAndScatter::flat(Builder &b, ValueRange at) {
  Value sum = constant(b, 0);
  for (auto [i, size] : llvm::zip(at, type.getShape()))
    sum = arith::AddIOp::create(
        b, arith::MulIOp::create(b, sum, constant(b, size)).getResult(), i);
  return arith::IndexCastOp::create(b, b.getI64Type(), sum);
}

/// The number of the element that each window selects; -1 where it has none.
Value SelectAndScatter::choose() {
  Value operand = low[op.getOperand()];
  Generic of;
  of.parallel = rank;
  of.reduction = window.shape.size();
  window.addTo(low, of);
  of.maps.append(2, window.ofResult(low));
  auto places =
      RankedTensorType::get(sourceType.getShape(), low.b.getI64Type());
  Value zero = arith::ConstantOp::create(
      low.b, low.b.getZeroAttr(type.getElementType()));
  Value none = arith::ConstantOp::create(low.b, low.b.getI64IntegerAttr(-1));
  of.inits = {low.filledWith(sourceType, zero), low.filledWith(places, none)};
  return low.generic(of, [&](Builder &b, ValueRange in) {
    Value best = in[1], place = in[2];
    SmallVector<Value> at, safe;
    Value inside;
    for (unsigned k = 0; k < rank; ++k) {
      Value i = linalg::IndexOp::create(b, k);
      i = arith::MulIOp::create(b, i, constant(b, strides[k]));
      i = arith::AddIOp::create(b, i, windowIndex(b, k));
      i = arith::SubIOp::create(b, i, constant(b, padding.low[k]));
      inside = both(b, inside, within(b, i, type.getDimSize(k)));
      at.push_back(i);
      safe.push_back(
          arith::MinUIOp::create(b, i, constant(b, type.getDimSize(k) - 1)));
    }
    Value element = tensor::ExtractOp::create(b, operand, safe);
    Value keeps = low.inlined(b, op.getSelect(), {best, element})[0];
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, place, none);
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    Value takes = arith::OrIOp::create(
        b, isFirst, arith::XOrIOp::create(b, keeps, yes).getResult());
    takes = both(b, inside, takes);
    return SmallVector<Value>{
        arith::SelectOp::create(b, takes, element, best),
        arith::SelectOp::create(b, takes, flat(b, at), place)};
  })[1];
}

Value SelectAndScatter::collect(Value chosen) {
  Value source = low[op.getSource()];
  Generic of;
  of.parallel = rank;
  of.reduction = window.shape.size();
  window.addTo(low, of);
  of.maps.push_back(window.ofResult(low));
  of.inits = {low.filled(type, op.getInitValue())};
  return low.generic(of, [&](Builder &b, ValueRange in) {
    SmallVector<Value> own, safe;
    Value inside;
    for (unsigned k = 0; k < rank; ++k) {
      own.push_back(linalg::IndexOp::create(b, k));
      // The last place in a window first: so windows come in their order.
      Value place = arith::SubIOp::create(b, constant(b, sizes[k] - 1),
                                          windowIndex(b, k));
      Value begin =
          arith::AddIOp::create(b, own[k], constant(b, padding.low[k]));
      begin = arith::SubIOp::create(b, begin, place);
      Value stride = constant(b, strides[k]), zero = constant(b, 0);
      Value isNot =
          arith::CmpIOp::create(b, arith::CmpIPredicate::slt, begin, zero);
      begin = arith::SelectOp::create(
          b, isNot, constant(b, strides[k] * sourceType.getDimSize(k)), begin);
      Value i = arith::DivUIOp::create(b, begin, stride);
      Value rest = arith::RemUIOp::create(b, begin, stride);
      inside =
          both(b, inside,
               arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, zero));
      inside = both(b, inside, within(b, i, sourceType.getDimSize(k)));
      safe.push_back(arith::MinUIOp::create(
          b, i, constant(b, sourceType.getDimSize(k) - 1)));
    }
    Value mine = arith::CmpIOp::create(
        b, arith::CmpIPredicate::eq, tensor::ExtractOp::create(b, chosen, safe),
        flat(b, own));
    Value value = tensor::ExtractOp::create(b, source, safe);
    Value sum = low.inlined(b, op.getScatter(), {in[1], value})[0];
    return SmallVector<Value>{
        arith::SelectOp::create(b, both(b, inside, mine), sum, in[1])};
  })[0];
}

LogicalResult lowerSelectAndScatter(Lowering &low, SelectAndScatterOp op) {
  if (failed(checkScalars(op.getSelect())) ||
      failed(checkScalars(op.getScatter())))
    return failure();
  if (cast<RankedTensorType>(op.getSource().getType()).getNumElements() == 0)
    low.set(op.getResult(),
            low.filled(signlessTensor(op.getResult()), op.getInitValue()));
  else
    low.set(op.getResult(), SelectAndScatter(low, op).make());
  return success();
}

} // namespace

ArrayRef<NamedFamily> windowFamily() {
  static const NamedFamily all[] = {
      family<ReduceWindowOp, lowerReduceWindow>(),
      family<SelectAndScatterOp, lowerSelectAndScatter>(),
  };
  return all;
}

} // namespace mgpu::conversion
