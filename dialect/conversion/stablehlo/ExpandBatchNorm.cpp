// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// batch_norm_inference, batch_norm_training and batch_norm_grad as StableHLO's
// specification defines them, in the order of its operations.
#include "dialect/conversion/stablehlo/Expansion.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

/// An operation whose operands and result have one type.
template <typename Op, typename... Operands>
Value make(ImplicitLocOpBuilder &b, Value first, Operands... others) {
  return Op::create(b, TypeRange{first.getType()},
                    ValueRange{first, others...});
}

/// The three operations have in common a tensor, and one of its dimensions
/// whose indices are features.
class Batch {
public:
  Batch(ImplicitLocOpBuilder &b, Value operand, int64_t feature,
        const llvm::APFloat &epsilon)
      : b(b), operand(operand), feature(feature), epsilonValue(epsilon),
        type(cast<RankedTensorType>(operand.getType())) {}

  Value spread(Value ofFeatures) {
    return BroadcastInDimOp::create(b, type, ofFeatures,
                                    ArrayRef<int64_t>{feature});
  }
  Value constant(RankedTensorType like, llvm::APFloat value) {
    auto element = cast<FloatType>(like.getElementType());
    bool isRounded = false;
    value.convert(element.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &isRounded);
    return ConstantOp::create(b, DenseElementsAttr::get(like, value));
  }
  Value epsilon(RankedTensorType like) { return constant(like, epsilonValue); }
  Value elementsPerFeature(RankedTensorType like) {
    return constant(like, llvm::APFloat(double(type.getNumElements()) /
                                        double(type.getDimSize(feature))));
  }
  /// Over all dimensions but that of features.
  Value sum(Value of);
  Value mean(Value of) {
    Value total = sum(of);
    return make<DivOp>(
        b, total, elementsPerFeature(cast<RankedTensorType>(total.getType())));
  }
  Value centered(Value mean) {
    return make<SubtractOp>(b, operand, spread(mean));
  }
  Value deviation(Value variance) {
    return make<SqrtOp>(b, make<AddOp>(b, spread(variance), epsilon(type)));
  }
  Value normalized(Value mean, Value variance) {
    Value from = centered(mean);
    return make<DivOp>(b, from, deviation(variance));
  }
  Value inference(Value scale, Value offset, Value mean, Value variance) {
    Value by = spread(scale), to = spread(offset);
    Value scaled = make<MulOp>(b, by, normalized(mean, variance));
    return make<AddOp>(b, scaled, to);
  }

  ImplicitLocOpBuilder &b;
  Value operand;
  int64_t feature;
  llvm::APFloat epsilonValue;
  RankedTensorType type;
};

Value Batch::sum(Value of) {
  Type element = type.getElementType();
  auto scalar = RankedTensorType::get({}, element);
  Value zero = constant(scalar, llvm::APFloat(0.0));
  SmallVector<int64_t> others;
  for (int64_t k = 0; k < type.getRank(); ++k)
    if (k != feature)
      others.push_back(k);
  auto features = RankedTensorType::get({type.getDimSize(feature)}, element);
  auto reduce = ReduceOp::create(b, TypeRange{features}, ValueRange{of},
                                 ValueRange{zero}, others);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&reduce.getBody(), {}, {scalar, scalar},
                              {b.getLoc(), b.getLoc()});
  Value both =
      make<AddOp>(b, body->getArgument(0), Value(body->getArgument(1)));
  ReturnOp::create(b, both);
  return reduce.getResult(0);
}

FailureOr<SmallVector<Value>> expandInference(ImplicitLocOpBuilder &b,
                                              BatchNormInferenceOp op) {
  Batch batch(b, op.getOperand(), op.getFeatureIndex(), op.getEpsilon());
  return SmallVector<Value>{batch.inference(op.getScale(), op.getOffset(),
                                            op.getMean(), op.getVariance())};
}

FailureOr<SmallVector<Value>> expandTraining(ImplicitLocOpBuilder &b,
                                             BatchNormTrainingOp op) {
  Batch batch(b, op.getOperand(), op.getFeatureIndex(), op.getEpsilon());
  Value mean = batch.mean(op.getOperand());
  Value from = batch.centered(mean);
  Value variance = batch.mean(make<MulOp>(b, from, from));
  return SmallVector<Value>{
      batch.inference(op.getScale(), op.getOffset(), mean, variance), mean,
      variance};
}

FailureOr<SmallVector<Value>> expandGrad(ImplicitLocOpBuilder &b,
                                         BatchNormGradOp op) {
  Batch batch(b, op.getOperand(), op.getFeatureIndex(), op.getEpsilon());
  auto product = [&](Value left, Value right) -> Value {
    return make<MulOp>(b, left, right);
  };
  auto quotient = [&](Value left, Value right) -> Value {
    return make<DivOp>(b, left, right);
  };
  auto difference = [&](Value left, Value right) -> Value {
    return make<SubtractOp>(b, left, right);
  };
  Value gradient = op.getGradOutput();
  Value from = batch.centered(op.getMean());
  Value deviation = batch.deviation(op.getVariance());
  Value count = batch.elementsPerFeature(batch.type);
  Value sum = batch.sum(gradient);
  Value alongCentered = batch.spread(batch.sum(product(gradient, from)));
  Value variance =
      make<AddOp>(b, batch.spread(op.getVariance()), batch.epsilon(batch.type));
  Value correction = quotient(product(alongCentered, from), variance);
  Value rest = difference(
      difference(product(gradient, count), batch.spread(sum)), correction);
  Value factor =
      quotient(quotient(batch.spread(op.getScale()), deviation), count);
  Value ofScale = batch.sum(product(gradient, quotient(from, deviation)));
  return SmallVector<Value>{product(factor, rest), ofScale, sum};
}

} // namespace

ArrayRef<NamedExpansion> batchNormExpansions() {
  static const NamedExpansion all[] = {
      expansion<BatchNormInferenceOp, expandInference>(),
      expansion<BatchNormTrainingOp, expandTraining>(),
      expansion<BatchNormGradOp, expandGrad>()};
  return all;
}

} // namespace mgpu::conversion
