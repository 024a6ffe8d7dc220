// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/ExpandProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

using Elements = SmallVector<Value>;

/// This lane's part of the factors of one m16n8k8 of tf32.
struct Slice {
  std::array<Value, 4> a;
  std::array<Value, 2> b;
};

/// Writes products in place of one operation.
class Products {
public:
  explicit Products(Operation *op) : op(op), b(op), loc(op->getLoc()) {}

  /// Elements in PTX's order, register by register.
  Elements elementsOf(Value vector);
  Value matrixOf(const Elements &elements, gpu::MMAMatrixType type);
  Elements product(const Elements &left, const Elements &right,
                   const Elements &sums, ArrayRef<int64_t> shape, Type factor);
  /// The sums and the products of all slices, in f32.
  Elements sumOf(ArrayRef<Slice> slices, Elements sums);
  void addSlices(ArrayRef<Slice> slices, Value sums);
  void give(const Elements &elements);

  Value asFloat(Value number);
  Value narrowed(Value number, Type type);
  Value saturated(Value sum, Value before);
  Value fromLane(Value value, Value lane);
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value word(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 32);
  }

  Operation *op;
  OpBuilder b;
  Location loc;
};

Elements Products::elementsOf(Value vector) {
  auto type = cast<VectorType>(vector.getType());
  Elements elements;
  for (int64_t k = 0; k < type.getNumElements(); ++k) {
    const int64_t columns = type.getDimSize(1);
    elements.push_back(vector::ExtractOp::create(
        b, loc, vector, ArrayRef<int64_t>{k / columns, k % columns}));
  }
  return elements;
}

Value Products::matrixOf(const Elements &elements, gpu::MMAMatrixType type) {
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value matrix = gpu::SubgroupMmaConstantMatrixOp::create(b, loc, type, zero);
  for (auto [k, element] : llvm::enumerate(elements))
    matrix = gpu::SubgroupMmaInsertThreadLocalOp::create(
        b, loc, type, element, matrix, index(int64_t(k)));
  return matrix;
}

Elements Products::product(const Elements &left, const Elements &right,
                           const Elements &sums, ArrayRef<int64_t> shape,
                           Type factor) {
  const int64_t m = shape[0], n = shape[1], k = shape[2];
  Type element = sums.front().getType();
  auto sum = gpu::MMAMatrixType::get({m, n}, element, "COp");
  Value product = gpu::SubgroupMmaComputeOp::create(
      b, loc, sum,
      matrixOf(left, gpu::MMAMatrixType::get({m, k}, factor, "AOp")),
      matrixOf(right, gpu::MMAMatrixType::get({k, n}, factor, "BOp")),
      matrixOf(sums, sum), UnitAttr(), UnitAttr());
  Elements elements;
  for (size_t at = 0; at < sums.size(); ++at)
    elements.push_back(gpu::SubgroupMmaExtractThreadLocalOp::create(
        b, loc, element, product, index(int64_t(at))));
  return elements;
}

Elements Products::sumOf(ArrayRef<Slice> slices, Elements sums) {
  for (const Slice &slice : slices) {
    Elements left, right;
    for (Value element : slice.a)
      left.push_back(asFloat(element));
    for (Value element : slice.b)
      right.push_back(asFloat(element));
    sums = product(left, right, sums, {16, 8, 8}, b.getF32Type());
  }
  return sums;
}

/// Null stands for zero.
Value Products::asFloat(Value number) {
  Type wide = b.getF32Type();
  if (!number)
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(wide));
  if (number.getType() == wide)
    return number;
  if (isa<IntegerType>(number.getType()))
    return arith::SIToFPOp::create(b, loc, wide, number);
  return arith::ExtFOp::create(b, loc, wide, number);
}

Value Products::narrowed(Value number, Type type) {
  return number.getType() == type
             ? number
             : arith::TruncFOp::create(b, loc, type, number).getResult();
}

/// Integers of 32 bits, whose products are whole numbers that f32 has.
Value Products::saturated(Value sum, Value before) {
  Type wide = b.getI64Type();
  auto limit = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  };
  Value more = arith::FPToSIOp::create(b, loc, wide, sum);
  Value all = arith::AddIOp::create(
      b, loc, more, arith::ExtSIOp::create(b, loc, wide, before));
  all = arith::MinSIOp::create(b, loc, all, limit(INT32_MAX));
  all = arith::MaxSIOp::create(b, loc, all, limit(INT32_MIN));
  return arith::TruncIOp::create(b, loc, before.getType(), all);
}

void Products::addSlices(ArrayRef<Slice> slices, Value sums) {
  Elements before = elementsOf(sums), start;
  Type type = before.front().getType();
  const bool isInteger = isa<IntegerType>(type);
  for (Value each : before)
    start.push_back(asFloat(isInteger ? Value() : each));
  Elements after = sumOf(slices, start);
  for (auto [now, then] : llvm::zip_equal(after, before))
    now = isInteger ? saturated(now, then) : narrowed(now, type);
  give(after);
}

void Products::give(const Elements &elements) {
  auto type = cast<VectorType>(op->getResult(0).getType());
  op->getResult(0).replaceAllUsesWith(
      vector::FromElementsOp::create(b, loc, type, elements).getResult());
  op->erase();
}

Value Products::fromLane(Value value, Value lane) {
  return gpu::ShuffleOp::create(b, loc, value, lane, word(32),
                                gpu::ShuffleMode::IDX)
      .getShuffleResult();
}

VectorType typeOf(Value vector) { return cast<VectorType>(vector.getType()); }

bool isSixteen(Type type) { return type.isF16() || type.isBF16(); }

/// The slices of a product of 16 rows: register 2 c of A has this lane's
/// elements of row g and chunk c of k, register 2 c + 1 those of row g + 8;
/// register c of B those of the same k.
SmallVector<Slice> slicesOf(Products &at, Value left, Value right) {
  Elements a = at.elementsOf(left), b = at.elementsOf(right);
  const int64_t side = typeOf(left).getDimSize(1),
                chunks = typeOf(right).getDimSize(0);
  SmallVector<Slice> slices;
  if (side == 1)
    return {Slice{{a[0], a[1], Value(), Value()}, {b[0], Value()}}};
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (int64_t k = 0; k < side; k += 2) {
      const size_t upper = size_t(2 * chunk * side + k),
                   lower = upper + size_t(side),
                   below = size_t(chunk * side + k);
      slices.push_back({{a[upper], a[lower], a[upper + 1], a[lower + 1]},
                        {b[below], b[below + 1]}});
    }
  return slices;
}

/// The two values that a lane has of each four of A, among zeros: row `row` (0
/// for g, 1 for g + 8) and half `half` of k, at 4 t and behind.
Elements fourOf(Products &at, const Elements &a, const Elements &places,
                int64_t row, int64_t half) {
  OpBuilder &b = at.b;
  Elements four;
  const size_t first = size_t(2 * (2 * half + row));
  for (int64_t k = 0; k < 4; ++k) {
    Value found = at.asFloat(Value());
    for (size_t e = 0; e < 2; ++e) {
      Value here = arith::CmpIOp::create(
          b, at.loc, arith::CmpIPredicate::eq,
          places[size_t(2 * (2 * half + row)) + e], at.word(k));
      found = arith::SelectOp::create(b, at.loc, here, at.asFloat(a[first + e]),
                                      found);
    }
    four.push_back(found);
  }
  return four;
}

/// Where each element of A stands among its four: two bits, which the lanes of
/// a quad that `selector` names have for all four lanes.
Elements placesOf(Products &at, Value metadata, int64_t selector, Value quad,
                  Value thread) {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  Elements places;
  for (int64_t half = 0; half < 2; ++half) {
    Value from =
        arith::AddIOp::create(b, loc, quad, at.word(2 * selector + half));
    for (int64_t row = 0; row < 2; ++row) {
      Value bits = vector::ExtractOp::create(b, loc, metadata, row);
      bits = at.fromLane(arith::ExtUIOp::create(b, loc, b.getI32Type(), bits),
                         from);
      for (int64_t e = 0; e < 2; ++e) {
        Value shift = arith::AddIOp::create(
            b, loc, arith::MulIOp::create(b, loc, thread, at.word(4)),
            at.word(2 * e));
        Value moved = arith::ShRUIOp::create(b, loc, bits, shift);
        places.push_back(arith::AndIOp::create(b, loc, moved, at.word(3)));
      }
    }
  }
  return places;
}

/// Rows 4 t to 4 t + 3 of a half of B, which other lanes of the quad have.
Elements rowsOf(Products &at, const Elements &right, int64_t half, Value quad,
                Value thread) {
  OpBuilder &b = at.b;
  Location loc = at.loc;
  Value odd = arith::AndIOp::create(b, loc, thread, at.word(1));
  Value isUpper = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge,
                                        thread, at.word(2));
  Elements rows;
  for (int64_t k = 0; k < 4; ++k) {
    Value twice = arith::MulIOp::create(b, loc, odd, at.word(2));
    Value lane = arith::AddIOp::create(b, loc, quad, twice);
    lane = arith::AddIOp::create(b, loc, lane, at.word(k / 2));
    auto from = [&](int64_t part) {
      const size_t element = size_t(2 * (2 * half + part) + k % 2);
      return at.fromLane(at.asFloat(right[element]), lane);
    };
    Value lower = from(0), upper = from(1);
    rows.push_back(arith::SelectOp::create(b, loc, isUpper, upper, lower));
  }
  return rows;
}

} // namespace

void expandProduct(nvgpu::MmaSyncOp op) {
  const std::array<int64_t, 3> shape = op.getMmaShapeAsArray();
  Type factor = op.getMatrixA().getType().getElementType();
  auto is = [&](int64_t m, int64_t n, int64_t k) {
    return shape == std::array<int64_t, 3>{m, n, k};
  };
  Products at(op);
  const bool isTf32 = factor.isF32() && op.getTf32Enabled();
  if ((factor.isF16() && is(16, 8, 16)) || (isTf32 && is(16, 8, 8)) ||
      (factor.isF64() && is(8, 8, 4))) {
    at.give(at.product(at.elementsOf(op.getMatrixA()),
                       at.elementsOf(op.getMatrixB()),
                       at.elementsOf(op.getMatrixC()), shape, factor));
    return;
  }
  const bool hasSlices =
      (isSixteen(factor) && (is(16, 8, 16) || is(16, 8, 8))) ||
      (isTf32 && is(16, 8, 4)) ||
      (factor.isInteger(8) && (is(16, 8, 32) || is(16, 8, 16)));
  if (hasSlices)
    at.addSlices(slicesOf(at, op.getMatrixA(), op.getMatrixB()),
                 op.getMatrixC());
}

void expandProduct(nvgpu::MmaSparseSyncOp op) {
  const std::array<int64_t, 3> shape = op.getMmaShapeAsArray();
  Type factor = op.getMatrixA().getType().getElementType();
  const int64_t selector = op.getSparsitySelector();
  if (!isSixteen(factor) || shape != std::array<int64_t, 3>{16, 8, 32} ||
      selector < 0 || selector > 1)
    return;
  Products at(op);
  OpBuilder &b = at.b;
  Location loc = at.loc;
  Value lane = arith::IndexCastOp::create(
      b, loc, b.getI32Type(), gpu::LaneIdOp::create(b, loc, nullptr));
  Value thread = arith::AndIOp::create(b, loc, lane, at.word(3));
  Value quad = arith::SubIOp::create(b, loc, lane, thread);
  Elements a = at.elementsOf(op.getMatrixA()),
           right = at.elementsOf(op.getMatrixB());
  Elements places =
      placesOf(at, op.getSparseMetadata(), selector, quad, thread);
  SmallVector<Slice> slices;
  for (int64_t half = 0; half < 2; ++half) {
    Elements upper = fourOf(at, a, places, 0, half),
             lower = fourOf(at, a, places, 1, half),
             rows = rowsOf(at, right, half, quad, thread);
    for (size_t k = 0; k < 4; k += 2)
      slices.push_back({{upper[k], lower[k], upper[k + 1], lower[k + 1]},
                        {rows[k], rows[k + 1]}});
  }
  at.addSlices(slices, op.getMatrixC());
}

} // namespace mgpu::kernels
