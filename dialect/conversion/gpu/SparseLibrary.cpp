// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/SparseLibrary.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

} // namespace mgpu::conversion
