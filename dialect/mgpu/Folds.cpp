// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/Folds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace mgpu::ir {

using namespace mlir;

/// `type`, of a number, a vector or a tensor, with another element type.
static Type withElement(Type type, Type element) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped ? shaped.clone(element) : element;
}

/// The angle of two zeros is that of the first and of 1 with the sign of the
/// second, which is folded rightly.
static void guardZeros(math::Atan2Op op) {
  Value y = op.getLhs(), x = op.getRhs();
  auto shaped = dyn_cast<ShapedType>(op.getType());
  auto chosen = x.getDefiningOp<arith::SelectOp>();
  const bool isGuarded =
      chosen && chosen.getTrueValue().getDefiningOp<math::CopySignOp>();
  // A constant has a static shape.
  if (isGuarded || (shaped && !shaped.hasStaticShape()))
    return;
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(op.getType()));
  Value one = arith::ConstantOp::create(b, b.getOneAttr(op.getType()));
  auto isZero = [&](Value value) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, value, zero);
  };
  Value areZero = arith::AndIOp::create(b, isZero(y), isZero(x));
  Value signedOne = math::CopySignOp::create(b, one, x);
  op.getRhsMutable().set(arith::SelectOp::create(b, areZero, signedOne, x));
}

static void writeTruncation(Operation *cast, unsigned width) {
  Value from = cast->getOperand(0), to = cast->getResult(0);
  if (!getElementTypeOrSelf(from.getType()).isIndex() ||
      getElementTypeOrSelf(to.getType()).getIntOrFloatBitWidth() >= width)
    return;
  ImplicitLocOpBuilder b(cast->getLoc(), cast);
  Value word = arith::IndexCastOp::create(
      b, withElement(to.getType(), b.getI64Type()), from);
  to.replaceAllUsesWith(
      arith::TruncIOp::create(b, to.getType(), word).getResult());
  cast->erase();
}

bool avoidWrongFolds(Operation *root, unsigned width) {
  bool isFound = false;
  root->walk([&](Operation *op) {
    auto angle = dyn_cast<math::Atan2Op>(op);
    if (!angle && !isa<arith::IndexCastOp, arith::IndexCastUIOp>(op))
      return;
    isFound = true;
    if (angle)
      guardZeros(angle);
    else
      writeTruncation(op, width);
  });
  return isFound;
}

} // namespace mgpu::ir
