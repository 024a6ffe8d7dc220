// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/SmallFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// A format of 1 sign, `exponent` and `mantissa` bits.
struct Format {
  unsigned exponent, mantissa;
  bool hasInfinity; ///< else only all ones is NaN
  unsigned width() const { return 1 + exponent + mantissa; }
  int64_t bias() const { return (int64_t(1) << (exponent - 1)) - 1; }
  int64_t magnitude() const {
    return int64_t((uint64_t(1) << (exponent + mantissa)) - 1);
  }
  int64_t infinity() const {
    return ((int64_t(1) << exponent) - 1) << mantissa;
  }
  int64_t nan() const {
    return hasInfinity ? infinity() | int64_t(1) << (mantissa - 1)
                       : magnitude();
  }
};

constexpr Format single{8, 23, true}, twice{11, 52, true};

std::optional<Format> smallFormat(Type type, bool withHalf) {
  Type element = getElementTypeOrSelf(type);
  if (isa<Float8E4M3FNType>(element))
    return Format{4, 3, false};
  if (isa<Float8E5M2Type>(element))
    return Format{5, 2, true};
  if (element.isBF16())
    return Format{8, 7, true};
  if (withHalf && element.isF16())
    return Format{5, 10, true};
  return std::nullopt;
}

/// Builds on integers or floats of `shape`'s shape.
class Expander {
public:
  explicit Expander(Operation *op) : b(op), loc(op->getLoc()) {}

  Value extend(Value value, Format from, Type to);
  Value truncate(Value value, Format to, Type type);

private:
  using Predicate = arith::CmpIPredicate;

  Type shaped(Type element) {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? vector.clone(element) : element;
  }
  Type integer(unsigned width) { return shaped(b.getIntegerType(width)); }
  Value constant(int64_t value, unsigned width) {
    IntegerAttr scalar = b.getIntegerAttr(b.getIntegerType(width), value);
    TypedAttr attribute = scalar;
    if (auto vector = dyn_cast<VectorType>(integer(width)))
      attribute = DenseElementsAttr::get(vector, scalar.getValue());
    return arith::ConstantOp::create(b, loc, attribute);
  }
  template <typename Op>
  Value make(Value x, Value y) {
    return Op::create(b, loc, x, y);
  }
  Value cast(Value value, Type type) {
    return arith::BitcastOp::create(b, loc, type, value);
  }
  Value compare(Predicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }

  OpBuilder b;
  Location loc;
  Type shape;
};

Value Expander::extend(Value value, Format from, Type to) {
  shape = value.getType();
  Value bits = cast(value, integer(from.width()));
  bits = arith::ExtUIOp::create(b, loc, integer(32), bits);
  Value sign = make<arith::ShLIOp>(
      make<arith::ShRUIOp>(bits, constant(from.width() - 1, 32)),
      constant(31, 32));
  Value magnitude = make<arith::AndIOp>(bits, constant(from.magnitude(), 32));
  Value result = make<arith::ShLIOp>(
      magnitude, constant(single.mantissa - from.mantissa, 32));
  if (from.exponent != single.exponent) {
    // In single's fields the value is too small by a power of two; the product
    // is exact, also for subnormals.
    Value scale =
        cast(constant((single.bias() + single.bias() - from.bias()) << 23, 32),
             shaped(b.getF32Type()));
    result = cast(make<arith::MulFOp>(cast(result, scale.getType()), scale),
                  integer(32));
    if (from.hasInfinity)
      result = select(
          compare(Predicate::eq, magnitude, constant(from.infinity(), 32)),
          constant(single.infinity(), 32), result);
  }
  Value isNan =
      from.hasInfinity
          ? compare(Predicate::ugt, magnitude, constant(from.infinity(), 32))
          : compare(Predicate::eq, magnitude, constant(from.nan(), 32));
  result = select(isNan, constant(single.nan(), 32), result);
  result = cast(make<arith::OrIOp>(result, sign), shaped(b.getF32Type()));
  unsigned width = getElementTypeOrSelf(to).getIntOrFloatBitWidth();
  if (width == 64)
    return arith::ExtFOp::create(b, loc, to, result);
  return width == 32 ? result
                     : arith::TruncFOp::create(b, loc, to, result).getResult();
}

Value Expander::truncate(Value value, Format to, Type type) {
  shape = value.getType();
  unsigned width = getElementTypeOrSelf(shape).getIntOrFloatBitWidth();
  if (width < 32) {
    width = 32;
    value = arith::ExtFOp::create(b, loc, shaped(b.getF32Type()), value);
    shape = value.getType();
  }
  Format from = width == 64 ? twice : single;
  auto number = [&](int64_t value) { return constant(value, width); };
  Value bits = cast(value, integer(width));
  Value magnitude = make<arith::AndIOp>(bits, number(from.magnitude()));
  // A normal result: the exponent rebased, the mantissa's tail rounded off.
  int64_t shift = from.mantissa - to.mantissa;
  Value rebased = make<arith::SubIOp>(
      magnitude, number((from.bias() - to.bias()) << from.mantissa));
  Value odd = make<arith::AndIOp>(make<arith::ShRUIOp>(rebased, number(shift)),
                                  number(1));
  Value half =
      make<arith::AddIOp>(odd, number((int64_t(1) << (shift - 1)) - 1));
  Value rounded =
      make<arith::ShRUIOp>(make<arith::AddIOp>(rebased, half), number(shift));
  if (from.exponent != to.exponent) {
    // A subnormal result: added to a number whose last bit is worth as much as
    // the result's last bit, the value is rounded by the addition.
    int64_t exponent =
        1 - to.bias() - int64_t(to.mantissa) + int64_t(from.mantissa);
    Value magic = number((from.bias() + exponent) << from.mantissa);
    Value sum = make<arith::AddFOp>(cast(magnitude, shape), cast(magic, shape));
    Value subnormal = make<arith::SubIOp>(cast(sum, integer(width)), magic);
    Value isSmall =
        compare(Predicate::ult, magnitude,
                number((from.bias() - to.bias() + 1) << from.mantissa));
    rounded = select(isSmall, subnormal, rounded);
  }
  rounded = make<arith::MinUIOp>(
      rounded, number(to.hasInfinity ? to.infinity() : to.nan()));
  rounded = select(compare(Predicate::ugt, magnitude, number(from.infinity())),
                   number(to.nan()), rounded);
  Value sign = make<arith::ShLIOp>(
      make<arith::ShRUIOp>(bits, number(width - 1)), number(to.width() - 1));
  Value result = arith::TruncIOp::create(b, loc, integer(to.width()),
                                         make<arith::OrIOp>(rounded, sign));
  return cast(result, type);
}

/// An f8 or bf16 constant as its bits.
void expandConstant(arith::ConstantOp op) {
  Type type = op.getType();
  OpBuilder b(op);
  TypedAttr bits;
  if (auto scalar = dyn_cast<FloatAttr>(op.getValue()))
    bits = b.getIntegerAttr(
        b.getIntegerType(scalar.getType().getIntOrFloatBitWidth()),
        scalar.getValue().bitcastToAPInt());
  else if (auto dense = dyn_cast<DenseFPElementsAttr>(op.getValue()))
    bits = dense.bitcast(
        b.getIntegerType(dense.getElementType().getIntOrFloatBitWidth()));
  else
    return;
  Value value = arith::ConstantOp::create(b, op.getLoc(), bits);
  op.replaceAllUsesWith(
      arith::BitcastOp::create(b, op.getLoc(), type, value).getResult());
  op.erase();
}

} // namespace

void expandSmallFloats(ModuleOp module, bool withHalf) {
  SmallVector<Operation *> truncations, extensions;
  SmallVector<arith::ConstantOp> constants;
  module.walk([&](Operation *op) {
    if (isa<arith::TruncFOp>(op) &&
        smallFormat(op->getResult(0).getType(),
                    withHalf ||
                        getElementTypeOrSelf(op->getOperand(0)).isF64()))
      truncations.push_back(op);
    else if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
             smallFormat(op->getOperand(0).getType(), withHalf))
      extensions.push_back(op);
    else if (auto constant = dyn_cast<arith::ConstantOp>(op);
             constant && isa<Float8E4M3FNType, Float8E5M2Type, BFloat16Type>(
                             getElementTypeOrSelf(constant.getType())))
      constants.push_back(constant);
  });
  auto replace = [](Operation *op, Value value) {
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  };
  for (Operation *op : truncations) {
    Type type = op->getResult(0).getType();
    Value source = op->getOperand(0);
    // Between two small formats by way of single, exact in its first half.
    if (auto from = smallFormat(source.getType(), withHalf)) {
      Type f32 = Float32Type::get(op->getContext());
      auto vector = dyn_cast<VectorType>(type);
      source = Expander(op).extend(source, *from,
                                   vector ? Type(vector.clone(f32)) : f32);
    }
    replace(op, Expander(op).truncate(source, *smallFormat(type, true), type));
  }
  for (Operation *op : extensions) {
    Value source = op->getOperand(0);
    Type type = op->getResult(0).getType();
    auto to = smallFormat(type, withHalf);
    Type f32 = Float32Type::get(op->getContext());
    if (auto vector = dyn_cast<VectorType>(type))
      f32 = vector.clone(f32);
    Value value = Expander(op).extend(
        source, *smallFormat(source.getType(), withHalf), to ? f32 : type);
    replace(op, to ? Expander(op).truncate(value, *to, type) : value);
  }
  for (arith::ConstantOp op : constants)
    expandConstant(op);
  // From here on nothing computes with bf16. LLVM 22 makes a bfloat's fabs of
  // bits that are masked, and for x86-64 then loses its sign, which other bits
  // of it are taken for.
  AttrTypeReplacer replacer;
  replacer.addReplacement([](BFloat16Type type) -> std::optional<Type> {
    return IntegerType::get(type.getContext(), 16);
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

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
