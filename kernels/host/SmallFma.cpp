// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/SmallFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace mgpu::kernels {

/// a * b is exact in f64. The sum is rounded to odd there: where it is not
/// exact, the neighbour whose last bit is 1. Rounding that again to fewer bits
/// is as rounding the exact sum once (Boldo and Melquiond, "Emulation of a FMA
/// and correctly rounded sums", 2008). The part that the sum lost is found by
/// Knuth's two-sum.
static Value expand(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Type type = op->getResult(0).getType();
  auto shaped = [&](Type element) -> Type {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(element)) : element;
  };
  Type f64 = shaped(b.getF64Type()), i64 = shaped(b.getI64Type());
  auto constant = [&](Type type, TypedAttr scalar) -> Value {
    if (auto vector = dyn_cast<VectorType>(type))
      scalar = DenseElementsAttr::get(vector, Attribute(scalar));
    return arith::ConstantOp::create(b, loc, scalar);
  };
  auto whole = [&](int64_t value) {
    return constant(i64, b.getI64IntegerAttr(value));
  };
  auto wide = [&](Value value) -> Value {
    return arith::ExtFOp::create(b, loc, f64, value);
  };
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, loc, x, y);
  };
  auto minus = [&](Value x, Value y) -> Value {
    return arith::SubFOp::create(b, loc, x, y);
  };
  Value product = arith::MulFOp::create(b, loc, wide(op->getOperand(0)),
                                        wide(op->getOperand(1)));
  Value addend = wide(op->getOperand(2));
  Value sum = plus(product, addend);
  Value shadow = minus(sum, product);
  Value lost = plus(minus(product, minus(sum, shadow)), minus(addend, shadow));
  Value zero = constant(f64, b.getF64FloatAttr(0));
  // Ordered: infinities and NaNs lose nothing.
  Value inexact =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, lost, zero);
  Value bits = arith::BitcastOp::create(b, loc, i64, sum);
  Value even = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq,
      arith::AndIOp::create(b, loc, bits, whole(1)), whole(0));
  // One more in the bits is away from zero.
  Value outward = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq,
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, lost, zero),
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, sum, zero));
  Value odd = arith::AddIOp::create(
      b, loc, bits,
      arith::SelectOp::create(b, loc, outward, whole(1), whole(-1)));
  Value moves = arith::AndIOp::create(b, loc, inexact, even);
  Value result = arith::SelectOp::create(b, loc, moves, odd, bits);
  return arith::TruncFOp::create(
      b, loc, type, arith::BitcastOp::create(b, loc, f64, result).getResult());
}

void expandFma(ModuleOp module, bool ofF32) {
  const unsigned most = ofF32 ? 32 : 16;
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<math::FmaOp, vector::FMAOp>(op) &&
        getElementTypeOrSelf(op->getResult(0).getType())
                .getIntOrFloatBitWidth() <= most)
      found.push_back(op);
  });
  for (Operation *op : found) {
    op->getResult(0).replaceAllUsesWith(expand(op));
    op->erase();
  }
}

void splitSteps(ModuleOp module) {
  module.walk([](math::FmaOp op) {
    if (!getElementTypeOrSelf(op.getType()).isF64() ||
        !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::contract))
      return;
    OpBuilder b(op);
    Value product = arith::MulFOp::create(b, op.getLoc(), op.getA(), op.getB());
    op.replaceAllUsesWith(
        arith::AddFOp::create(b, op.getLoc(), op.getC(), product).getResult());
    op.erase();
  });
}

} // namespace mgpu::kernels
