// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/stablehlo/Products.h"
#include "dialect/conversion/stablehlo/Window.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

/// The dimensions of a tensor of a convolution. Where there are groups, one of
/// its dimensions is split in two.
struct ConvolutionDims {
  SmallVector<AffineExpr> places;
  SmallVector<int64_t> shape;

  /// `outer` and `inner` go through dimension `k`, of which there are `groups`.
  void split(int64_t k, int64_t groups, AffineExpr outer, AffineExpr inner) {
    if (groups == 1) {
      places[k] = inner;
      return;
    }
    places.insert(places.begin() + k, outer);
    places[k + 1] = inner;
    shape.insert(shape.begin() + k, groups);
    shape[k + 1] /= groups;
  }
};

class Convolution {
public:
  Convolution(Lowering &low, ConvolutionOp op)
      : low(low), op(op), numbers(op.getDimensionNumbers()),
        spatial(numbers.getInputSpatialDimensions().size()),
        byFeature(op.getFeatureGroupCount()), byBatch(op.getBatchGroupCount()),
        groups(byFeature * byBatch) {}
  Value make();

private:
  Value paddedInput();
  Value kernel();
  static ConvolutionDims dimsOf(Value tensor) {
    auto type = cast<RankedTensorType>(tensor.getType());
    return {SmallVector<AffineExpr>(type.getRank()),
            llvm::to_vector(type.getShape())};
  }

  Lowering &low;
  ConvolutionOp op;
  ConvDimensionNumbersAttr numbers;
  unsigned spatial;
  int64_t byFeature, byBatch, groups;
};

Value Convolution::paddedInput() {
  Value input = low[op.getLhs()];
  auto type = cast<RankedTensorType>(input.getType());
  unsigned rank = type.getRank();
  SmallVector<int64_t> lowEnds(rank, 0), highEnds(rank, 0), between(rank, 0);
  Padding padding = paddingOf(op.getPadding(), spatial);
  SmallVector<int64_t> dilation = numbersOr(op.getLhsDilation(), spatial, 1);
  for (auto [k, dimension] :
       llvm::enumerate(numbers.getInputSpatialDimensions())) {
    lowEnds[dimension] = padding.low[k];
    highEnds[dimension] = padding.high[k];
    between[dimension] = dilation[k] - 1;
  }
  Value zero = arith::ConstantOp::create(
      low.b, low.b.getZeroAttr(type.getElementType()));
  auto fill = [&](RankedTensorType made) { return low.filledWith(made, zero); };
  return low.padded(input, fill, lowEnds, highEnds, between);
}

Value Convolution::kernel() {
  SmallVector<int64_t> dimensions;
  if (auto reversal = op.getWindowReversal())
    for (auto [k, isReversed] : llvm::enumerate(*reversal))
      if (isReversed)
        dimensions.push_back(numbers.getKernelSpatialDimensions()[k]);
  return low.reversed(low[op.getRhs()], dimensions);
}

Value Convolution::make() {
  Value input = paddedInput(), filter = kernel();
  RankedTensorType type = signlessTensor(op.getResult());
  SmallVector<int64_t> strides = numbersOr(op.getWindowStrides(), spatial, 1);
  SmallVector<int64_t> dilation = numbersOr(op.getRhsDilation(), spatial, 1);
  ConvolutionDims lhs = dimsOf(input), rhs = dimsOf(filter),
                  out{SmallVector<AffineExpr>(type.getRank()),
                      llvm::to_vector(type.getShape())};
  // The points: the dimensions of the result, its features split by groups;
  // then those of the window, and the input's features.
  int64_t feature = numbers.getOutputFeatureDimension();
  unsigned parallel = type.getRank() + (groups > 1);
  auto ofResult = [&](int64_t k) {
    return low.dim(k + (groups > 1 && k >= feature));
  };
  AffineExpr group = low.dim(feature);
  AffineExpr channel = low.dim(parallel + spatial);
  AffineExpr batch = ofResult(numbers.getOutputBatchDimension());
  for (unsigned k = 0; k < spatial; ++k) {
    AffineExpr at = ofResult(numbers.getOutputSpatialDimensions()[k]);
    AffineExpr inWindow = low.dim(parallel + k);
    lhs.places[numbers.getInputSpatialDimensions()[k]] =
        at * strides[k] + inWindow * dilation[k];
    rhs.places[numbers.getKernelSpatialDimensions()[k]] = inWindow;
    out.places[numbers.getOutputSpatialDimensions()[k]] = at;
  }
  int64_t inBatch = numbers.getInputBatchDimension();
  int64_t inFeature = numbers.getInputFeatureDimension();
  lhs.places[inBatch] = batch;
  lhs.places[inFeature] = channel;
  if (byFeature > 1)
    lhs.split(inFeature, groups, group, channel);
  else
    lhs.split(inBatch, groups, group, batch);
  rhs.places[numbers.getKernelInputFeatureDimension()] = channel;
  rhs.split(numbers.getKernelOutputFeatureDimension(), groups, group,
            ofResult(feature));
  out.places[numbers.getOutputBatchDimension()] = batch;
  out.split(feature, groups, group, ofResult(feature));
  unsigned count = parallel + spatial + 1;
  auto map = [&](ArrayRef<AffineExpr> places) {
    return AffineMap::get(count, 0, places, low.b.getContext());
  };
  Value sum =
      makeSum(low, {op, low.reshaped(input, lhs.shape),
                    low.reshaped(filter, rhs.shape), out.shape, map(lhs.places),
                    map(rhs.places), map(out.places), parallel, spatial + 1});
  return low.reshaped(sum, type.getShape());
}

LogicalResult lowerConvolution(Lowering &low, ConvolutionOp op) {
  low.set(op.getResult(), Convolution(low, op).make());
  return success();
}

} // namespace

ArrayRef<NamedFamily> convolutionFamily() {
  static const NamedFamily all[] = {family<ConvolutionOp, lowerConvolution>()};
  return all;
}

} // namespace mgpu::conversion
