// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/gpu/BulkOps.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/Instructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

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

namespace {

/// A part of a tensor that is copied at once.
struct Box {
  Value tensor; ///< of the rank of the box
  SmallVector<int64_t> sizes;
  nvgpu::TensorMapDescriptorType map;
};

class BulkExpander {
public:
  LogicalResult run(ir::LaunchOp launch);

private:
  LogicalResult expand(Operation *op);
  LogicalResult wait(Operation *op);
  FailureOr<Box> boxOf(Operation *op, Value descriptor);
  LogicalResult copy(Operation *op, Value descriptor, ValueRange coordinates,
                     Value memory, Value predicate, bool isStore);
  void nameMap(Operation *op, Value descriptor, const Box &box);
  LogicalResult multiply(nvgpu::WarpgroupMmaOp op);
  LogicalResult refuse(Operation *op, const Twine &why) {
    return ir::emitUnsupported(op) << why.str();
  }

  llvm::DenseMap<Value, WarpgroupMatrix> matrices; ///< by descriptor
  SmallVector<Operation *> done;
};

/// What waits for copies waits behind it for all threads of the block, which
/// have made theirs before they come here.
LogicalResult BulkExpander::wait(Operation *op) {
  for (Operation *around = op->getParentOp(); !isa<ir::LaunchOp>(around);
       around = around->getParentOp())
    if (!isa<scf::ForOp>(around))
      return refuse(op, "waits where not all threads of the block may come, "
                        "which has no form here: put it behind the branch");
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  gpu::BarrierOp::create(b, op->getLoc());
  if (!ir::isInstruction(op))
    done.push_back(op);
  return success();
}

FailureOr<Box> BulkExpander::boxOf(Operation *op, Value descriptor) {
  auto made = descriptor.getDefiningOp<nvgpu::TmaCreateDescriptorOp>();
  if (!made)
    return refuse(op, "uses a tensor map whose making the text of the "
                      "program does not show");
  Box box{made.getTensor(), {}, made.getTensorMap().getType()};
  while (auto cast = box.tensor.getDefiningOp<memref::CastOp>())
    box.tensor = cast.getSource();
  for (Value size : made.getBoxDimensions()) {
    std::optional<int64_t> known = getConstantIntValue(size);
    if (!known)
      return refuse(op, "uses a tensor map of a box whose sizes are not "
                        "constants");
    box.sizes.push_back(*known);
  }
  auto type = dyn_cast<MemRefType>(box.tensor.getType());
  if (!type || type.getRank() != int64_t(box.sizes.size()) ||
      box.map.getInterleave() !=
          nvgpu::TensorMapInterleaveKind::INTERLEAVE_NONE)
    return refuse(op, "uses a tensor map that is interleaved, or not of a "
                      "memref of the box's rank");
  return box;
}

/// A tensor map has its name in the kernel: that of the tensor.
void BulkExpander::nameMap(Operation *op, Value descriptor, const Box &box) {
  OpBuilder b(op);
  Value name = UnrealizedConversionCastOp::create(
                   b, op->getLoc(), descriptor.getType(), box.tensor)
                   .getResult(0);
  op->replaceUsesOfWith(descriptor, name);
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

/// By the thread that asks for it, element by element. Coordinates have the
/// last dimension first.
LogicalResult BulkExpander::copy(Operation *op, Value descriptor,
                                 ValueRange coordinates, Value memory,
                                 Value predicate, bool isStore) {
  FailureOr<Box> box = boxOf(op, descriptor);
  if (failed(box))
    return failure();
  nameMap(op, descriptor, *box);
  auto type = cast<MemRefType>(memory.getType());
  const size_t rank = box->sizes.size();
  const int64_t bytes = type.getElementTypeBitWidth() / 8,
                span = swizzleSpan(box->map.getSwizzle());
  if (type.getShape() != ArrayRef(box->sizes) || bytes == 0 ||
      coordinates.size() != rank ||
      (span > 0 && box->sizes.back() * bytes != span))
    return refuse(op, "copies a box of another shape than its memory, or with "
                      "rows that are no swizzle's");
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Location loc = op->getLoc();
  auto mark = [&](Operation *part) {
    part->setAttr(ir::meaningMark, b.getUnitAttr());
  };
  if (predicate) {
    auto guard = scf::IfOp::create(b, loc, predicate, /*withElseRegion=*/false);
    mark(guard);
    b.setInsertionPointToStart(guard.thenBlock());
  }
  memory = withoutGaps(b, memory);
  Value zero = constantIndex(b, loc, 0), one = constantIndex(b, loc, 1);
  SmallVector<Value> ids;
  for (int64_t size : box->sizes) {
    auto loop =
        scf::ForOp::create(b, loc, zero, constantIndex(b, loc, size), one);
    mark(loop);
    ids.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  Value inside = arith::ConstantIntOp::create(b, loc, 1, 1), row = zero;
  SmallVector<Value> from, to(ids);
  for (size_t dim = 0; dim < rank; ++dim) {
    Value at =
        arith::AddIOp::create(b, loc, coordinates[rank - 1 - dim], ids[dim]);
    Value size = b.createOrFold<memref::DimOp>(
        loc, box->tensor, constantIndex(b, loc, int64_t(dim)));
    // Negative coordinates are huge ones.
    Value fits =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at, size);
    inside = arith::AndIOp::create(b, loc, inside, fits);
    from.push_back(at);
    if (dim + 1 < rank)
      row = arith::AddIOp::create(
          b, loc, ids[dim],
          arith::MulIOp::create(b, loc, row,
                                constantIndex(b, loc, box->sizes[dim])));
  }
  to.back() = swizzled(b, to.back(), row, bytes, box->map.getSwizzle());
  auto there = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/!isStore);
  mark(there);
  OpBuilder then = OpBuilder::atBlockBegin(there.thenBlock());
  Value value = memref::LoadOp::create(
      then, loc, isStore ? memory : box->tensor, isStore ? to : from);
  memref::StoreOp::create(then, loc, value, isStore ? box->tensor : memory,
                          isStore ? from : to);
  if (!isStore) { // what lies outside of the tensor
    OpBuilder other = OpBuilder::atBlockBegin(there.elseBlock());
    Value filled = arith::ConstantOp::create(
        other, loc, other.getZeroAttr(type.getElementType()));
    memref::StoreOp::create(other, loc, filled, memory, to);
  }
  return success();
}

LogicalResult BulkExpander::multiply(nvgpu::WarpgroupMmaOp op) {
  const WarpgroupMatrix a = matrices.lookup(op.getDescriptorA()),
                        b = matrices.lookup(op.getDescriptorB());
  if (!a.memory || !b.memory || !hasForm(op, a, b))
    return refuse(op, "is a product that has no form here: those of f16 and "
                      "bf16 in f32 have one, with A by rows and B transposed, "
                      "in rows of 128 bytes that are swizzled");
  OpBuilder builder(op);
  op->getResult(0).replaceAllUsesWith(
      warpgroupProduct(builder, op, a, b, op->getOperand(2)));
  done.push_back(op);
  return success();
}

LogicalResult BulkExpander::expand(Operation *op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<nvgpu::MBarrierCreateOp, nvgpu::MBarrierInitOp,
            nvgpu::MBarrierArriveOp, nvgpu::MBarrierArriveNoCompleteOp,
            nvgpu::MBarrierArriveExpectTxOp>([](Operation *) {
        return success();
      }) // where copies are done at once
      .Case<nvgpu::MBarrierGetOp, nvgpu::TmaFenceOp, NVVM::WgmmaFenceAlignedOp,
            NVVM::WgmmaGroupSyncAlignedOp>([&](Operation *) {
        done.push_back(op); // as products are, and maps do not change
        return success();
      })
      .Case([&](nvgpu::TmaPrefetchOp prefetch) {
        Value descriptor = prefetch.getTensorMapDescriptor();
        FailureOr<Box> box = boxOf(op, descriptor);
        if (succeeded(box))
          nameMap(op, descriptor, *box);
        return LogicalResult(box);
      })
      .Case<nvgpu::MBarrierTryWaitParityOp, NVVM::WgmmaWaitGroupSyncOp>(
          [&](Operation *) { return wait(op); })
      .Case([&](nvgpu::MBarrierTestWaitOp test) {
        Value yes = arith::ConstantIntOp::create(b, loc, 1, 1);
        test.getWaitComplete().replaceAllUsesWith(yes);
        return wait(op);
      })
      .Case([&](nvgpu::TmaAsyncLoadOp load) {
        if (load.getMulticastMask())
          return refuse(op, "copies to several blocks of a cluster");
        return copy(op, load.getTensorMapDescriptor(), load.getCoordinates(),
                    load.getDst(), load.getPredicate(), /*isStore=*/false);
      })
      .Case([&](nvgpu::TmaAsyncStoreOp store) {
        return copy(op, store.getTensorMapDescriptor(), store.getCoordinates(),
                    store.getSrc(), store.getPredicate(), /*isStore=*/true);
      })
      .Case([&](nvgpu::WarpgroupGenerateDescriptorOp matrix) {
        matrices[matrix.getDescriptor()] = {matrix.getTensor(),
                                            matrix.getTensorMap().getType()};
        done.push_back(op);
        return success();
      })
      .Case([&](nvgpu::WarpgroupMmaInitAccumulatorOp init) {
        Value sums = init->getResult(0);
        sums.replaceAllUsesWith(
            arith::ConstantOp::create(b, loc, b.getZeroAttr(sums.getType())));
        done.push_back(op);
        return success();
      })
      .Case([&](nvgpu::WarpgroupMmaOp product) { return multiply(product); })
      .Case([&](nvgpu::WarpgroupMmaStoreOp store) {
        warpgroupStore(b, store);
        done.push_back(op);
        return success();
      })
      .Default(success()); // kernels/lower knows others, or refuses them
}

LogicalResult BulkExpander::run(ir::LaunchOp launch) {
  SmallVector<Operation *> found;
  auto retype = [](Value value) {
    if (auto type = dyn_cast<nvgpu::WarpgroupAccumulatorType>(value.getType()))
      value.setType(accumulatorType(type));
  };
  launch.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<nvgpu::NVGPUDialect, NVVM::NVVMDialect>(op->getDialect()))
      found.push_back(op);
  });
  launch.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), retype);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), retype);
  });
  for (Operation *op : found)
    if (failed(expand(op)))
      return failure();
  for (Operation *op : llvm::reverse(done)) {
    if (!op->use_empty())
      return refuse(op, "gives a value that has no form here");
    op->erase();
  }
  return success();
}

} // namespace

LogicalResult expandBulkOps(ir::LaunchOp launch) {
  return BulkExpander().run(launch);
}

} // namespace mgpu::conversion
