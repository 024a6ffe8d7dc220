// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/SparseProducts.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The values are those of SparseProduct::Kind.
enum class Kind : uint32_t { Vector, Matrix, Sampled };

struct Offer {
  Kind kind;
  bool isFirstTurned = false, isSecondTurned = false;
  Value rows, columns, breadth; ///< breadth: null, which is 1
  Value first, second;
};

/// Whether sums have the type that the library's have.
bool isSummedIn(Value memory, Type computed) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  return isa<FloatType>(element) &&
         (element.isF64() ? computed.isF64() : computed.isF32());
}

/// The memory is noted by operations of no effect, as a gpu.launch has no
/// arguments; takeSparse() finds them.
void offer(gpu::LaunchOp launch, const SparseMatrix &s, const Offer &what,
           Type computed) {
  if (!launch || s.form != SparseMatrix::Form::Compressed ||
      !isSummedIn(s.values, computed))
    return;
  SmallVector<int64_t> sizes;
  for (Value size : {what.rows, what.columns, s.entries, what.breadth}) {
    const auto known = size ? getConstantIntValue(size) : std::optional(1L);
    if (!known || *known <= 0)
      return;
    sizes.push_back(*known);
  }
  launch->setAttr(
      ir::sparseName,
      ir::SparseProductAttr::get(launch.getContext(), uint32_t(what.kind),
                                 sizes[0], sizes[1], sizes[2], sizes[3],
                                 what.isFirstTurned, what.isSecondTurned, {}));
  OpBuilder b = OpBuilder::atBlockBegin(&launch.getBody().front());
  for (Value memory :
       {s.positions, s.indices, s.values, what.first, what.second})
    ir::setMark(memref::ExtractAlignedPointerAsIndexOp::create(
                    b, launch.getLoc(), memory),
                ir::Mark::SparseOperand);
}

} // namespace

void offerVector(gpu::LaunchOp launch, const SparseMatrix &s, bool isTransposed,
                 const DenseTensor &b, const DenseTensor &c, Type computed) {
  if (s.hasRows == isTransposed)
    return;
  offer(launch, s,
        {Kind::Vector, false, false, isTransposed ? s.columns : s.rows,
         isTransposed ? s.rows : s.columns, Value(), b.values, c.values},
        computed);
}

void offerMatrix(gpu::LaunchOp launch, const SparseMatrix &s, bool isTransposed,
                 const DenseTensor &b, bool isSecond, const DenseTensor &c,
                 Type computed) {
  if (s.hasRows == isTransposed)
    return;
  offer(launch, s,
        {Kind::Matrix, isSecond, false, isTransposed ? s.columns : s.rows,
         isTransposed ? s.rows : s.columns, c.sizes[1], b.values, c.values},
        computed);
}

void offerSampled(gpu::LaunchOp launch, const SparseMatrix &s,
                  const DenseTensor &a, bool isFirst, const DenseTensor &b,
                  bool isSecond, Type computed) {
  Value terms = a.sizes[isFirst ? 0 : 1];
  // By columns it is the transposed product, (a * b)' = b' * a'.
  if (s.hasRows)
    return offer(launch, s,
                 {Kind::Sampled, isFirst, isSecond, s.rows, s.columns, terms,
                  a.values, b.values},
                 computed);
  offer(launch, s,
        {Kind::Sampled, !isSecond, !isFirst, s.columns, s.rows, terms, b.values,
         a.values},
        computed);
}

void takeSparse(Operation *op, ir::LaunchOp made) {
  Attribute figures = op->getAttr(ir::sparseName);
  if (!figures)
    return;
  SmallVector<Operation *> notes;
  made.walk([&](memref::ExtractAlignedPointerAsIndexOp each) {
    if (ir::hasMark(each, ir::Mark::SparseOperand))
      notes.push_back(each);
  });
  SmallVector<Value> memories;
  for (Operation *note : notes) {
    memories.push_back(note->getOperand(0));
    note->erase();
  }
  made.getArgsMutable().assign(memories);
  made->setAttr(ir::sparseName, figures);
}

namespace {

bool isTransposed(gpu::TransposeMode mode) {
  return mode != gpu::TransposeMode::NON_TRANSPOSE; // numbers are real
}

Type elementOf(Value memory) {
  return cast<MemRefType>(memory.getType()).getElementType();
}

/// The type that sums have; null, after a diagnostic, where there is none.
Type sumType(Operation *op, Type computed, ValueRange memories) {
  if (auto number = dyn_cast<FloatType>(computed))
    return number.getWidth() < 32 ? Float32Type::get(op->getContext())
                                  : computed;
  const bool areIntegers = llvm::none_of(
      memories, [](Value memory) { return isa<FloatType>(elementOf(memory)); });
  if (computed.isSignlessInteger() && areIntegers)
    return computed;
  ir::emitUnsupported(op) << "computes in " << computed << " what is not of it";
  return {};
}

Value zeroOf(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

Value sum(OpBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::AddFOp::create(b, x.getLoc(), x, y);
  return arith::AddIOp::create(b, x.getLoc(), x, y);
}

Value product(OpBuilder &b, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return arith::MulFOp::create(b, x.getLoc(), x, y);
  return arith::MulIOp::create(b, x.getLoc(), x, y);
}

void addTo(OpBuilder &b, Value memory, Value at, Value number) {
  Value all = sum(b, number, numberAt(b, memory, at, number.getType()));
  memref::StoreOp::create(b, at.getLoc(), converted(b, all, elementOf(memory)),
                          memory, at);
}

/// Where element (row, column) of the matrix, or of its transposed one, lies.
Value placeIn(OpBuilder &b, const DenseTensor &matrix, bool isTransposed,
              Value row, Value column) {
  Location loc = row.getLoc();
  if (isTransposed)
    std::swap(row, column);
  Value line = arith::MulIOp::create(b, loc, row, matrix.sizes[1]);
  return arith::AddIOp::create(b, loc, line, column);
}

Value constant(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

} // namespace

LogicalResult compute(gpu::SpMVOp op, SparseHandles &handles,
                      SparseLaunches &launches) {
  const SparseMatrix *a = handles.matrix(op, op.getSpmatA());
  const DenseTensor *x = handles.tensor(op, op.getDnX(), 1);
  const DenseTensor *y = handles.tensor(op, op.getDnY(), 1);
  if (!a || !x || !y)
    return failure();
  Type type =
      sumType(op, op.getComputeType(), {a->values, x->values, y->values});
  if (!type)
    return failure();
  const bool transposed = isTransposed(op.getModeA());
  gpu::LaunchOp launch = launches.add(
      "spmv", transposed ? a->columns : a->rows, [&](OpBuilder &b, Value row) {
        Value total =
            forEntriesOfRow(
                b, *a, transposed, row, zeroOf(b, op.getLoc(), type),
                [&](OpBuilder &in, Value column, Value at, ValueRange carried) {
                  Value term = product(in, numberAt(in, a->values, at, type),
                                       numberAt(in, x->values, column, type));
                  return SmallVector<Value>{sum(in, carried[0], term)};
                })
                .front();
        addTo(b, y->values, row, total);
      });
  offerVector(launch, *a, transposed, *x, *y, type);
  return success();
}

LogicalResult compute(gpu::SpMMOp op, SparseHandles &handles,
                      SparseLaunches &launches) {
  const SparseMatrix *a = handles.matrix(op, op.getSpmatA());
  const DenseTensor *right = handles.tensor(op, op.getDnmatB(), 2);
  const DenseTensor *c = handles.tensor(op, op.getDnmatC(), 2);
  if (!a || !right || !c)
    return failure();
  Type type =
      sumType(op, op.getComputeType(), {a->values, right->values, c->values});
  if (!type)
    return failure();
  const bool first = isTransposed(op.getModeA()),
             second = isTransposed(op.getModeB());
  Location loc = op.getLoc();
  Value count = launches.builder().createOrFold<arith::MulIOp>(
      loc, first ? a->columns : a->rows, c->sizes[1]);
  gpu::LaunchOp launch =
      launches.add("spmm", count, [&](OpBuilder &b, Value place) {
        Value row = arith::DivUIOp::create(b, loc, place, c->sizes[1]);
        Value column = arith::RemUIOp::create(b, loc, place, c->sizes[1]);
        Value total =
            forEntriesOfRow(
                b, *a, first, row, zeroOf(b, loc, type),
                [&](OpBuilder &in, Value k, Value at, ValueRange carried) {
                  Value from = placeIn(in, *right, second, k, column);
                  Value term = product(in, numberAt(in, a->values, at, type),
                                       numberAt(in, right->values, from, type));
                  return SmallVector<Value>{sum(in, carried[0], term)};
                })
                .front();
        addTo(b, c->values, place, total);
      });
  offerMatrix(launch, *a, first, *right, second, *c, type);
  return success();
}

LogicalResult compute(gpu::SDDMMOp op, SparseHandles &handles,
                      SparseLaunches &launches) {
  const DenseTensor *left = handles.tensor(op, op.getDnmatA(), 2);
  const DenseTensor *right = handles.tensor(op, op.getDnmatB(), 2);
  const SparseMatrix *c = handles.matrix(op, op.getSpmatC());
  if (!left || !right || !c)
    return failure();
  Type type = sumType(op, op.getComputeType(),
                      {left->values, right->values, c->values});
  if (!type)
    return failure();
  const bool first = isTransposed(op.getModeA()),
             second = isTransposed(op.getModeB());
  Location loc = op.getLoc();
  Value length = left->sizes[first ? 0 : 1];
  auto sample = [&](OpBuilder &b, Value row, Value column, Value at) {
    auto loop = scf::ForOp::create(
        b, loc, constant(b, loc, 0), length, constant(b, loc, 1),
        ValueRange{zeroOf(b, loc, type)},
        [&](OpBuilder &in, Location, Value k, ValueRange carried) {
          Value x = numberAt(in, left->values,
                             placeIn(in, *left, first, row, k), type);
          Value y = numberAt(in, right->values,
                             placeIn(in, *right, second, k, column), type);
          scf::YieldOp::create(
              in, loc, ValueRange{sum(in, carried[0], product(in, x, y))});
        });
    addTo(b, c->values, at, loop.getResult(0));
  };
  // Rows are those of the memory: columns of CSC.
  const bool byColumns = !c->hasRows;
  gpu::LaunchOp launch = launches.add(
      "sddmm", byColumns ? c->columns : c->rows, [&](OpBuilder &b, Value row) {
        forEntriesOfRow(b, *c, byColumns, row, {},
                        [&](OpBuilder &in, Value column, Value at, ValueRange) {
                          sample(in, byColumns ? column : row,
                                 byColumns ? row : column, at);
                          return SmallVector<Value>();
                        });
      });
  offerSampled(launch, *c, *left, first, *right, second, type);
  return success();
}

namespace {

/// A product of two sparse matrices.
struct SparseProduct {
  const SparseMatrix *a, *b, *c;
  bool isTransposedA, isTransposedB;

  /// Whether the product has an entry in a column of a row, and, with a type,
  /// the sum there.
  SmallVector<Value> entry(OpBuilder &at, Value row, Value column,
                           Type type) const;
};

template <typename Op>
FailureOr<SparseProduct> productOf(Op op, SparseHandles &handles) {
  const SparseProduct found{
      handles.matrix(op, op.getSpmatA()), handles.matrix(op, op.getSpmatB()),
      handles.matrix(op, op.getSpmatC()), isTransposed(op.getModeA()),
      isTransposed(op.getModeB())};
  if (!found.a || !found.b || !found.c)
    return failure();
  if (found.c->form != SparseMatrix::Form::Compressed || !found.c->hasRows)
    return ir::emitUnsupported(op) << "gives a matrix that is not CSR";
  return found;
}

SmallVector<Value> SparseProduct::entry(OpBuilder &at, Value row, Value column,
                                        Type type) const {
  Location loc = row.getLoc();
  SmallVector<Value> start{arith::ConstantIntOp::create(at, loc, 0, 1)};
  if (type)
    start.push_back(zeroOf(at, loc, type));
  auto term = [&](OpBuilder &in, Value x, Value place, ValueRange carried) {
    SmallVector<Value> next{arith::ConstantIntOp::create(in, loc, 1, 1)};
    if (type)
      next.push_back(sum(in, carried[1],
                         product(in, x, numberAt(in, b->values, place, type))));
    return next;
  };
  return forEntriesOfRow(
      at, *a, isTransposedA, row, start,
      [&](OpBuilder &outer, Value k, Value place, ValueRange carried) {
        Value x = type ? numberAt(outer, a->values, place, type) : Value();
        return forEntriesOfRow(
            outer, *b, isTransposedB, k, carried,
            [&](OpBuilder &in, Value found, Value from, ValueRange inner) {
              Value same = arith::CmpIOp::create(
                  in, loc, arith::CmpIPredicate::eq, found, column);
              SmallVector<Value> before(inner);
              auto branch = scf::IfOp::create(
                  in, loc, same,
                  [&](OpBuilder &then, Location) {
                    scf::YieldOp::create(then, loc,
                                         term(then, x, from, before));
                  },
                  [&](OpBuilder &other, Location) {
                    scf::YieldOp::create(other, loc, before);
                  });
              return SmallVector<Value>(branch.getResults());
            });
      });
}

void storeIndex(OpBuilder &b, Value memory, Value at, Value index) {
  if (Type type = elementOf(memory); !type.isIndex())
    index = arith::IndexCastOp::create(b, at.getLoc(), type, index);
  memref::StoreOp::create(b, at.getLoc(), index, memory, at);
}

} // namespace

LogicalResult compute(gpu::SpGEMMWorkEstimationOrComputeOp op,
                      SparseHandles &handles, SparseLaunches &launches) {
  FailureOr<SparseProduct> found = productOf(op, handles);
  if (failed(found))
    return failure();
  if (op.getKind() != gpu::SpGEMMWorkEstimationOrComputeKind::COMPUTE)
    return success();
  handles.markProduct(op.getSpmatC());
  const SparseMatrix &c = *found->c;
  Location loc = op.getLoc();
  launches.add("spgemm_count", c.rows, [&](OpBuilder &b, Value row) {
    Value zero = constant(b, loc, 0), one = constant(b, loc, 1);
    auto loop = scf::ForOp::create(
        b, loc, zero, c.columns, one, ValueRange{zero},
        [&](OpBuilder &in, Location, Value column, ValueRange carried) {
          Value has = found->entry(in, row, column, Type()).front();
          Value more = arith::SelectOp::create(in, loc, has, one, zero);
          Value all = arith::AddIOp::create(in, loc, carried[0], more);
          scf::YieldOp::create(in, loc, all);
        });
    storeIndex(b, c.positions, arith::AddIOp::create(b, loc, row, one),
               loop.getResult(0));
  });
  Value single = constant(launches.builder(), loc, 1);
  launches.add("spgemm_positions", single, [&](OpBuilder &b, Value) {
    Value zero = constant(b, loc, 0), one = constant(b, loc, 1);
    storeIndex(b, c.positions, zero, zero);
    scf::ForOp::create(
        b, loc, zero, c.rows, one, ValueRange{zero},
        [&](OpBuilder &in, Location, Value row, ValueRange carried) {
          Value next = arith::AddIOp::create(in, loc, row, one);
          Value all = arith::AddIOp::create(in, loc, carried[0],
                                            indexAt(in, c.positions, next));
          storeIndex(in, c.positions, next, all);
          scf::YieldOp::create(in, loc, all);
        });
  });
  return success();
}

LogicalResult compute(gpu::SpGEMMCopyOp op, SparseHandles &handles,
                      SparseLaunches &launches) {
  FailureOr<SparseProduct> found = productOf(op, handles);
  if (failed(found))
    return failure();
  const SparseMatrix &c = *found->c;
  Type type = sumType(op, op.getComputeType(),
                      {found->a->values, found->b->values, c.values});
  if (!type)
    return failure();
  Location loc = op.getLoc();
  launches.add("spgemm", c.rows, [&](OpBuilder &b, Value row) {
    Value zero = constant(b, loc, 0), one = constant(b, loc, 1);
    scf::ForOp::create(
        b, loc, zero, c.columns, one, ValueRange{indexAt(b, c.positions, row)},
        [&](OpBuilder &in, Location, Value column, ValueRange carried) {
          Value at = carried[0];
          SmallVector<Value> entry = found->entry(in, row, column, type);
          auto branch =
              scf::IfOp::create(in, loc, entry[0], /*withElseRegion=*/false);
          OpBuilder then = OpBuilder::atBlockBegin(branch.thenBlock());
          storeIndex(then, c.indices, at, column);
          memref::StoreOp::create(
              then, loc, converted(then, entry[1], elementOf(c.values)),
              c.values, at);
          Value step = arith::SelectOp::create(in, loc, entry[0], one, zero);
          scf::YieldOp::create(
              in, loc, ValueRange{arith::AddIOp::create(in, loc, at, step)});
        });
  });
  return success();
}

} // namespace mgpu::conversion
