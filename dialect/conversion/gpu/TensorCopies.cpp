// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of parts of tensors, as tensor maps describe them.
#include "dialect/conversion/gpu/BulkOps.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

Value constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

} // namespace

int64_t swizzleSpan(nvgpu::TensorMapSwizzleKind kind) {
  switch (kind) {
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_NONE:
    return 0;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_32B:
    return 32;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_64B:
    return 64;
  case nvgpu::TensorMapSwizzleKind::SWIZZLE_128B:
    return 128;
  }
  llvm_unreachable("all kinds are covered");
}

Value swizzled(OpBuilder &b, Value column, Value row, int64_t bytes,
               nvgpu::TensorMapSwizzleKind kind) {
  const int64_t span = swizzleSpan(kind), part = 16 / bytes;
  if (span == 0)
    return column;
  Location loc = column.getLoc();
  auto index = [&](int64_t value) { return constantIndex(b, loc, value); };
  // Parts of 16 bytes change places with those of other numbers in the row, by
  // the number of the 128 bytes that they lie in.
  Value line = arith::DivUIOp::create(b, loc, row, index(128 / span));
  Value turn = arith::RemUIOp::create(b, loc, line, index(span / 16));
  Value number = arith::DivUIOp::create(b, loc, column, index(part));
  Value within = arith::RemUIOp::create(b, loc, column, index(part));
  Value moved = arith::XOrIOp::create(b, loc, number, turn);
  return arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, moved, index(part)), within);
}

FailureOr<TensorBox> tensorBoxOf(Operation *op, Value descriptor) {
  auto made = descriptor.getDefiningOp<nvgpu::TmaCreateDescriptorOp>();
  if (!made)
    return ir::emitUnsupported(op)
           << "uses a tensor map whose making the text of the "
              "program does not show";
  TensorBox box{made.getTensor(), {}, made.getTensorMap().getType()};
  while (auto cast = box.tensor.getDefiningOp<memref::CastOp>())
    box.tensor = cast.getSource();
  for (Value size : made.getBoxDimensions()) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known)
      return ir::emitUnsupported(op)
             << "uses a tensor map of a box whose sizes are not "
                "constants";
    box.sizes.push_back(*known);
  }
  auto type = dyn_cast<MemRefType>(box.tensor.getType());
  if (!type || type.getRank() != int64_t(box.sizes.size()) ||
      box.map.getInterleave() !=
          nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE)
    return ir::emitUnsupported(op)
           << "uses a tensor map that is interleaved, or not of a "
              "memref of the box's rank";
  return box;
}

/// The memory that a box is copied to or from has no gaps, whatever strides the
/// memref has that says where it begins.
static Value withoutGaps(OpBuilder &b, Value memory) {
  auto type = cast<MemRefType>(memory.getType());
  SmallVector<int64_t> strides, wanted(type.getRank(), 1);
  int64_t offset = 0, step = 1;
  for (int64_t dim = type.getRank(); dim-- > 0; step *= type.getDimSize(dim))
    wanted[dim] = step;
  if (failed(type.getStridesAndOffset(strides, offset)) || strides == wanted)
    return memory;
  Location loc = memory.getLoc();
  auto parts = memref::ExtractStridedMetadataOp::create(b, loc, memory);
  auto index = [&](int64_t value) -> OpFoldResult {
    return b.getIndexAttr(value);
  };
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, wanted);
  return memref::ReinterpretCastOp::create(
      b, loc,
      MemRefType::get(type.getShape(), type.getElementType(), layout,
                      type.getMemorySpace()),
      memory, OpFoldResult(parts.getOffset()),
      llvm::map_to_vector(type.getShape(), index),
      llvm::map_to_vector(wanted, index));
}

/// Element `ids` of the box, by the thread that is here; what a load finds
/// outside of the tensor is zero. Coordinates have the last dimension first.
static void moveElement(OpBuilder &b, Location loc, const TensorBox &box,
                        ValueRange coordinates, ArrayRef<Value> ids,
                        Value memory, bool isStore) {
  const size_t rank = ids.size();
  const Type element = cast<MemRefType>(memory.getType()).getElementType();
  Value zero = constantIndex(b, loc, 0);
  Value inside = arith::ConstantIntOp::create(b, loc, 1, 1), row = zero;
  SmallVector<Value> from, to(ids);
  for (size_t dim = 0; dim < rank; ++dim) {
    Value at =
        arith::AddIOp::create(b, loc, coordinates[rank - 1 - dim], ids[dim]);
    Value size = b.createOrFold<memref::DimOp>(
        loc, box.tensor, constantIndex(b, loc, int64_t(dim)));
    // Negative coordinates are huge ones.
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, size);
    inside = arith::AndIOp::create(b, loc, inside, fits);
    from.push_back(at);
    if (dim + 1 < rank)
      row = arith::AddIOp::create(
          b, loc, ids[dim],
          arith::MulIOp::create(b, loc, row,
                                constantIndex(b, loc, box.sizes[dim])));
  }
  to.back() =
      swizzled(b, to.back(), row, int64_t(element.getIntOrFloatBitWidth()) / 8,
               box.map.getSwizzle());
  auto there = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/!isStore);
  ir::setMark(there, ir::Mark::Meaning);
  OpBuilder then = OpBuilder::atBlockBegin(there.thenBlock());
  Value value = memref::LoadOp::create(then, loc, isStore ? memory : box.tensor,
                                       isStore ? to : from);
  memref::StoreOp::create(then, loc, value, isStore ? box.tensor : memory,
                          isStore ? from : to);
  if (isStore)
    return;
  OpBuilder other = OpBuilder::atBlockBegin(there.elseBlock());
  Value filled =
      arith::ConstantOp::create(other, loc, other.getZeroAttr(element));
  memref::StoreOp::create(other, loc, filled, memory, to);
}

LogicalResult copyBox(Operation *op, const TensorBox &box,
                      ValueRange coordinates, Value memory, Value predicate,
                      bool isStore) {
  auto type = cast<MemRefType>(memory.getType());
  const int64_t bytes = type.getElementTypeBitWidth() / 8,
                span = swizzleSpan(box.map.getSwizzle());
  if (type.getShape() != ArrayRef(box.sizes) || bytes == 0 ||
      coordinates.size() != box.sizes.size() ||
      (span > 0 && box.sizes.back() * bytes != span))
    return ir::emitUnsupported(op)
           << "copies a box of another shape than its memory, or with "
              "rows that are no swizzle's";
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Location loc = op->getLoc();
  auto enter = [&](Operation *part, Block *body) {
    ir::setMark(part, ir::Mark::Meaning);
    b.setInsertionPointToStart(body);
  };
  if (predicate) {
    auto guard = scf::IfOp::create(b, loc, predicate, /*withElseRegion=*/false);
    enter(guard, guard.thenBlock());
  }
  memory = withoutGaps(b, memory);
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  SmallVector<Value> ids;
  for (int64_t size : box.sizes) {
    auto loop =
        scf::ForOp::create(b, loc, zero, constantIndex(b, loc, size), one);
    ids.push_back(loop.getInductionVar());
    enter(loop, loop.getBody());
  }
  moveElement(b, loc, box, coordinates, ids, memory, isStore);
  return success();
}

} // namespace mgpu::conversion
