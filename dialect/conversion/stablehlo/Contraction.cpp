// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix products, and the sums that they and convolutions are.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

Type sumType(Type result) {
  auto type = dyn_cast<FloatType>(result);
  return type && type.getWidth() < 32 ? Float32Type::get(type.getContext())
                                      : result;
}

static Value zeros(Lowering &low, RankedTensorType type) {
  return low.filledWith(type,
                        arith::ConstantOp::create(
                            low.b, low.b.getZeroAttr(type.getElementType())));
}

/// `sum` as the element type of the result.
static Value rounded(Lowering &low, Value sum, Type element) {
  auto type = cast<RankedTensorType>(sum.getType());
  if (type.getElementType() == element)
    return sum;
  return low.elementwise(
      type.clone(element), sum, [&](ImplicitLocOpBuilder &b, ValueRange in) {
        return SmallVector<Value>{castFloat(b, in[0], element)};
      });
}

Value makeSum(Lowering &low, const Products &of) {
  Type element = signlessTensor(of.op->getResult(0)).getElementType();
  Type wide = sumType(element);
  SmallVector<Type> from;
  for (Value factor : of.op->getOperands())
    from.push_back(getElementTypeOrSelf(factor.getType()));
  Generic generic;
  generic.inputs = {of.lhs, of.rhs};
  generic.inits = {zeros(low, RankedTensorType::get(of.shape, wide))};
  generic.maps = {of.lhsMap, of.rhsMap, of.sumMap};
  generic.parallel = of.parallel;
  generic.reduction = of.reduction;
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange in) {
    Value x = convertNumber(b, in[0], from[0], wide);
    Value y = convertNumber(b, in[1], from[1], wide);
    if (isa<FloatType>(wide)) {
      // It adds as linalg.matmul does: in one operation, of f32 and f64.
      constexpr auto contract = arith::FastMathFlags::contract;
      Value product = arith::MulFOp::create(b, x, y, contract);
      return SmallVector<Value>{
          arith::AddFOp::create(b, in[2], product, contract)};
    }
    if (wide.isInteger(1))
      return SmallVector<Value>{arith::OrIOp::create(
          b, in[2], arith::AndIOp::create(b, x, y).getResult())};
    return SmallVector<Value>{arith::AddIOp::create(
        b, in[2], arith::MulIOp::create(b, x, y).getResult())};
  };
  Value sum = rounded(low, low.generic(generic, body)[0], element);
  return low.kept(sum, getElementTypeOrSelf(of.op->getResult(0).getType()));
}

namespace {

/// The dimensions of a product.
struct ProductDims {
  ArrayRef<int64_t> lhsBatch, rhsBatch, lhsSum, rhsSum;
  SmallVector<int64_t> lhsFree, rhsFree;

  ProductDims(ArrayRef<int64_t> lhsBatch, ArrayRef<int64_t> rhsBatch,
              ArrayRef<int64_t> lhsSum, ArrayRef<int64_t> rhsSum,
              int64_t lhsRank, int64_t rhsRank)
      : lhsBatch(lhsBatch), rhsBatch(rhsBatch), lhsSum(lhsSum), rhsSum(rhsSum) {
    for (int64_t k = 0; k < lhsRank; ++k)
      if (!llvm::is_contained(lhsBatch, k) && !llvm::is_contained(lhsSum, k))
        lhsFree.push_back(k);
    for (int64_t k = 0; k < rhsRank; ++k)
      if (!llvm::is_contained(rhsBatch, k) && !llvm::is_contained(rhsSum, k))
        rhsFree.push_back(k);
  }
};

Value makeProduct(Lowering &low, Operation *op, const ProductDims &dims) {
  auto lhsType = signlessTensor(op->getOperand(0));
  auto rhsType = signlessTensor(op->getOperand(1));
  RankedTensorType type = signlessTensor(op->getResult(0));
  SmallVector<AffineExpr> lhs(lhsType.getRank()), rhs(rhsType.getRank());
  unsigned next = 0;
  for (auto [x, y] : llvm::zip(dims.lhsBatch, dims.rhsBatch))
    lhs[x] = rhs[y] = low.dim(next++);
  for (int64_t x : dims.lhsFree)
    lhs[x] = low.dim(next++);
  for (int64_t y : dims.rhsFree)
    rhs[y] = low.dim(next++);
  unsigned parallel = next;
  for (auto [x, y] : llvm::zip(dims.lhsSum, dims.rhsSum))
    lhs[x] = rhs[y] = low.dim(next++);
  MLIRContext *context = low.b.getContext();
  auto map = [&](ArrayRef<AffineExpr> places) {
    return AffineMap::get(next, 0, places, context);
  };
  SmallVector<AffineExpr> sum; // of none for a number
  for (unsigned k = 0; k < parallel; ++k)
    sum.push_back(low.dim(k));
  return makeSum(low, {op, low[op->getOperand(0)], low[op->getOperand(1)],
                       llvm::to_vector(type.getShape()), map(lhs), map(rhs),
                       map(sum), parallel, next - parallel});
}

LogicalResult lowerDotGeneral(Lowering &low, DotGeneralOp op) {
  DotDimensionNumbersAttr numbers = op.getDotDimensionNumbers();
  ProductDims dims(numbers.getLhsBatchingDimensions(),
                   numbers.getRhsBatchingDimensions(),
                   numbers.getLhsContractingDimensions(),
                   numbers.getRhsContractingDimensions(),
                   cast<ShapedType>(op.getLhs().getType()).getRank(),
                   cast<ShapedType>(op.getRhs().getType()).getRank());
  low.set(op.getResult(), makeProduct(low, op, dims));
  return success();
}

LogicalResult lowerDot(Lowering &low, DotOp op) {
  int64_t lhsRank = cast<ShapedType>(op.getLhs().getType()).getRank();
  int64_t rhsRank = cast<ShapedType>(op.getRhs().getType()).getRank();
  int64_t last = lhsRank - 1, first = 0;
  ProductDims dims({}, {}, last, first, lhsRank, rhsRank);
  low.set(op.getResult(), makeProduct(low, op, dims));
  return success();
}

} // namespace

ArrayRef<NamedFamily> contractionFamily() {
  static const NamedFamily all[] = {
      family<DotOp, lowerDot>(),
      family<DotGeneralOp, lowerDotGeneral>(),
  };
  return all;
}

} // namespace mgpu::conversion
